//! Services.

use serde_json::{Value, json};

use super::{
    Gone, Kind, Strategy,
    edit::{at, copy_field, default_to, elements_at, object_at},
    pod_spec::{check_protocol, is_port_name},
    selector,
};
use crate::api_server::{allocator::Allocator, causes::Causes, names::NameRule};

/// The types that are reached under an address of their own.
const WITH_ADDRESS: [&str; 3] = ["ClusterIP", "NodePort", "LoadBalancer"];

/// Services.
pub(super) static SERVICE: Strategy = Strategy {
    names: NameRule::ServiceLabel,
    create_on_update: true,
    gone: Gone::Object,
    default: fill_in,
    prepare_create: allocate,
    prepare_update: |new, old, _, allocator| {
        copy_field(old, new, "status");
        join_addresses(new, old);
        keep_allocated(new, old);
        give_up_ports(new, old);
        let kind = at(new, &["spec", "type"]).as_str().unwrap_or_default().to_owned();
        allocate_ports(new, &kind, allocator);
    },
    validate: check,
    validate_update: |new, old, _, causes| {
        let addresses = |object: &Value| at(object, &["spec", "clusterIPs"]).clone();
        let is_addressed =
            |object: &Value| at(object, &["spec", "type"]).as_str().is_some_and(|kind| WITH_ADDRESS.contains(&kind));
        if is_addressed(new) && is_addressed(old) && addresses(new) != addresses(old) && !addresses(old).is_null() {
            causes.invalid("spec.clusterIPs[0]", &addresses(new), "may not change once set");
        }
    },
    ..Strategy::USUAL
};

fn fill_in(object: &mut Value) {
    let Some(spec) = object_at(object, &["spec"]) else { return };
    default_to(spec, "sessionAffinity", "None");
    default_to(spec, "type", "ClusterIP");
    if spec.get("sessionAffinity").is_some_and(|affinity| affinity == "None") {
        spec.remove("sessionAffinityConfig");
    } else {
        default_to(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10800}}));
    }
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_external = spec.get("externalIPs").is_some() || ["NodePort", "LoadBalancer"].contains(&&*kind);
    if is_external {
        default_to(spec, "externalTrafficPolicy", "Cluster");
    }
    if WITH_ADDRESS.contains(&&*kind) {
        default_to(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default_to(spec, "allocateLoadBalancerNodePorts", true);
    }
    for port in elements_at(object, &["spec", "ports"]) {
        default_to(port, "protocol", "TCP");
        let target = port.get("targetPort");
        if target.is_none_or(|target| *target == 0 || *target == "") {
            let number = port.get("port").cloned().unwrap_or_default();
            port.insert("targetPort".to_owned(), number);
        }
    }
}

/// The two fields for the addresses follow each other: the one that somebody changed wins.
fn join_addresses(new: &mut Value, old: &Value) {
    let (all, one) = (at(new, &["spec", "clusterIPs"]).clone(), at(new, &["spec", "clusterIP"]).clone());
    let (old_all, old_one) = (at(old, &["spec", "clusterIPs"]), at(old, &["spec", "clusterIP"]));
    let Some(spec) = object_at(new, &["spec"]) else { return };
    match (one != *old_one, all != *old_all) {
        (true, false) if one.is_null() => drop(spec.remove("clusterIPs")),
        (true, _) if all.is_null() && !one.is_null() => drop(spec.insert("clusterIPs".to_owned(), json!([one]))),
        (true, false) if !one.is_null() => drop(spec.insert("clusterIPs".to_owned(), json!([one]))),
        (false, true) if all.is_null() => drop(spec.remove("clusterIP")),
        _ => {}
    }
}

