//! What Pods and the templates for Pods have in common: defaults and checks of a Pod's spec.

use serde_json::{Map, Value, json};

use super::edit::{at, default_to, elements_at};
use crate::api_server::{
    causes::Causes,
    codec::compare_quantities,
    names::{is_label, is_qualified_name},
};

/// Fills in the defaults of a Pod's spec.
pub(super) fn default_spec(spec: &mut Value) {
    for list in ["initContainers", "containers"] {
        elements_at(spec, &[list]).for_each(default_container);
    }
    elements_at(spec, &["volumes"]).for_each(default_volume);
    let Some(spec) = spec.as_object_mut() else { return };
    default_to(spec, "dnsPolicy", "ClusterFirst");
    default_to(spec, "restartPolicy", "Always");
    default_to(spec, "securityContext", json!({}));
    default_to(spec, "terminationGracePeriodSeconds", 30);
    default_to(spec, "schedulerName", "default-scheduler");
    if spec.get("serviceAccountName").is_none()
        && let Some(name) = spec.get("serviceAccount").cloned()
    {
        spec.insert("serviceAccountName".to_owned(), name);
    }
    if let Some(name) = spec.get("serviceAccountName").cloned() {
        spec.insert("serviceAccount".to_owned(), name);
    }
}

fn default_container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if tag(image) == "latest" { "Always" } else { "IfNotPresent" };
    default_to(container, "imagePullPolicy", policy);
    default_to(container, "terminationMessagePath", "/dev/termination-log");
    default_to(container, "terminationMessagePolicy", "File");
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).and_then(Value::as_object_mut) {
            for (name, value) in
                [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
            {
                default_to(probe, name, value);
            }
            if let Some(get) = probe.get_mut("httpGet").and_then(Value::as_object_mut) {
                default_to(get, "path", "/");
                default_to(get, "scheme", "HTTP");
            }
        }
    }
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef").and_then(Value::as_object_mut) {
            default_to(field, "apiVersion", "v1");
        }
    }
}

/// The tag of an image; `latest` if it has neither a tag nor a digest.
fn tag(image: &str) -> &str {
    let name = image.rsplit_once('/').map_or(image, |(_, name)| name);
    let (name, has_digest) = name.split_once('@').map_or((name, false), |(name, _)| (name, true));
    name.split_once(':').map_or(if has_digest { "" } else { "latest" }, |(_, tag)| tag)
}

fn default_volume(volume: &mut Map<String, Value>) {
    if !volume.keys().any(|name| name != "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            default_to(source, "defaultMode", 420);
        }
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        default_to(path, "type", "");
    }
}

/// Checks a Pod's spec. `path` is where it is.
pub(super) fn check_spec(spec: &Value, path: &str, causes: &mut Causes) {
    let volumes = named(spec, "volumes");
    check_names(spec, ("volumes", path), is_label, causes);
    let containers = spec["containers"].as_array().map_or(0, Vec::len);
    if containers == 0 {
        causes.required(format!("{path}.containers"), "");
    }
    let mut known = Vec::new();
    for list in ["containers", "initContainers"] {
        for (index, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}.{list}[{index}]");
            let name = container["name"].as_str().unwrap_or_default();
            if name.is_empty() {
                causes.required(format!("{path}.name"), "");
            } else if !is_label(name) {
                causes.invalid(format!("{path}.name"), &container["name"], "must be a DNS label");
            } else if known.contains(&name) {
                causes.duplicate(format!("{path}.name"), &container["name"]);
            }
            known.push(name);
            check_container(container, &path, &volumes, causes);
        }
    }
    for (field, values) in [
        ("restartPolicy", ["Always", "OnFailure", "Never"].as_slice()),
        ("dnsPolicy", &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]),
    ] {
        if spec[field].as_str().is_none_or(|value| !values.contains(&value)) {
            causes.not_supported(format!("{path}.{field}"), &spec[field], values);
        }
    }
}

fn named<'s>(spec: &'s Value, list: &str) -> Vec<&'s str> {
    spec[list].as_array().into_iter().flatten().filter_map(|element| element["name"].as_str()).collect()
}

fn check_names(spec: &Value, (list, path): (&str, &str), fits: fn(&str) -> bool, causes: &mut Causes) {
    let names = named(spec, list);
    for (index, name) in names.iter().enumerate() {
        let field = format!("{path}.{list}[{index}].name");
        if name.is_empty() {
            causes.required(field, "");
        } else if !fits(name) {
            causes.invalid(field, &(*name).into(), "must be a DNS label");
        } else if names.iter().position(|other| other == name) != Some(index) {
            causes.duplicate(field, &(*name).into());
        }
    }
}

