//! The CRD of `TrainingJob`, made from the API types. It is only compiled to write the file under `crds/` and to check that
//! file; neither the plugin nor the host needs it.

use crate::api::{TrainingJobSpec, TrainingJobStatus};
use crate::children::environment::RESERVED;
use crate::validate::LONGEST_NAME;
use pilothouse_sdk::crd::{Definition, definition, schema_of, status_of};
use serde_json::{Map, Value, json};

/// What stands above the YAML.
const HEADER: &str = "\
# The kind TrainingJob, made from plugins/training-job/src/api.rs. Do not edit; make it anew with
#   cargo run -p training-job --example training-job-crd
";

/// What the conditions tell.
const CONDITIONS: &str = "How the job is: Created, Running, Restarting, Suspended, Succeeded, Failed, Ready, and the \
                          host's own.";

/// Words and numbers of the spec, by their path and what stands for one that is left out, that cannot change once the job has
/// started: its Pods could not follow.
const FIXED_WHEN_STARTED: [(&[&str], &str); 5] = [
    (&["parameterServers"], "0"),
    (&["successPolicy"], "''"),
    (&["runPolicy", "restartPolicy"], "''"),
    (&["runPolicy", "restartScope"], "''"),
    (&["runPolicy", "managedBy"], "''"),
];

/// Pods that request more than they may use are refused, when their Service is made already.
const REQUESTS_WITHIN_LIMITS: &str = "!has(self.requests) || !has(self.limits) || self.requests.all(name, !(name in \
                                      self.limits) || quantity(string(self.requests[name])).compareTo(quantity(string(\
                                      self.limits[name]))) <= 0)";

/// What cannot be added or taken away once the job has started.
const THERE_WHEN_STARTED: [&str; 2] = ["elastic", "gangScheduling"];

/// The file's text.
///
/// # Errors
/// The schema cannot be written as YAML, which no schema of ours is.
pub fn yaml() -> Result<String, pilothouse_sdk::Error> {
    pilothouse_sdk::crd::yaml(HEADER, &crd())
}