fn allocate(object: &mut Value, _: &Kind, allocator: &mut Allocator) {
    object["status"] = json!({"loadBalancer": {}});
    join_addresses(object, &Value::Null);
    let kind = at(object, &["spec", "type"]).as_str().unwrap_or_default().to_owned();
    let Some(spec) = object_at(object, &["spec"]) else { return };
    if WITH_ADDRESS.contains(&&*kind) {
        if !spec.contains_key("clusterIP") {
            let address = allocator.address();
            spec.insert("clusterIP".to_owned(), address.as_str().into());
            spec.insert("clusterIPs".to_owned(), json!([address]));
        }
        let has_selector = spec.get("selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty());
        let is_open = spec.get("clusterIP").is_some_and(|address| address == "None") && !has_selector;
        default_to(spec, "ipFamilies", if is_open { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
        default_to(spec, "ipFamilyPolicy", if is_open { "RequireDualStack" } else { "SingleStack" });
    }
    allocate_ports(object, &kind, allocator);
}

fn allocate_ports(object: &mut Value, kind: &str, allocator: &mut Allocator) {
    if ["NodePort", "LoadBalancer"].contains(&kind) {
        for port in elements_at(object, &["spec", "ports"]) {
            if !port.contains_key("nodePort") {
                port.insert("nodePort".to_owned(), allocator.node_port().into());
            }
        }
    }
}

/// A Service that is no longer reached on every node gives up its ports there, unless somebody names other ones.
fn give_up_ports(new: &mut Value, old: &Value) {
    let ports = |object: &Value| -> Vec<Value> {
        let ports = at(object, &["spec", "ports"]).as_array().into_iter().flatten();
        ports.map(|port| port["nodePort"].clone()).collect()
    };
    let has_ports =
        |object: &Value| ["NodePort", "LoadBalancer"].iter().any(|kind| at(object, &["spec", "type"]) == kind);
    if has_ports(old) && !has_ports(new) {
        if ports(new) == ports(old) {
            elements_at(new, &["spec", "ports"]).for_each(|port| drop(port.remove("nodePort")));
        }
        if let Some(spec) = object_at(new, &["spec"]).filter(|spec| !spec.contains_key("externalIPs")) {
            let field = "externalTrafficPolicy";
            if spec.get(field) == Some(at(old, &["spec", field])) {
                spec.remove(field);
            }
        }
    }
}

/// An update that does not name what was allocated keeps it.
fn keep_allocated(new: &mut Value, old: &Value) {
    let is_addressed =
        |object: &Value| at(object, &["spec", "type"]).as_str().is_some_and(|kind| WITH_ADDRESS.contains(&kind));
    if !is_addressed(new) || !is_addressed(old) {
        return;
    }
    if let (Some(spec), Some(before)) = (object_at(new, &["spec"]), old["spec"].as_object()) {
        for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = before.get(name) {
                default_to(spec, name, value.clone());
            }
        }
    }
}

fn check(object: &Value, _: &Kind, causes: &mut Causes) {
    let spec = &object["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    if ports.is_empty() && spec["clusterIP"] != "None" && kind != "ExternalName" {
        causes.required("spec.ports", "");
    }
    if ![&WITH_ADDRESS[..], &["ExternalName"]].concat().contains(&kind) {
        causes.not_supported("spec.type", &spec["type"], &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    }
    if spec["clusterIP"] == "None" && ["NodePort", "LoadBalancer"].contains(&kind) {
        causes.invalid("spec.clusterIPs[0]", &spec["clusterIP"], "may not be set to 'None' for such services");
    }
    if !["ClientIP", "None"].contains(&spec["sessionAffinity"].as_str().unwrap_or_default()) {
        causes.not_supported("spec.sessionAffinity", &spec["sessionAffinity"], &["ClientIP", "None"]);
    }
    selector::check_labels(&spec["selector"], "spec.selector", causes);
    let mut names = Vec::new();
    let mut numbers = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            if ports.len() > 1 {
                causes.required(format!("{path}.name"), "");
            }
        } else if !crate::api_server::names::is_label(name) {
            causes.invalid(format!("{path}.name"), &port["name"], "must be a DNS label");
        } else if names.contains(&name) {
            causes.duplicate(format!("{path}.name"), &port["name"]);
        }
        names.push(name);
        let in_range = |value: &Value| value.as_i64().is_some_and(|number| (1..=65535).contains(&number));
        if !in_range(&port["port"]) {
            causes.invalid(format!("{path}.port"), &port["port"], "must be between 1 and 65535, inclusive");
        }
        check_protocol(port, &path, causes);
        let target = &port["targetPort"];
        if target.as_str().map_or(!in_range(target), |name| !is_port_name(name)) {
            causes.invalid(format!("{path}.targetPort"), target, "must be a port number or a port name");
        }
        let key = (&port["protocol"], &port["port"]);
        if numbers.contains(&key) {
            causes.duplicate(path, port);
        }
        numbers.push(key);
    }
}
