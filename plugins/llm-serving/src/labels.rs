//! The labels of a server's children, and the selector that finds its Pods. The selector never changes while the object lives, and
//! no label of a user is in it.

use crate::clients::Clients;
use crate::server::Server;
use crate::server_spec::Identity;
use pilothouse_pods::name::label_value;
use serde_json::{Value, json};

/// The label with the name of the workload, by which its Pods are found.
pub const INSTANCE: &str = "app.kubernetes.io/instance";

/// The label with the kind of the object, which tells the Pods of two kinds apart that have objects of one name.
pub const COMPONENT: &str = "app.kubernetes.io/component";

/// The label with the name of the model.
pub const MODEL: &str = "llm.example.com/model";

/// The label that tells the Service of clients from a headless one, and its value.
pub const SERVICE: (&str, &str) = ("llm.example.com/service", "clients");

/// The label that the controller of LeaderWorkerSets sets: the place of a Pod in its group.
const WORKER_INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";

/// The place of a leader.
const LEADER: &str = "0";

/// The labels by which the Pods of a server are found.
pub fn selector(identity: &Identity<'_>) -> Value {
    json!({ INSTANCE: identity.workload, COMPONENT: identity.component })
}

/// The same as text.
pub fn selector_text(identity: &Identity<'_>) -> String {
    format!("{COMPONENT}={},{INSTANCE}={}", identity.component, identity.workload)
}

/// The labels by which the Pods of a server are found that clients talk to.
pub fn clients_selector(server: &Server<'_>) -> Value {
    let mut labels = selector(&server.spec.identity);
    if server.clients == Clients::Leaders {
        labels[WORKER_INDEX] = json!(LEADER);
    }
    labels
}

/// The same as text.
pub fn clients_selector_text(server: &Server<'_>) -> String {
    let all = selector_text(&server.spec.identity);
    match server.clients {
        Clients::All => all,
        Clients::Leaders => format!("{all},{WORKER_INDEX}={LEADER}"),
    }
}

/// The labels of every child of a server.
pub fn of(server: &Server<'_>) -> Value {
    let mut labels = selector(&server.spec.identity);
    labels["app.kubernetes.io/name"] = json!("llm-server");
    labels[MODEL] = json!(label_value(server.spec.model_name));
    labels
}
