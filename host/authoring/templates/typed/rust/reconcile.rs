//! The plugin as a plain function: no cluster, no WebAssembly.

use {{crate}}::reconcile;
use pilothouse_sdk::{Error, Verdict, k8s_openapi::api::core::v1::ConfigMap, testing::Case};

#[test]
fn the_object_is_read_and_becomes_a_config_map() -> Result<(), Error> {
    let answer = Case::yaml(include_str!("../object.yaml")).run(reconcile)?;
    assert_eq!(answer.verdict(), &Verdict::Done);
    assert_eq!(answer.child::<ConfigMap>()?.metadata.name.as_deref(), Some("first"));
    Ok(())
}
