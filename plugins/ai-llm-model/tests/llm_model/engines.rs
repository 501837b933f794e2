//! Engines: their images, arguments, ports and probes, and those that the configuration adds.

use crate::case::{arguments, case, container, run};
use llm_serving::testing::{Children, refusal};
use pilothouse_sdk::Error;
use serde_json::json;

#[rustfmt::skip]
const ENGINES: &[(&str, &str, u32, &[&str])] = &[
    ("vllm", "vllm/vllm-openai:latest", 8000,
        &["--model", "/m/l", "--served-model-name", "llama", "--tensor-parallel-size", "2"]),
    ("sglang", "lmsysorg/sglang:latest", 30000,
        &["--model-path", "/m/l", "--served-model-name", "llama", "--tp-size", "2", "--host", "0.0.0.0", "--enable-metrics"]),
    ("llama-cpp", "ghcr.io/ggml-org/llama.cpp:server", 8080,
        &["--model", "/m/l", "--alias", "llama", "--n-gpu-layers", "999", "--host", "0.0.0.0", "--metrics"]),
];

#[test]
fn each_engine_gets_its_image_its_arguments_and_its_port() -> Result<(), Error> {
    for (engine, image, port, expected) in ENGINES {
        let spec = format!("engine: {engine}, gpuCount: 2, modelPath: /m/l");
        let container = container(&spec)?;
        assert_eq!(
            (&container["image"], &container["ports"][0]["containerPort"]),
            (&json!(image), &json!(port)),
            "{engine}"
        );
        assert_eq!(arguments(&spec)?, *expected, "{engine}");
        assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/health", "{engine}");
    }
    Ok(())
}

#[test]
fn any_container_gets_its_port_and_the_name_of_the_model() -> Result<(), Error> {
    let container = container("engine: container, image: 'example.com/server:1', port: 7000")?;
    assert_eq!(container.get("args"), None);
    assert_eq!(
        container["env"],
        json!([{ "name": "MODEL_NAME", "value": "llama" }, { "name": "PORT", "value": "7000" }])
    );
    assert_eq!(container["readinessProbe"]["tcpSocket"]["port"], "http", "nobody knows its path of health");
    Ok(())
}

#[test]
fn a_command_of_the_user_replaces_all_arguments() -> Result<(), Error> {
    let container = container("command: [serve], args: [--fast]")?;
    assert_eq!((&container["command"], &container["args"]), (&json!(["serve"]), &json!(["--fast"])));
    Ok(())
}

#[test]
fn the_configuration_changes_images_and_adds_engines() -> Result<(), Error> {
    let config = json!({
        "images": { "vllm": "mirror/vllm-openai:v0.18.2" },
        "engines": { "tgi": {
            "image": "tgi:3", "port": 80, "healthPath": "/health", "arguments": { "model": ["--model-id", "{model}"] },
        } },
    });
    let container = |spec: &str| -> Result<serde_json::Value, Error> {
        let children = Children::of(&run(case(spec)?.config(&config))?)?;
        Ok(children.only("Deployment")?["spec"]["template"]["spec"]["containers"][0].clone())
    };
    assert_eq!(container("")?["image"], "mirror/vllm-openai:v0.18.2");
    assert_eq!(container("image: 'mine:1'")?["image"], "mine:1", "the object comes first");
    let tgi = container("engine: tgi")?;
    assert_eq!((&tgi["image"], &tgi["args"]), (&json!("tgi:3"), &json!(["--model-id", "llama"])));
    Ok(())
}

#[test]
fn an_engine_that_nobody_knows_is_refused() -> Result<(), Error> {
    let answer = run(case("engine: teapot")?)?;
    let expected = "spec.engine 'teapot' is not known; give one of container, llama-cpp, sglang, vllm, or add it to the \
                    plugin's configuration";
    assert_eq!(refusal(&answer), Some(expected));
    Ok(())
}
