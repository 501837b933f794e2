//! The desired children of an `LLMModel`: those of the seed's examples, and how fields of the spec reach them.

use crate::case::{arguments, children, container, of, parse, run, template};
use llm_serving::testing::Children;
use pilothouse_sdk::Error;
use serde_json::{Value, json};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/llm_model/children.yaml");

/// The seed's examples, and one that uses most fields: the name, and the spec.
const GOLDEN_MODELS: &[(&str, &str)] = &[
    ("llama-3-70b-serving", "{modelName: llama-3-70b, replicas: 3, gpuType: H100, modelPath: /models/llama-3-70b}"),
    ("my-model", "{modelName: llama-3-70b, replicas: 3, gpuCount: 4}"),
    (
        "everything",
        "{modelName: meta-llama/Llama-3-8B, replicas: 4, gpuCount: 2, gpuType: A100, gpuMemory: 80G, image: 'vllm/vllm-openai:v0.20.1', \
         imagePullPolicy: IfNotPresent, imagePullSecrets: [{name: registry}], args: [--max-model-len, '8192'], \
         env: [{name: HF_HUB_OFFLINE, value: '1'}], envFrom: [{secretRef: {name: settings}}], \
         modelSource: {uri: 'hf://meta-llama/Llama-3-8B:main', secretRef: {name: hf}, cacheClaimName: cache}, \
         loraAdapters: [{name: sql, path: /adapters/sql}], resources: {requests: {cpu: '8'}, limits: {memory: 64Gi}}, \
         port: 9000, startupTimeoutSeconds: 1800, terminationGracePeriodSeconds: 120, \
         networkPolicy: {from: [{namespaceSelector: {matchLabels: {team: ml}}}]}, ingress: {host: llm.example.com, className: nginx}, \
         monitor: {kind: ServiceMonitor, interval: 15s, labels: {release: prometheus}}, \
         podTemplate: {metadata: {annotations: {team: ml}}, spec: {priorityClassName: high, nodeSelector: {zone: a}}}}",
    ),
];

/// A change of the file replaces all Pods of all users when the plugin is upgraded. To write it: `WRITE=1 cargo test`.
#[test]
fn children_are_those_of_the_golden_file() -> Result<(), Error> {
    let mut text = String::new();
    for (name, spec) in GOLDEN_MODELS {
        let case = of(name, &parse(spec)?).found(crate::case::claim("cache"));
        for child in Children::of(&run(case)?)?.iter() {
            let child = serde_saphyr::to_string(child).map_err(|error| Error::Test(error.to_string()))?;
            text.push_str(&format!("---\n{child}"));
        }
    }
    if std::env::var_os("WRITE").is_some() {
        std::fs::write(GOLDEN, &text).map_err(|error| Error::Test(error.to_string()))?;
    }
    let golden = std::fs::read_to_string(GOLDEN).map_err(|error| Error::Test(error.to_string()))?;
    assert_eq!(text, golden, "new Pod templates roll all Pods of all users; if that must be, write the file again");
    Ok(())
}

#[test]
fn the_seeds_plain_deployment_is_what_the_kind_stands_for() -> Result<(), Error> {
    let deployment =
        Children::of(&run(of("my-model", &parse("{modelName: llama-3-70b, replicas: 3, gpuCount: 4}")?))?)?;
    let deployment = deployment.only("Deployment")?;
    assert_eq!(
        (&deployment["metadata"]["name"], &deployment["spec"]["replicas"]),
        (&json!("llmmodel-my-model"), &json!(3))
    );
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&container["name"], &container["image"]), (&json!("model"), &json!("vllm/vllm-openai:latest")));
    assert_eq!(container["args"], json!(["--model", "llama-3-70b", "--tensor-parallel-size", "4"]));
    assert_eq!(container["resources"]["limits"], json!({ "nvidia.com/gpu": "4" }));
    assert_eq!(container["env"][0], json!({ "name": "MODEL_NAME", "value": "llama-3-70b" }));
    Ok(())
}

#[test]
fn the_model_of_a_path_is_served_under_its_name() -> Result<(), Error> {
    let expected = ["--model", "/models/llama", "--served-model-name", "llama"];
    assert_eq!(arguments("modelPath: /models/llama")?, expected);
    Ok(())
}

