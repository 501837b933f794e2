//! Refuses a merged Pod template that would break the server: what finds its Pods, its port, what it is configured by, what tells Pods
//! apart. Whether the rest is a Pod template at all, the API server says.

use crate::container::{NAME, PORT_NAME, RESERVED};
use crate::labels;
use crate::server::Server;
use crate::spec_error::TemplateError;
use pilothouse_pods::variable::literal;
use serde_json::{Value, json};

/// Fields of a Pod that would give all Pods of a workload one name.
const IDENTITY: [&str; 3] = ["hostname", "subdomain", "nodeName"];

/// Checks a merged template.
///
/// # Errors
/// The first thing that would break the server.
pub fn check(template: &Value, server: &Server<'_>) -> Result<(), TemplateError> {
    shape(template)?;
    selector_labels(template, server)?;
    let containers = template["spec"]["containers"].as_array().into_iter().flatten();
    let container =
        containers.into_iter().find(|container| container["name"] == NAME).ok_or(TemplateError::NoServer)?;
    port(container, server.port)?;
    variables(container, server)?;
    pod(&template["spec"])
}

fn shape(template: &Value) -> Result<(), TemplateError> {
    let objects = ["/metadata", "/metadata/labels", "/spec"];
    let lists = ["/spec/containers"];
    let wrong_object = objects.iter().find(|pointer| !template.pointer(pointer).is_some_and(Value::is_object));
    let wrong_list = lists.iter().find(|pointer| !template.pointer(pointer).is_some_and(Value::is_array));
    match wrong_object.or(wrong_list) {
        Some(pointer) => Err(TemplateError::Shape(pointer.trim_start_matches('/').replace('/', "."))),
        None => Ok(()),
    }
}

fn selector_labels(template: &Value, server: &Server<'_>) -> Result<(), TemplateError> {
    let selector = labels::selector(&server.spec.identity);
    let mut wanted = selector.as_object().into_iter().flatten();
    match wanted.find(|(label, value)| template["metadata"]["labels"].get(label.as_str()) != Some(*value)) {
        Some((label, _)) => Err(TemplateError::SelectorLabel(label.clone())),
        None => Ok(()),
    }
}

fn port(container: &Value, port: u32) -> Result<(), TemplateError> {
    let mut ports = container["ports"].as_array().into_iter().flatten();
    let named: Vec<_> = ports.by_ref().filter(|given| given["name"] == PORT_NAME).collect();
    match &named[..] {
        [only] if only["containerPort"] == port && only["protocol"] == "TCP" => Ok(()),
        _ => Err(TemplateError::Port { port }),
    }
}

fn variables(container: &Value, server: &Server<'_>) -> Result<(), TemplateError> {
    let expected = [json!(literal(server.spec.model_name)), json!(server.port.to_string())];
    for (name, value) in RESERVED.iter().zip(expected) {
        let mut given = container["env"].as_array().into_iter().flatten().filter(|given| given["name"] == *name);
        let is_same = given.next().is_some_and(|given| given["value"] == value) && given.next().is_none();
        if !is_same {
            return Err(TemplateError::Variable((*name).to_owned()));
        }
    }
    Ok(())
}

fn pod(spec: &Value) -> Result<(), TemplateError> {
    if let Some(policy) = spec["restartPolicy"].as_str().filter(|policy| *policy != "Always") {
        return Err(TemplateError::RestartPolicy(policy.to_owned()));
    }
    match IDENTITY.iter().find(|field| spec.get(**field).is_some()) {
        Some(field) => Err(TemplateError::Identity(field)),
        None => Ok(()),
    }
}