/// The CRD.
pub fn crd() -> Value {
    definition(Definition {
        group: "ml.example.com",
        version: "v1alpha1",
        kind: "TrainingJob",
        short_names: &["tj"],
        replicas: ".spec.workers",
        columns: &[
            ("Framework", "string", ".spec.framework"),
            ("Workers", "integer", ".spec.workers"),
            ("Phase", "string", ".status.phase"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ],
        schema: schema(),
    })
}

fn schema() -> Value {
    json!({
        "description": "A distributed training job: Pods with stable names that know each other, followed to their end.",
        "type": "object",
        "required": ["spec"],
        "properties": { "spec": spec(), "status": plain(status_of::<TrainingJobStatus>(CONDITIONS)) },
        "x-kubernetes-validations": about_the_object(),
    })
}

fn spec() -> Value {
    let mut spec = plain(schema_of::<TrainingJobSpec>());
    spec["required"] = json!(["framework", "workers", "image", "command"]);
    let fields = &mut spec["properties"];
    fields["framework"]["x-kubernetes-validations"] = rules(&[("self == oldSelf", "the framework cannot change")]);
    fields["env"]["x-kubernetes-list-type"] = json!("map");
    fields["env"]["x-kubernetes-list-map-keys"] = json!(["name"]);
    fields["env"]["items"]["x-kubernetes-validations"] = rules(&[
        (&format!("!(self.name in {})", json!(RESERVED)), "this name tells workers apart and is set for each of them"),
        ("!(has(self.value) && has(self.valueFrom))", "give value or valueFrom, not both"),
    ]);
    fields["env"]["items"]["properties"]["valueFrom"]["x-kubernetes-validations"] =
        one_of(&["configMapKeyRef", "secretKeyRef", "fieldRef"]);
    fields["envFrom"]["items"]["x-kubernetes-validations"] = one_of(&["configMapRef", "secretRef"]);
    fields["resources"]["x-kubernetes-validations"] =
        rules(&[(REQUESTS_WITHIN_LIMITS, "requests must be at most limits, or no Pod can be made")]);
    fields["checkpointDir"]["x-kubernetes-validations"] =
        rules(&[("!self.split('/').exists(part, part in ['.', '..'])", "the path cannot have '.' or '..' in it")]);
    spec["x-kubernetes-validations"] = about_the_spec();
    spec
}

fn about_the_spec() -> Value {
    let servers = "self.framework == 'tensorflow' || !has(self.parameterServers) || self.parameterServers == 0";
    let bounds = "!has(self.elastic) || self.elastic.minWorkers <= self.elastic.maxWorkers";
    let within = "!has(self.elastic) || (self.workers >= self.elastic.minWorkers && self.workers <= \
                  self.elastic.maxWorkers)";
    rules(&[
        (servers, "parameterServers is for framework tensorflow only"),
        ("!has(self.elastic) || self.framework == 'pytorch'", "elastic is for framework pytorch only"),
        (bounds, "elastic.minWorkers must be at most elastic.maxWorkers"),
        (within, "workers must be between elastic.minWorkers and elastic.maxWorkers"),
    ])
}

fn about_the_object() -> Value {
    let length = format!("size(self.metadata.name) <= {LONGEST_NAME}");
    let too_long = format!("names of Pods are made of the job's, so it can have at most {LONGEST_NAME} characters");
    let values = FIXED_WHEN_STARTED.iter().map(|(path, default)| same_value(path, default));
    let parts = THERE_WHEN_STARTED.iter().map(|field| format!("has(self.spec.{field}) == has(oldSelf.spec.{field})"));
    let fixed = values.chain(parts).collect::<Vec<_>>().join(" && ");
    let started = format!("!has(oldSelf.status) || !has(oldSelf.status.startTime) || ({fixed})");
    let paths = FIXED_WHEN_STARTED.iter().map(|(path, _)| path.join("."));
    let named = paths.chain(THERE_WHEN_STARTED.map(str::to_owned)).collect::<Vec<_>>().join(", ");
    let cannot = format!("{named} cannot change once the job has started; delete the job and make it anew");
    let kept = ["workers", "image", "command"].map(|field| format!("self.spec.{field} == oldSelf.spec.{field}"));
    let kept = kept.into_iter().chain([same_value(&["gpuPerWorker"], "0")]).collect::<Vec<_>>().join(" && ");
    let finished = format!("!has(oldSelf.status) || !has(oldSelf.status.completionTime) || ({kept})");
    rules(&[
        (&length, &too_long),
        (
            "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "the name is that of a Service: it begins with a letter and holds only lower-case letters, digits and '-'",
        ),
        (&started, &cannot),
        (&finished, "the job has ended and does not run again; make another one"),
    ])
}

/// Whether a value of the spec is as it was.
fn same_value(path: &[&str], default: &str) -> String {
    let value = |of: &str| {
        let steps = (1..=path.len()).map(|length| format!("has({of}.spec.{})", path[..length].join(".")));
        let is_there = steps.collect::<Vec<_>>().join(" && ");
        format!("({is_there} ? {of}.spec.{} : {default})", path.join("."))
    };
    format!("{} == {}", value("self"), value("oldSelf"))
}

/// Exactly one of these fields is given.
fn one_of(fields: &[&str]) -> Value {
    let given: Vec<_> = fields.iter().map(|field| format!("has(self.{field})")).collect();
    let rule = format!("[{}].filter(given, given).size() == 1", given.join(", "));
    rules(&[(&rule, &format!("give exactly one of {}", fields.join(", ")))])
}

fn rules(rules: &[(&str, &str)]) -> Value {
    rules.iter().map(|(rule, message)| json!({ "rule": rule, "message": message })).collect()
}

/// Without the defaults and nulls of the Rust types: a spec is stored as it was given, and what it leaves out is decided
/// by the plugin.
fn plain(schema: Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| !matches!(name.as_str(), "default" | "nullable"));
            Value::Object(kept.map(|(name, value)| (name, plain(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        other => other,
    }
}