fn check_container(container: &Value, path: &str, volumes: &[&str], causes: &mut Causes) {
    let image = container["image"].as_str().unwrap_or_default();
    if image.is_empty() {
        causes.required(format!("{path}.image"), "");
    } else if image.trim() != image {
        causes.invalid(format!("{path}.image"), &container["image"], "must not have leading or trailing whitespace");
    }
    check_policy(container, path, causes);
    check_ports(container, path, causes);
    for (index, variable) in container["env"].as_array().into_iter().flatten().enumerate() {
        if variable["name"].as_str().is_none_or(str::is_empty) {
            causes.required(format!("{path}.env[{index}].name"), "");
        }
        if variable["value"].as_str().is_some_and(|value| !value.is_empty()) && variable["valueFrom"].is_object() {
            causes.invalid(
                format!("{path}.env[{index}].valueFrom"),
                &"".into(),
                "may not be specified when `value` is not empty",
            );
        }
    }
    for (index, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.volumeMounts[{index}]");
        let name = mount["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.required(format!("{path}.name"), "");
        } else if !volumes.contains(&name) {
            causes.add("FieldValueNotFound", format!("{path}.name"), format!("Not found: {name:?}"));
        }
        if mount["mountPath"].as_str().is_none_or(str::is_empty) {
            causes.required(format!("{path}.mountPath"), "");
        }
    }
    check_resources(&container["resources"], &format!("{path}.resources"), causes);
}

fn check_policy(container: &Value, path: &str, causes: &mut Causes) {
    for (field, values) in [
        ("imagePullPolicy", ["Always", "IfNotPresent", "Never"].as_slice()),
        ("terminationMessagePolicy", &["FallbackToLogsOnError", "File"]),
    ] {
        if container[field].as_str().is_none_or(|value| !values.contains(&value)) {
            causes.not_supported(format!("{path}.{field}"), &container[field], values);
        }
    }
}

fn check_ports(container: &Value, path: &str, causes: &mut Causes) {
    let mut names = Vec::new();
    for (index, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.ports[{index}]");
        if let Some(name) = port["name"].as_str().filter(|name| !name.is_empty()) {
            if !is_port_name(name) {
                causes.invalid(format!("{path}.name"), &port["name"], "must be a port name");
            } else if names.contains(&name) {
                causes.duplicate(format!("{path}.name"), &port["name"]);
            }
            names.push(name);
        }
        match port["containerPort"].as_i64().unwrap_or_default() {
            0 => causes.required(format!("{path}.containerPort"), ""),
            1..=65535 => {}
            _ => causes.invalid(
                format!("{path}.containerPort"),
                &port["containerPort"],
                "must be between 1 and 65535, inclusive",
            ),
        }
        check_protocol(port, &path, causes);
    }
}

/// Checks the protocol of a port.
pub(super) fn check_protocol(port: &Value, path: &str, causes: &mut Causes) {
    let values = ["SCTP", "TCP", "UDP"];
    match port["protocol"].as_str().unwrap_or_default() {
        "" => causes.required(format!("{path}.protocol"), ""),
        protocol if values.contains(&protocol) => {}
        _ => causes.not_supported(format!("{path}.protocol"), &port["protocol"], &values),
    }
}

/// Whether a text can be the name of a port.
pub(super) fn is_port_name(name: &str) -> bool {
    is_label(name) && name.len() <= 15 && name.contains(|c: char| c.is_ascii_lowercase()) && !name.contains("--")
}

/// Checks limits and requests.
pub(super) fn check_resources(resources: &Value, path: &str, causes: &mut Causes) {
    for list in ["limits", "requests"] {
        for (name, quantity) in resources[list].as_object().into_iter().flatten() {
            let field = format!("{path}.{list}[{name}]");
            if !is_qualified_name(name) || (!name.contains('/') && !is_standard(name)) {
                causes.invalid(
                    format!("{path}.{list}[{name}]"),
                    &name.as_str().into(),
                    "must be a standard resource type or fully qualified",
                );
            }
            if quantity.as_str().is_some_and(|quantity| quantity.starts_with('-')) {
                causes.invalid(field, quantity, "must be greater than or equal to 0");
            }
        }
    }
    for (name, request) in resources["requests"].as_object().into_iter().flatten() {
        let limit = at(resources, &["limits", name]);
        let order =
            request.as_str().zip(limit.as_str()).and_then(|(request, limit)| compare_quantities(request, limit));
        if order.is_some_and(std::cmp::Ordering::is_gt) {
            causes.invalid(format!("{path}.requests"), request, &format!("must be less than or equal to {name} limit"));
        }
    }
}

fn is_standard(name: &str) -> bool {
    ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with("hugepages-")
}
