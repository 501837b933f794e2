//! The engines that are known without configuration.

use super::arguments::ShutdownArguments;
use super::{Engine, EngineArguments, EngineMetrics, EngineUser};

/// The name of the engine that is any container.
pub const CONTAINER: &str = "container";

/// The engine of this name.
pub fn builtin(name: &str) -> Option<Engine> {
    match name {
        "vllm" => Some(vllm()),
        "sglang" => Some(sglang()),
        "llama-cpp" => Some(llama_cpp()),
        CONTAINER => Some(container()),
        _ => None,
    }
}

/// The names of all engines that are known without configuration.
pub const NAMES: [&str; 4] = ["vllm", "sglang", "llama-cpp", CONTAINER];

fn vllm() -> Engine {
    Engine {
        image: "vllm/vllm-openai:latest".to_owned(),
        image_names: texts(&["vllm-openai"]),
        command: Vec::new(),
        arguments: EngineArguments {
            model: texts(&["--model", "{model}"]),
            served_name: texts(&["--served-model-name", "{name}"]),
            gpus: texts(&["--tensor-parallel-size", "{gpus}"]),
            pipeline: texts(&["--pipeline-parallel-size", "{stages}"]),
            nodes: texts(&[
                "--distributed-executor-backend",
                "mp",
                "--nnodes",
                "{nodes}",
                "--node-rank",
                "$(LWS_WORKER_INDEX)",
                "--master-addr",
                "$(LWS_LEADER_ADDRESS)",
                "--master-port",
                "29500",
            ]),
            worker: texts(&["--headless"]),
            port: texts(&["--port", "{port}"]),
            shutdown: Some(ShutdownArguments {
                since: "0.18".to_owned(),
                arguments: texts(&["--shutdown-timeout", "{seconds}"]),
            }),
            adapters: texts(&["--enable-lora", "--lora-modules"]),
            adapter: texts(&["{name}={path}"]),
            always: Vec::new(),
        },
        port: 8000,
        health_path: "/health".to_owned(),
        metrics_path: "/metrics".to_owned(),
        metrics: EngineMetrics {
            time_to_first_token: "vllm:time_to_first_token_seconds".to_owned(),
            inter_token_latency: "vllm:inter_token_latency_seconds".to_owned(),
            end_to_end_latency: "vllm:e2e_request_latency_seconds".to_owned(),
            queue_length: "vllm:num_requests_waiting".to_owned(),
        },
        user: Some(EngineUser { since: "0.20".to_owned(), uid: 2000 }),
    }
}

fn sglang() -> Engine {
    Engine {
        image: "lmsysorg/sglang:latest".to_owned(),
        image_names: texts(&["sglang"]),
        command: texts(&["python3", "-m", "sglang.launch_server"]),
        arguments: EngineArguments {
            model: texts(&["--model-path", "{model}"]),
            served_name: texts(&["--served-model-name", "{name}"]),
            gpus: texts(&["--tp-size", "{gpus}"]),
            pipeline: texts(&["--pp-size", "{stages}"]),
            nodes: texts(&[
                "--dist-init-addr",
                "$(LWS_LEADER_ADDRESS):20000",
                "--nnodes",
                "{nodes}",
                "--node-rank",
                "$(LWS_WORKER_INDEX)",
            ]),
            worker: Vec::new(),
            port: texts(&["--port", "{port}"]),
            shutdown: None,
            adapters: texts(&["--enable-lora", "--lora-paths"]),
            adapter: texts(&["{name}={path}"]),
            always: texts(&["--host", "0.0.0.0", "--enable-metrics"]),
        },
        port: 30000,
        health_path: "/health".to_owned(),
        metrics_path: "/metrics".to_owned(),
        metrics: EngineMetrics {
            time_to_first_token: "sglang:time_to_first_token_seconds".to_owned(),
            inter_token_latency: "sglang:inter_token_latency_seconds".to_owned(),
            end_to_end_latency: "sglang:e2e_request_latency_seconds".to_owned(),
            queue_length: "sglang:num_queue_reqs".to_owned(),
        },
        user: None,
    }
}

fn llama_cpp() -> Engine {
    Engine {
        image: "ghcr.io/ggml-org/llama.cpp:server".to_owned(),
        image_names: texts(&["llama.cpp"]),
        command: Vec::new(),
        arguments: EngineArguments {
            model: texts(&["--model", "{model}"]),
            served_name: texts(&["--alias", "{name}"]),
            gpus: texts(&["--n-gpu-layers", "999"]),
            pipeline: Vec::new(),
            nodes: Vec::new(),
            worker: Vec::new(),
            port: texts(&["--port", "{port}"]),
            shutdown: None,
            adapters: Vec::new(),
            adapter: texts(&["--lora", "{path}"]),
            always: texts(&["--host", "0.0.0.0", "--metrics"]),
        },
        port: 8080,
        health_path: "/health".to_owned(),
        metrics_path: "/metrics".to_owned(),
        metrics: EngineMetrics { queue_length: "llamacpp:requests_deferred".to_owned(), ..EngineMetrics::default() },
        user: None,
    }
}

fn container() -> Engine {
    Engine { port: 8080, ..Engine::default() }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
