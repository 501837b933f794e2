//! The plugin as a plain function: no cluster, no WebAssembly.

use {{crate}}::reconcile;
use pilothouse_sdk::{Error, Verdict, k8s_openapi::api::apps::v1::Deployment, testing::Case};

#[test]
fn the_deployment_has_the_replicas_of_its_object() -> Result<(), Error> {
    let object = "{apiVersion: {{apiVersion}}, kind: {{kind}}, metadata: {name: first}, spec: {image: nginx, replicas: 3}}";
    let answer = Case::yaml(object).run(reconcile)?;
    assert_eq!(answer.verdict(), &Verdict::Done);
    assert_eq!(answer.child::<Deployment>()?.spec.and_then(|spec| spec.replicas), Some(3));
    Ok(())
}
