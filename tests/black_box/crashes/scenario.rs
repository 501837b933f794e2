//! The scenarios: what users do to an object before and during the crash of its host. Values only.

use serde_json::{Value, json};

use crate::{
    llm::words as llm,
    state::State,
    test_env::{app, sextet},
    training_job::words,
};

/// One thing that a user does.
#[derive(Clone, Copy)]
pub enum Step {
    /// Creates or changes the object.
    Apply(fn() -> Value),
    /// Gives a Pod a status, as its node does.
    Pod(&'static str, fn() -> Value),
    /// Replaces the active build of the plugin by another one.
    Swap(&'static str),
    /// Deletes the object.
    Delete,
}

/// Steps, during the last of which the host crashes.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// The kind of the object.
    pub kind: &'static str,
    /// The name of the plugin.
    pub plugin: &'static str,
    /// The build of the plugin that is active at first.
    pub first: &'static str,
    /// The steps before the crash. The host comes to rest after each.
    pub before: &'static [Step],
    /// The step during which the host crashes.
    pub step: Step,
    /// Whether the scenario has reached its end.
    pub ends: fn(&State) -> bool,
}

impl Scenario {
    /// Whether the last step only changes the object, so that its previous spec can be applied again.
    pub fn is_update(&self) -> bool {
        matches!((self.before, self.step), ([Step::Apply(first)], Step::Apply(_)) if first()["kind"] == self.kind)
    }
}

/// The name of the object in every scenario.
pub const NAME: &str = "web";

/// All scenarios. Deleting an `AppService` is none: its host writes nothing then. A `Farewell` has a finalizer.
pub static SCENARIOS: [Scenario; 23] = [
    Scenario {
        name: "AppService create",
        kind: "AppService",
        plugin: "app-service",
        first: "app-service",
        before: &[],
        step: Step::Apply(first_app),
        ends: |state| state.names().into_iter().eq(["Deployment/web", "Service/web"]),
    },
    Scenario {
        name: "AppService update",
        kind: "AppService",
        plugin: "app-service",
        first: "app-service",
        before: &[Step::Apply(first_app)],
        step: Step::Apply(second_app),
        ends: |state| state.children["Deployment/web"]["spec"]["replicas"] == 5,
    },
    Scenario {
        name: "AppService swap",
        kind: "AppService",
        plugin: "app-service",
        first: "app-service",
        before: &[Step::Apply(first_app)],
        step: Step::Swap("app-service-next"),
        ends: |state| {
            let annotations = &state.children["Deployment/web"]["metadata"]["annotations"];
            annotations["apps.example.com/revision"] == "2"
        },
    },
    Scenario {
        name: "Sextet create",
        kind: "Sextet",
        plugin: "sextet",
        first: "sextet",
        before: &[],
        step: Step::Apply(first_sextet),
        ends: |state| state.names().into_iter().eq(ALL_SIX),
    },
    Scenario {
        name: "Sextet update that drops children",
        kind: "Sextet",
        plugin: "sextet",
        first: "sextet",
        before: &[Step::Apply(first_sextet)],
        step: Step::Apply(second_sextet),
        ends: |state| {
            let left = ["ConfigMap/web-a", "Secret/web-a", "Secret/web-b", "Service/web-s"];
            state.names().into_iter().eq(left) && state.children["ConfigMap/web-a"]["data"]["tempo"] == "presto"
        },
    },
    Scenario {
        name: "Sextet update that drops a field with a changed value",
        kind: "Sextet",
        plugin: "sextet",
        first: "sextet",
        before: &[Step::Apply(sextet_with_two_values), Step::Apply(sextet_with_other_values)],
        step: Step::Apply(sextet_with_one_value),
        ends: |state| state.children["ConfigMap/web-a"]["data"] == json!({"tempo": "presto"}),
    },
    Scenario {
        name: "Sextet swap that drops a kind",
        kind: "Sextet",
        plugin: "sextet",
        first: "sextet",
        before: &[Step::Apply(first_sextet)],
        step: Step::Swap("sextet-next"),
        ends: |state| {
            let left = ["ConfigMap/web-a", "ConfigMap/web-b", "Service/web-s", "ServiceAccount/web-s"];
            state.names().into_iter().eq(left)
        },
    },
    Scenario {
        name: "Sextet swap that adds a kind",
        kind: "Sextet",
        plugin: "sextet",
        first: "sextet-next",
        before: &[Step::Apply(first_sextet)],
        step: Step::Swap("sextet"),
        ends: |state| state.names().into_iter().eq(ALL_SIX),
    },
    Scenario {
        name: "Sextet delete",
        kind: "Sextet",
        plugin: "sextet",
        first: "sextet",
        before: &[Step::Apply(first_sextet)],
        step: Step::Delete,
        ends: |state| state.object.is_none() && state.children.is_empty(),
    },
    Scenario {
        name: "Farewell create",
        kind: "Farewell",
        plugin: "farewell",
        first: "farewell",
        before: &[],
        step: Step::Apply(farewell),
        ends: |state| state.names().into_iter().eq(["ConfigMap/web"]),
    },
    Scenario {
        name: "Farewell delete",
        kind: "Farewell",
        plugin: "farewell",
        first: "farewell",
        before: &[Step::Apply(farewell)],
        step: Step::Delete,
        ends: |state| state.object.is_none() && state.children.is_empty(),
    },
    Scenario {
        name: "TrainingJob create",
        kind: "TrainingJob",
        plugin: "training-job",
        first: "training-job",
        before: &[],
        step: Step::Apply(training_job),
        ends: |state| state.names().into_iter().eq(ALL_OF_A_JOB) && state.is_ready(),
    },
    Scenario {
        name: "TrainingJob restart",
        kind: "TrainingJob",
        plugin: "training-job",
        first: "training-job",
        before: &[Step::Apply(training_job)],
        step: Step::Pod("web-worker-1", failed_pod),
        ends: |state| {
            let restarts = state.object.as_ref().map(|job| &job["status"]["restartCount"]);
            restarts.is_some_and(|restarts| restarts == 1) && state.is_ready()
        },
    },
    Scenario {
        name: "TrainingJob end",
        kind: "TrainingJob",
        plugin: "training-job",
        first: "training-job",
        before: &[Step::Apply(training_job)],
        step: Step::Pod("web-worker-0", succeeded_pod),
        // The host may hold the number of its Pods back for a second, longer than two reconciles take.
        ends: |state| {
            let active = state.object.as_ref().map(|job| &job["status"]["active"]);
            let left = ["ConfigMap/web-hyperparameters", "Pod/web-worker-0"];
            state.names().into_iter().eq(left) && active.is_some_and(|active| active == 0)
        },
    },
    Scenario {
        name: "LLMModel create",
        kind: "LLMModel",
        plugin: "ai-llm-model",
        first: "ai-llm-model",
        before: &[],
        step: Step::Apply(first_server),
        ends: |state| state.names().into_iter().eq(ALL_OF_A_SERVER),
    },
    Scenario {
        name: "LLMModel update that drops a child",
        kind: "LLMModel",
        plugin: "ai-llm-model",
        first: "ai-llm-model",
        before: &[Step::Apply(first_server)],
        step: Step::Apply(second_server),
        ends: |state| {
            let left = ["Deployment/llmmodel-web", "Service/llmmodel-web"];
            state.names().into_iter().eq(left)
                && state.children["Service/llmmodel-web"]["spec"]["ports"][0]["port"] == 9000
        },
    },
    Scenario {
        name: "LLMDeployment create",
        kind: "LLMDeployment",
        plugin: "llm-deployment",
        first: "llm-deployment",
        before: &[Step::Apply(first_model)],
        step: Step::Apply(llm_deployment),
        ends: |state| state.names().into_iter().eq(ALL_OF_A_DEPLOYMENT),
    },
    Scenario {
        name: "LLMDeployment update of its model",
        kind: "LLMDeployment",
        plugin: "llm-deployment",
        first: "llm-deployment",
        before: &[Step::Apply(first_model), Step::Apply(llm_deployment)],
        step: Step::Apply(second_model),
        ends: |state| {
            let container = &state.children["Deployment/web"]["spec"]["template"]["spec"]["containers"][0];
            container["image"] == "your-registry/gpt-small:v2"
        },
    },
    Scenario {
        name: "ModelDeployment create",
        kind: "ModelDeployment",
        plugin: "model-deployment",
        first: "model-deployment",
        before: &[],
        step: Step::Apply(first_model_deployment),
        ends: |state| state.names().into_iter().eq(ALL_OF_A_MODEL_DEPLOYMENT),
    },
    Scenario {
        name: "ModelDeployment update",
        kind: "ModelDeployment",
        plugin: "model-deployment",
        first: "model-deployment",
        before: &[Step::Apply(first_model_deployment)],
        step: Step::Apply(second_model_deployment),
        ends: |state| {
            let metric = &state.children["HorizontalPodAutoscaler/web"]["spec"]["metrics"][0]["external"];
            metric["target"]["value"] == "1" && state.children["Service/web"]["spec"]["ports"][0]["port"] == 9000
        },
    },
    Scenario {
        name: "ModelDeployment that gives up its autoscaler",
        kind: "ModelDeployment",
        plugin: "model-deployment",
        first: "model-deployment",
        before: &[Step::Apply(first_model_deployment)],
        step: Step::Apply(third_model_deployment),
        ends: |state| {
            let port = &state.children["Service/web"]["spec"]["ports"][0]["port"];
            *port == 9000 && !state.children.contains_key("HorizontalPodAutoscaler/web")
        },
    },
    Scenario {
        name: "LLMModel that is described",
        kind: llm::MODEL,
        plugin: "llm-model",
        first: "llm-model",
        before: &[],
        step: Step::Apply(described_model),
        ends: State::is_ready,
    },
    Scenario {
        name: "TrainingJob delete",
        kind: "TrainingJob",
        plugin: "training-job",
        first: "training-job",
        before: &[Step::Apply(training_job)],
        step: Step::Delete,
        ends: |state| state.object.is_none() && state.children.is_empty(),
    },
];

/// The children of an `LLMModel` of `ai.example.com`.
const ALL_OF_A_SERVER: [&str; 3] =
    ["Deployment/llmmodel-web", "PodDisruptionBudget/llmmodel-web", "Service/llmmodel-web"];

/// The children of a `ModelDeployment`.
const ALL_OF_A_MODEL_DEPLOYMENT: [&str; 6] = [
    "ConfigMap/web-settings",
    "HorizontalPodAutoscaler/web",
    "PodDisruptionBudget/web",
    "Service/web",
    "Service/web-headless",
    "StatefulSet/web",
];

/// The children of an `LLMDeployment`.
const ALL_OF_A_DEPLOYMENT: [&str; 3] = ["Deployment/web", "PodDisruptionBudget/web", "Service/web"];

/// The children of a `TrainingJob` that runs.
const ALL_OF_A_JOB: [&str; 4] =
    ["ConfigMap/web-hyperparameters", "Pod/web-worker-0", "Pod/web-worker-1", "Service/web"];

/// All children of a `Sextet`.
const ALL_SIX: [&str; 6] =
    ["ConfigMap/web-a", "ConfigMap/web-b", "Secret/web-a", "Secret/web-b", "Service/web-s", "ServiceAccount/web-s"];

fn first_server() -> Value {
    llm::server(NAME, json!({}))
}

/// One of the children goes, two change.
fn second_server() -> Value {
    llm::server(NAME, json!({"replicas": 1, "port": 9000, "image": "vllm/vllm-openai:v0.20.1"}))
}

fn first_model() -> Value {
    llm::model("gpt-small", json!({}))
}

fn second_model() -> Value {
    llm::model("gpt-small", json!({"image": "your-registry/gpt-small:v2"}))
}

fn llm_deployment() -> Value {
    llm::deployment(NAME, json!({}))
}

fn first_model_deployment() -> Value {
    llm::model_deployment(NAME, json!({"sla": {"maxLatency": "100ms"}}))
}

fn second_model_deployment() -> Value {
    llm::model_deployment(NAME, json!({"port": 9000, "sla": {"maxLatency": "1s"}}))
}

/// The autoscaler goes, and the spec decides.
fn third_model_deployment() -> Value {
    llm::model_deployment(
        NAME,
        json!({"port": 9000, "sla": {"maxLatency": "100ms"}, "autoscaling": {"autoscaler": "none"}}),
    )
}

fn described_model() -> Value {
    llm::model(NAME, json!({}))
}

fn farewell() -> Value {
    json!({
        "apiVersion": "test.pilothouse.dev/v1", "kind": "Farewell",
        "metadata": {"name": NAME}, "spec": {"letGo": true},
    })
}

fn first_app() -> Value {
    app(NAME)
}

fn second_app() -> Value {
    let mut app = app(NAME);
    app["spec"]["replicas"] = json!(5);
    app["spec"]["port"] = json!(9000);
    app
}

fn first_sextet() -> Value {
    sextet(NAME)
}

/// Worker 0 decides about the success of the job. The other worker runs on until it is cleaned up.
fn training_job() -> Value {
    words::named(
        NAME,
        json!({
            "successPolicy": "ChiefWorker", "hyperparameters": {"rate": 0.1},
            "runPolicy": {"restartScope": "Job", "cleanPodPolicy": "Running"},
        }),
    )
}

fn failed_pod() -> Value {
    let ended = json!({"exitCode": 137, "reason": "Error"});
    let container = json!({
        "name": "pytorch", "image": "example.com/train:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": ended},
    });
    json!({"phase": "Failed", "containerStatuses": [container]})
}

fn succeeded_pod() -> Value {
    json!({"phase": "Succeeded"})
}

fn sextet_with_two_values() -> Value {
    sextet_with(json!({"tempo": "largo", "key": "C"}))
}

/// A merge patch writes these, and owns them then.
fn sextet_with_other_values() -> Value {
    sextet_with(json!({"tempo": "presto", "key": "D"}))
}

fn sextet_with_one_value() -> Value {
    sextet_with(json!({"tempo": "presto"}))
}

fn sextet_with(data: Value) -> Value {
    let mut sextet = sextet(NAME);
    sextet["spec"]["data"] = data;
    sextet
}

fn second_sextet() -> Value {
    let mut sextet = sextet(NAME);
    sextet["spec"] = json!({
        "data": {"tempo": "presto"}, "secret": "dHdv", "port": 81,
        "without": ["ConfigMap/b", "ServiceAccount/s"],
    });
    sextet
}
