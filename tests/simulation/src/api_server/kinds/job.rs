//! Jobs.

use serde_json::{Map, Value, json};

use super::{
    Strategy, apps,
    edit::{at, begin, copy_field, default_to, object_at, raise_generation},
    pod_spec, selector,
};
use crate::api_server::causes::Causes;

/// The labels by which a Job finds its Pods.
const LABELS: [(&str, bool); 4] = [
    ("batch.kubernetes.io/controller-uid", true),
    ("batch.kubernetes.io/job-name", false),
    ("controller-uid", true),
    ("job-name", false),
];

/// Jobs.
pub(super) static JOB: Strategy = Strategy {
    has_generation: true,
    orphans_dependents: true,
    default: |object| {
        if object_at(object, &["spec", "template", "spec"]).is_some() {
            pod_spec::default_spec(&mut object["spec"]["template"]["spec"]);
        }
        let labels = at(object, &["spec", "template", "metadata", "labels"]).clone();
        if let Some(metadata) = object_at(object, &["metadata"]) {
            let has_labels = metadata.get("labels").and_then(Value::as_object).is_some_and(|labels| !labels.is_empty());
            if !has_labels && labels.as_object().is_some_and(|labels| !labels.is_empty()) {
                metadata.insert("labels".to_owned(), labels);
            }
        }
        let Some(spec) = object_at(object, &["spec"]) else { return };
        if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
            spec.insert("completions".to_owned(), 1.into());
        }
        default_to(spec, "parallelism", 1);
        let by_index = spec.contains_key("backoffLimitPerIndex");
        default_to(spec, "backoffLimit", if by_index { i64::from(i32::MAX) } else { 6 });
        default_to(spec, "completionMode", "NonIndexed");
        default_to(spec, "suspend", false);
        let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
        default_to(spec, "podReplacementPolicy", replacement);
        default_to(spec, "manualSelector", false);
    },
    is_completed_by_reads: |object| {
        // A read shows the labels of the template, which come after the defaults if nobody gives any.
        let is_missing = |labels: &Value| labels.as_object().is_none_or(Map::is_empty);
        let own = at(object, &["metadata", "labels"]);
        is_missing(own) && is_missing(at(object, &["spec", "template", "metadata", "labels"]))
    },
    prepare_create: |object, _, _| {
        generate_selector(object);
        begin(object, json!({}));
    },
    prepare_update: |new, old, _, _| {
        copy_field(old, new, "status");
        raise_generation(new, old, &[&["spec"]]);
    },
    validate: |object, _, causes| {
        check_generated(object, causes);
        let spec = &object["spec"];
        if spec["completionMode"] == "Indexed" && spec["completions"].is_null() {
            causes.required("spec.completions", "when completion mode is Indexed");
        }
        apps::check_not_negative(
            spec,
            &["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"],
            causes,
        );
        if spec["selector"].is_null() {
            causes.required("spec.selector", "");
        } else {
            selector::check_selector(&spec["selector"], "spec.selector", causes);
        }
        let labels = at(spec, &["template", "metadata", "labels"]);
        if spec["selector"].is_null() || !selector::selects(&spec["selector"], labels) {
            causes.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`");
        }
        apps::check_template(&spec["template"], "spec.template", causes);
        let policy = at(spec, &["template", "spec", "restartPolicy"]);
        if policy == "Always" {
            causes.required("spec.template.spec.restartPolicy", "valid values: \"OnFailure\", \"Never\"");
        }
    },
    validate_update: |new, old, _, causes| {
        apps::check_same(new, old, &["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"], causes);
        let spec = &new["spec"];
        // Without completions an Indexed Job is refused anyway.
        let is_missing = spec["completions"].is_null() || at(old, &["spec", "completions"]).is_null();
        let is_elastic = is_missing || spec["completions"] == spec["parallelism"];
        if spec["completionMode"] != "Indexed" || !is_elastic {
            apps::check_same(new, old, &["completions"], causes);
        }
        let is_suspended = old["spec"]["suspend"] == true && at(old, &["status", "startTime"]).is_null();
        let fixed = |job: &Value| if is_suspended { without_directives(job) } else { job["spec"]["template"].clone() };
        if fixed(new) != fixed(old) {
            causes.invalid("spec.template", &spec["template"], "field is immutable");
        }
    },
    validate_status: |new, old, _, causes| {
        let start = |job: &Value| at(job, &["status", "startTime"]).clone();
        if new["spec"]["suspend"] != true && !start(old).is_null() && start(new).is_null() {
            causes.required("status.startTime", "startTime cannot be removed for unsuspended job");
        }
    },
    ..Strategy::USUAL
};

/// The template of a Job without what tells the scheduler where Pods go, which can change before they are there.
fn without_directives(job: &Value) -> Value {
    let mut template = at(job, &["spec", "template"]).clone();
    for (place, names) in [
        ("metadata", ["labels", "annotations"].as_slice()),
        ("spec", &["nodeSelector", "affinity", "tolerations", "schedulingGates"]),
    ] {
        if let Some(object) = object_at(&mut template, &[place]) {
            names.iter().for_each(|name| drop(object.remove(*name)));
        }
    }
    template
}

/// Checks that the labels for a generated selector are as the server made them.
fn check_generated(object: &Value, causes: &mut Causes) {
    let spec = &object["spec"];
    if spec["manualSelector"] == true || spec["selector"].is_null() {
        return;
    }
    let labels = at(spec, &["template", "metadata", "labels"]);
    if at(spec, &["selector", "matchLabels", "batch.kubernetes.io/controller-uid"]) != &object["metadata"]["uid"] {
        causes.invalid("spec.selector", &spec["selector"], "`selector` not auto-generated");
    }
    for (label, is_uid) in LABELS {
        let expected = &object["metadata"][if is_uid { "uid" } else { "name" }];
        let field = format!("spec.template.metadata.labels[{label}]");
        match labels.get(label) {
            None => causes.required(field, "must be as the server says"),
            Some(found) if found != expected => causes.invalid(field, found, "must be as the server says"),
            Some(_) => {}
        }
    }
}

/// Gives a new Job its selector, and its Pods the labels for it.
fn generate_selector(object: &mut Value) {
    if at(object, &["spec", "manualSelector"]) == true {
        return;
    }
    let (uid, name) = (object["metadata"]["uid"].clone(), object["metadata"]["name"].clone());
    // A Job without labels of its own shows those of its template.
    let template = ["spec", "template", "metadata", "labels"];
    let has_own_name = at(object, &["metadata", "generateName"]).is_null();
    let shares_labels = has_own_name && at(object, &["metadata", "labels"]) == at(object, &template);
    if let Some(labels) = object_at(object, &template) {
        for (label, is_uid) in LABELS {
            default_to(labels, label, if is_uid { uid.clone() } else { name.clone() });
        }
    }
    if shares_labels {
        object["metadata"]["labels"] = at(object, &template).clone();
    }
    if let Some(selector) = object_at(object, &["spec", "selector", "matchLabels"]) {
        default_to(selector, "batch.kubernetes.io/controller-uid", uid);
    }
}
