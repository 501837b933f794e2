//! The plugin as a plain function: no cluster, no WebAssembly.

use greeting::reconcile;
use pilothouse_sdk::{Error, Verdict, k8s_openapi::api::core::v1::ConfigMap, testing::Case};

fn greeting(name: &str) -> Case {
    Case::yaml(&format!(
        "{{apiVersion: example.com/v1, kind: Greeting, metadata: {{name: first}}, spec: {{name: '{name}'}}}}"
    ))
}

#[test]
fn the_config_map_holds_the_greeting() -> Result<(), Error> {
    let answer = greeting("world").run(reconcile)?;
    assert_eq!(answer.verdict(), &Verdict::Done);
    let data = answer.child::<ConfigMap>()?.data.unwrap_or_default();
    assert_eq!(data["greeting"], "Hello, world!");
    Ok(())
}

#[test]
fn nobody_is_not_greeted() -> Result<(), Error> {
    let answer = greeting("").run(reconcile)?;
    assert!(matches!(answer.verdict(), Verdict::Invalid(why) if why.contains("spec.name")));
    Ok(())
}
