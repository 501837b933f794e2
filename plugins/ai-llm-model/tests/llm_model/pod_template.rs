//! A Pod template of the user: it is merged, and refused where it would break the server.

use crate::case::{case, run, template};
use llm_serving::testing::refusal;
use pilothouse_sdk::Error;
use serde_json::json;

#[test]
fn a_pod_template_changes_what_it_names_and_nothing_else() -> Result<(), Error> {
    let merged = template(
        "gpuCount: 2, podTemplate: {metadata: {labels: {team: ml}}, spec: {nodeSelector: {zone: a}, \
         containers: [{name: model, env: [{name: X, value: y}], resources: {limits: {memory: 1Gi}}}, {name: side, image: s}], \
         tolerations: [{key: spot, operator: Exists}]}}",
    )?;
    assert_eq!(merged["metadata"]["labels"]["team"], "ml");
    assert_eq!(merged["metadata"]["labels"]["app.kubernetes.io/instance"], "llmmodel-chat");
    let spec = &merged["spec"];
    assert_eq!(spec["containers"][0]["resources"]["limits"], json!({ "memory": "1Gi", "nvidia.com/gpu": "2" }));
    let names: Vec<_> = spec["containers"][0]["env"].as_array().into_iter().flatten().map(|it| &it["name"]).collect();
    assert_eq!(names, ["MODEL_NAME", "PORT", "X"]);
    assert_eq!(spec["containers"][1], json!({ "name": "side", "image": "s" }));
    assert_eq!(spec["tolerations"], json!([{ "key": "spot", "operator": "Exists" }]));
    assert_eq!(spec["nodeSelector"], json!({ "zone": "a" }));
    assert_eq!(spec["containers"][0]["ports"][0]["containerPort"], 8000);
    Ok(())
}

/// A template, and what the refusal says of it.
#[rustfmt::skip]
const REFUSED: &[(&str, &str)] = &[
    ("metadata: {labels: {app.kubernetes.io/instance: other}}",
        "changes the label app.kubernetes.io/instance, by which the Pods are found; remove it"),
    ("metadata: {labels: {app.kubernetes.io/component: null}}",
        "changes the label app.kubernetes.io/component, by which the Pods are found; remove it"),
    ("metadata: {labels: null}", "has a field metadata.labels of another type than a Pod template has"),
    ("spec: {containers: null}", "has a field spec.containers of another type than a Pod template has"),
    ("spec: 7", "has a field spec of another type than a Pod template has"),
    ("spec: {containers: [{name: model, ports: null}]}", "changes the port 8000 of the container 'model'; set spec.port"),
    ("spec: {containers: [{name: model, ports: [{containerPort: 8000, name: web}]}]}",
        "changes the port 8000 of the container 'model'; set spec.port"),
    ("spec: {containers: [{name: model, ports: [{containerPort: 9000, name: http}]}]}",
        "changes the port 8000 of the container 'model'; set spec.port"),
    ("spec: {containers: [{name: model, env: [{name: PORT, value: '1'}]}]}",
        "sets the variable PORT of the container 'model'; it follows from other fields"),
    ("spec: {containers: [{name: model, env: null}]}",
        "sets the variable MODEL_NAME of the container 'model'; it follows from other fields"),
    ("spec: {restartPolicy: Never}", "sets restartPolicy Never; a server is always restarted"),
    ("spec: {hostname: one}", "sets hostname, which tells Pods apart; remove it"),
];

#[test]
fn a_pod_template_that_breaks_the_server_is_refused_and_changes_nothing() -> Result<(), Error> {
    for (template, expected) in REFUSED {
        let answer = run(case(&format!("podTemplate: {{{template}}}"))?)?;
        assert_eq!(refusal(&answer), Some(format!("spec.podTemplate {expected}").as_str()), "{template}");
        assert_eq!(answer.response.children, None, "{template}: the children stay");
    }
    Ok(())
}
