//! Pods.

use serde_json::{Map, Value, json};

use super::{
    Gone, Strategy,
    edit::{at, begin, copy_field, default_to, elements_at, object_at, raise_generation},
    pod_spec,
};
use crate::api_server::codec::compare_quantities;

/// Pods.
pub(super) static POD: Strategy = Strategy {
    has_generation: true,
    gone: Gone::Object,
    grace: |pod, requested| {
        let spec = at(pod, &["spec", "terminationGracePeriodSeconds"]).as_i64().unwrap_or(30);
        let is_over = ["Succeeded", "Failed"].iter().any(|phase| at(pod, &["status", "phase"]) == phase);
        let is_unscheduled = at(pod, &["spec", "nodeName"]).as_str().is_none_or(str::is_empty);
        let seconds = requested.unwrap_or(spec);
        Some(if is_over || is_unscheduled {
            0
        } else if seconds < 0 {
            1
        } else {
            seconds
        })
    },
    default: fill_in,
    prepare_create: |pod, _, _| {
        let class = quality_of_service(pod);
        begin(pod, json!({"phase": "Pending", "qosClass": class}));
    },
    prepare_update: |new, old, _, _| {
        copy_field(old, new, "status");
        raise_generation(new, old, &[&["spec"]]);
    },
    prepare_status: |new, old| {
        if at(new, &["status", "qosClass"]).is_null() {
            new["status"]["qosClass"] = at(old, &["status", "qosClass"]).clone();
        }
    },
    validate: |pod, _, causes| {
        pod_spec::check_spec(&pod["spec"], "spec", causes);
    },
    validate_update: |new, old, _, causes| {
        let grace = |pod: &Value| at(pod, &["spec", "terminationGracePeriodSeconds"]).as_i64().unwrap_or_default();
        let may_shorten = grace(old) < 0 && grace(new) == 1;
        let fixed = |pod: &Value| {
            let mut spec = pod["spec"].clone();
            for list in ["containers", "initContainers"] {
                elements_at(&mut spec, &[list]).for_each(|container| drop(container.remove("image")));
            }
            if let Some(spec) = spec.as_object_mut() {
                for field in ["activeDeadlineSeconds", "tolerations"] {
                    spec.remove(field);
                }
                if may_shorten {
                    spec.remove("terminationGracePeriodSeconds");
                }
            }
            spec
        };
        let deadline = |pod: &Value| at(pod, &["spec", "activeDeadlineSeconds"]).as_i64();
        for list in ["containers", "initContainers"] {
            let count = |pod: &Value| at(pod, &["spec", list]).as_array().map_or(0, Vec::len);
            if count(new) != count(old) {
                return causes.forbidden(format!("spec.{list}"), "pod updates may not add or remove containers");
            }
        }
        let value = at(new, &["spec", "activeDeadlineSeconds"]);
        match (deadline(old), deadline(new)) {
            (Some(before), Some(now)) if now > before => {
                let why = "must be less than or equal to previous value";
                return causes.invalid("spec.activeDeadlineSeconds", value, why);
            }
            (Some(_), None) => {
                let why = "must not update from a positive integer to nil value";
                causes.invalid("spec.activeDeadlineSeconds", value, why);
            }
            _ => {}
        }
        let tolerations = |pod: &Value| at(pod, &["spec", "tolerations"]).as_array().cloned().unwrap_or_default();
        let (before, now) = (tolerations(old), tolerations(new));
        let loses_tolerations = before.iter().any(|known| !now.contains(known));
        if loses_tolerations || fixed(new) != fixed(old) {
            causes.forbidden("spec", "pod updates may not change fields other than some");
        }
    },
    ..Strategy::USUAL
};

fn fill_in(pod: &mut Value) {
    for list in ["initContainers", "containers"] {
        for container in elements_at(pod, &["spec", list]) {
            let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else { continue };
            let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { continue };
            default_to(resources, "requests", json!({}));
            if let Some(requests) = resources.get_mut("requests").and_then(Value::as_object_mut) {
                limits.into_iter().for_each(|(name, limit)| default_to(requests, &name, limit));
            }
        }
    }
    if object_at(pod, &["spec"]).is_some() {
        pod_spec::default_spec(&mut pod["spec"]);
    }
    if let Some(spec) = object_at(pod, &["spec"]) {
        default_to(spec, "enableServiceLinks", true);
    }
    if let Some(status) = object_at(pod, &["status"]) {
        match_addresses(status);
    }
}

/// The only address is the first of all addresses, whichever of both fields is given. Where they differ, the former counts.
fn match_addresses(status: &mut Map<String, Value>) {
    let first = status.get("podIPs").and_then(|all| all.pointer("/0/ip")).cloned();
    match (status.get("podIP").cloned(), first) {
        (None, Some(first)) => drop(status.insert("podIP".to_owned(), first)),
        (Some(address), first) if first.as_ref() != Some(&address) => {
            status.insert("podIPs".to_owned(), json!([{"ip": address}]));
        }
        _ => {}
    }
}

/// What admission adds to every new Pod: its priority, and how long it stays on a node that is lost.
pub(crate) fn admit(pod: &mut Value) {
    let Some(spec) = object_at(pod, &["spec"]) else { return };
    default_to(spec, "priority", 0);
    default_to(spec, "preemptionPolicy", "PreemptLowerPriority");
    let mut tolerations = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerates = |known: &Value| {
            let is_key = known["key"] == key || known["key"].as_str().is_none_or(str::is_empty);
            is_key && (known["effect"] == "NoExecute" || known["effect"].as_str().is_none_or(str::is_empty))
        };
        if !tolerations.iter().any(tolerates) {
            let seconds = json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
            tolerations.push(seconds);
        }
    }
    spec.insert("tolerations".to_owned(), tolerations.into());
}

fn quality_of_service(pod: &Value) -> &'static str {
    let lists = ["containers", "initContainers"];
    let containers = || lists.iter().flat_map(|list| at(pod, &["spec", list]).as_array().into_iter().flatten());
    let quantity = |container: &Value, list: &str, name: &str| {
        let quantity = at(container, &["resources", list, name]).as_str().map(str::to_owned);
        quantity.filter(|quantity| compare_quantities(quantity, "0").is_some_and(std::cmp::Ordering::is_gt))
    };
    let names = ["cpu", "memory"];
    let has_any = |container: &Value| {
        ["limits", "requests"].iter().any(|list| names.iter().any(|name| quantity(container, list, name).is_some()))
    };
    let is_fixed = |container: &Value| {
        names.iter().all(|name| {
            let limit = quantity(container, "limits", name);
            limit.is_some() && limit == quantity(container, "requests", name)
        })
    };
    if !containers().any(has_any) {
        "BestEffort"
    } else if containers().all(is_fixed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