/// The kubelet expands `$(PORT)` in arguments and in variables.
#[test]
fn a_name_with_a_dollar_is_the_same_wherever_it_is_told() -> Result<(), Error> {
    let spec = json!({ "modelName": "a$(PORT)b$", "modelPath": "/models/a" });
    let deployment = Children::of(&run(of("my-model", &spec))?)?;
    let container = &deployment.only("Deployment")?["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["--model", "/models/a", "--served-model-name", "a$$(PORT)b$$"]));
    assert_eq!(container["env"][0], json!({ "name": "MODEL_NAME", "value": "a$$(PORT)b$$" }));
    Ok(())
}

#[test]
fn the_port_is_told_wherever_it_matters() -> Result<(), Error> {
    for (spec, port, said) in [("", 8000, None), ("port: 9000", 9000, Some("9000"))] {
        let container = container(spec)?;
        assert_eq!(
            container["ports"][0],
            json!({ "name": "http", "containerPort": port, "protocol": "TCP" }),
            "{spec}"
        );
        assert_eq!(container["env"][1], json!({ "name": "PORT", "value": port.to_string() }), "{spec}");
        let arguments = arguments(spec)?;
        let told = arguments.iter().skip_while(|argument| *argument != "--port").nth(1);
        assert_eq!(told.map(String::as_str), said, "{spec}");
        let service = children(spec)?.only("Service")?["spec"]["ports"][0].clone();
        assert_eq!((&service["port"], &service["targetPort"]), (&json!(port), &json!("http")), "{spec}");
    }
    Ok(())
}

/// A Service named `vllm` would set `VLLM_PORT` in every Pod of the namespace, and vLLM would not start.
#[test]
fn no_variables_of_services_reach_the_server() -> Result<(), Error> {
    let pod = Children::of(&run(of("vllm", &json!({ "modelName": "llama" })))?)?;
    assert_eq!(pod.only("Deployment")?["spec"]["template"]["spec"]["enableServiceLinks"], false);
    Ok(())
}

#[test]
fn probes_let_a_model_load_and_a_busy_server_be() -> Result<(), Error> {
    let container = container("startupTimeoutSeconds: 1795")?;
    let probe = |name: &str| {
        let probe = &container[name];
        ["periodSeconds", "timeoutSeconds", "failureThreshold"].map(|field| probe[field].as_i64().unwrap_or_default())
    };
    assert_eq!(probe("startupProbe"), [10, 15, 180]);
    assert_eq!(probe("readinessProbe"), [5, 15, 10]);
    assert_eq!(probe("livenessProbe"), [10, 15, 10]);
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/health");
    Ok(())
}

/// The rest of the spec, the argument, the seconds of the drain, and those in all.
#[rustfmt::skip]
const DRAINS: &[(&str, Option<&str>, i64, i64)] = &[
    ("terminationGracePeriodSeconds: 120, image: 'vllm/vllm-openai:v0.18.0'", Some("105"), 15, 120),
    ("image: 'vllm/vllm-openai:v0.19.1-cu129'", Some("45"), 15, 60),
    ("drainSeconds: 300, image: 'vllm/vllm-openai:v0.18.0'", Some("45"), 300, 345),
    ("terminationGracePeriodSeconds: 120, image: 'vllm/vllm-openai:v0.17.1'", None, 15, 120),
    ("terminationGracePeriodSeconds: 120", None, 15, 120),
    ("terminationGracePeriodSeconds: 120, engine: sglang", None, 15, 120),
];

#[test]
fn requests_end_well_before_a_pod_is_killed() -> Result<(), Error> {
    for (spec, seconds, drain, grace) in DRAINS {
        let template = template(spec)?;
        let arguments = arguments(spec)?;
        let told = arguments.iter().skip_while(|argument| *argument != "--shutdown-timeout").nth(1);
        assert_eq!(told.map(String::as_str), *seconds, "{spec}");
        assert_eq!(template["spec"]["terminationGracePeriodSeconds"], *grace, "{spec}");
        assert_eq!(template["spec"]["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"], *drain, "{spec}");
    }
    assert_eq!(container("drainSeconds: 0")?.get("lifecycle"), None);
    Ok(())
}

#[test]
fn shared_memory_is_there_where_gpus_need_it() -> Result<(), Error> {
    let sizes = [
        ("", Value::Null),
        ("gpuCount: 1", Value::Null),
        ("gpuCount: 2", json!("8Gi")),
        ("shmSize: 1Gi", json!("1Gi")),
    ];
    for (spec, size) in sizes {
        let template = template(spec)?;
        let volumes = template["spec"]["volumes"].as_array().into_iter().flatten();
        let shared = volumes.into_iter().find(|volume| volume["name"] == "shm");
        assert_eq!(shared.map_or(&Value::Null, |volume| &volume["emptyDir"]["sizeLimit"]), &size, "{spec}");
    }
    Ok(())
}

#[test]
fn long_names_are_shortened_and_never_collide() -> Result<(), Error> {
    let spec = json!({ "modelName": "llama" });
    let named = |name: &str| -> Result<Vec<String>, Error> {
        let children = Children::of(&run(of(name, &spec))?)?;
        Ok(children.names().into_iter().map(str::to_owned).collect())
    };
    let (first, second) = (named(&format!("{}1", "a".repeat(80)))?, named(&format!("{}2", "a".repeat(80)))?);
    assert_ne!(first, second);
    let longest = first.iter().filter_map(|name| name.split_once(' ')).map(|(_, name)| name.len()).max();
    assert_eq!(longest, Some(63));
    Ok(())
}

#[test]
fn adapters_are_offered_beside_the_model() -> Result<(), Error> {
    let spec = "loraAdapters: [{name: sql, path: /adapters/sql}, {name: chat, path: org/chat}]";
    let expected = ["--model", "llama", "--enable-lora", "--lora-modules", "sql=/adapters/sql", "chat=org/chat"];
    assert_eq!(arguments(spec)?, expected);
    let status: llm_serving::api::ServingStatus = run(crate::case::case(spec)?)?.status()?;
    assert_eq!(status.lora_adapters, ["sql", "chat"]);
    Ok(())
}
