//! Security contexts: nothing runs with more rights than it needs, and no user is guessed.

use crate::case::{case, container, run, template};
use llm_serving::testing::refusal;
use pilothouse_sdk::Error;
use serde_json::{Value, json};

#[test]
fn no_container_has_capabilities_or_gets_more_rights() -> Result<(), Error> {
    let expected = json!({ "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } });
    assert_eq!(container("")?["securityContext"], expected);
    let template = template("modelSource: {uri: 'hf://a/b'}")?;
    assert_eq!(template["spec"]["initContainers"][0]["securityContext"], expected);
    assert_eq!(template["spec"]["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(template["spec"]["automountServiceAccountToken"], false);
    Ok(())
}

/// The rest of the spec, and the user; null for the image's own.
#[rustfmt::skip]
const USERS: &[(&str, Option<i64>)] = &[
    ("", None),
    ("image: 'vllm/vllm-openai:v0.19.1'", None),
    ("image: 'vllm/vllm-openai:v0.20.0'", Some(2000)),
    ("image: 'mirror.example.com/vllm-openai:v0.21.3-cu130'", Some(2000)),
    ("image: 'example.com/my-vllm:v0.21.0'", None),
    ("engine: sglang", None),
    ("securityContext: {runAsNonRoot: true, runAsUser: 5}", Some(5)),
    ("image: 'vllm/vllm-openai:v0.20.0', securityContext: {runAsNonRoot: true}", Some(2000)),
];

#[test]
fn who_is_not_root_has_a_number_that_the_image_knows() -> Result<(), Error> {
    for (spec, user) in USERS {
        let context = template(spec)?["spec"]["securityContext"].clone();
        assert_eq!(context.get("runAsUser").and_then(Value::as_i64), *user, "{spec}");
        assert_eq!(context.get("runAsNonRoot").and_then(Value::as_bool), user.map(|_| true), "{spec}");
    }
    Ok(())
}

#[test]
fn not_root_without_a_number_is_refused_where_nobody_knows_one() -> Result<(), Error> {
    let answer = run(case("securityContext: {runAsNonRoot: true}")?)?;
    let expected = "spec.securityContext.runAsNonRoot needs spec.securityContext.runAsUser: nobody knows which user the image \
                    'vllm/vllm-openai:latest' has";
    assert_eq!(refusal(&answer), Some(expected));
    Ok(())
}
