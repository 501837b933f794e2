//! The container of a server. Its name, its port and the variables that it is configured by are fixed; a Pod template of the user may
//! change the rest.

use crate::engine::{ModelReference, ServerSettings};
use crate::model_volume;
use crate::probes;
use crate::server::Server;
use pilothouse_pods::fields::{remove_if_empty, set_unless_empty};
use pilothouse_pods::security::{self, Capabilities};
use pilothouse_pods::variable::{literal, variable};
use serde_json::{Value, json};

/// The name of the container.
pub const NAME: &str = "model";

/// The name of its port.
pub const PORT_NAME: &str = "http";

/// The variables that the server is configured by. Users cannot set them.
pub const RESERVED: [&str; 2] = ["MODEL_NAME", "PORT"];

/// The container.
pub fn container(server: &Server<'_>, mounts: &[Value]) -> Value {
    let model = server.spec.model;
    let mut container = json!({
        "name": NAME,
        "image": server.image,
        "env": environment(server),
        "ports": [{ "name": PORT_NAME, "containerPort": server.port, "protocol": "TCP" }],
        "securityContext": security::of_container(Capabilities::Dropped),
        // The last log lines of a failed container become its termination message, which the object's condition repeats.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    let command = if model.command.is_empty() { &server.engine.command } else { &model.command };
    set_unless_empty(&mut container, "command", json!(command));
    set_unless_empty(&mut container, "args", json!(arguments(server)));
    set_unless_empty(&mut container, "envFrom", env_from(server));
    set_unless_empty(&mut container, "imagePullPolicy", json!(model.image_pull_policy));
    set_unless_empty(&mut container, "resources", resources(server));
    set_unless_empty(&mut container, "volumeMounts", json!(mounts));
    probes::set(server, &mut container);
    if server.drain_seconds() > 0 {
        container["lifecycle"] = json!({ "preStop": { "sleep": { "seconds": server.drain_seconds() } } });
    }
    container
}

/// The arguments: those of the engine, then the user's own. Who gives another command gives all its arguments.
fn arguments(server: &Server<'_>) -> Vec<String> {
    let model = server.spec.model;
    if !model.command.is_empty() {
        return model.args.clone();
    }
    let (location, name) = (literal(model_volume::location(server)), literal(server.spec.model_name));
    let reference = ModelReference { location: &location, name: &name };
    let settings = ServerSettings {
        image: &server.image,
        parallelism: server.gpus.parallelism,
        port: Some(server.port).filter(|port| *port != server.engine.port),
        shutdown_seconds: server.grace_seconds().saturating_sub(server.drain_seconds()),
        adapters: &model.lora_adapters,
    };
    let own = server.engine.arguments.of(reference, settings);
    own.into_iter().chain(model.args.iter().cloned()).collect()
}

/// The variables: those that the server is configured by come first, so that the user's can refer to them.
fn environment(server: &Server<'_>) -> Vec<Value> {
    let own = [variable("MODEL_NAME", &literal(server.spec.model_name)), variable("PORT", &server.port.to_string())];
    let users = server.spec.model.env.iter().map(|given| {
        let mut given = json!(given);
        remove_if_empty(&mut given, "value");
        given
    });
    own.into_iter().chain(users).collect()
}

fn env_from(server: &Server<'_>) -> Value {
    let sources = server.spec.model.env_from.iter().map(|from| {
        let mut from = json!(from);
        remove_if_empty(&mut from, "prefix");
        from
    });
    sources.collect()
}

fn resources(server: &Server<'_>) -> Value {
    let mut resources = json!(server.spec.resources);
    server.gpus.add_to(&mut resources);
    resources
}
