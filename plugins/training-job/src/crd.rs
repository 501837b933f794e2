//! The CRD of `TrainingJob`, made from the API types. It is compiled only to write the file under `crds/` and to check that
//! file; neither the plugin nor the host needs it.

use crate::api::{TrainingJobSpec, TrainingJobStatus};
use crate::children::environment::RESERVED;
use crate::validation_error::MAX_NAME_LENGTH;
use pilothouse_pods::crd::{add_environment_rules, add_resource_rules, plain_path};
use pilothouse_sdk::crd::{Column, Definition, Rule, definition, rules, schema_of, status_of, without_defaults};
use serde_json::{Value, json};

/// The comment at the head of the file.
const HEADER: &str = "\
# The kind TrainingJob, made from plugins/training-job/src/api.rs. Do not edit; make it anew with
#   cargo run -p training-job --example training-job-crd
";

/// The description of `status.conditions`.
const CONDITIONS: &str = "How the job is: Created, Running, Restarting, Suspended, Succeeded, Failed, Ready, and the \
                          host's own.";

/// A scalar field of the spec that cannot change once the job has started.
struct ImmutableField {
    /// Its path below `spec`.
    path: &'static [&'static str],
    /// A CEL expression for its value where the field is absent.
    default: &'static str,
}

/// The Pods of a job that runs could not follow a change of these fields.
const IMMUTABLE_ONCE_STARTED: [ImmutableField; 5] = [
    ImmutableField { path: &["parameterServers"], default: "0" },
    ImmutableField { path: &["successPolicy"], default: "''" },
    ImmutableField { path: &["runPolicy", "restartPolicy"], default: "''" },
    ImmutableField { path: &["runPolicy", "restartScope"], default: "''" },
    ImmutableField { path: &["runPolicy", "managedBy"], default: "''" },
];

/// Fields that cannot be added or removed once the job has started.
const PRESENCE_IMMUTABLE_ONCE_STARTED: [&str; 2] = ["elastic", "gangScheduling"];

/// The file's text.
///
/// # Errors
/// The schema cannot be written as YAML.
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
        spec_replicas_path: Some(".spec.workers"),
        columns: &[
            Column { name: "Framework", value_type: "string", json_path: ".spec.framework" },
            Column { name: "Workers", value_type: "integer", json_path: ".spec.workers" },
            Column { name: "Phase", value_type: "string", json_path: ".status.phase" },
            Column { name: "Progress", value_type: "string", json_path: ".status.progress.summary" },
            Column { name: "Age", value_type: "date", json_path: ".metadata.creationTimestamp" },
        ],
        wide_columns: &[],
        schema: schema(),
    })
}

fn schema() -> Value {
    json!({
        "description": "A distributed training job: Pods with stable names that know each other, followed to their end.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": spec(),
            "status": without_defaults(status_of::<TrainingJobStatus>(CONDITIONS)),
        },
        "x-kubernetes-validations": object_rules(),
    })
}

fn spec() -> Value {
    let mut spec = without_defaults(schema_of::<TrainingJobSpec>());
    spec["required"] = json!(["framework", "workers", "image", "command"]);
    let fields = &mut spec["properties"];
    fields["framework"]["x-kubernetes-validations"] =
        rules(&[Rule { expression: "self == oldSelf", message: "the framework cannot change" }]);
    fields["checkpointDir"]["x-kubernetes-validations"] = plain_path("");
    add_environment_rules(&mut spec, &RESERVED, "this name tells workers apart and is set for each of them");
    add_resource_rules(&mut spec);
    let policy = &mut spec["properties"]["runPolicy"]["properties"]["podFailurePolicy"]["properties"];
    policy["rules"]["items"]["x-kubernetes-validations"] = rules(&[Rule {
        expression: "has(self.onExitCodes) || (has(self.onReasons) && size(self.onReasons) > 0) || \
                     (has(self.onPodConditions) && size(self.onPodConditions) > 0)",
        message: "give onExitCodes, onReasons or onPodConditions; a rule without them says of no failure whether it fits",
    }]);
    spec["properties"]["roles"]["x-kubernetes-list-type"] = json!("map");
    spec["properties"]["roles"]["x-kubernetes-list-map-keys"] = json!(["name"]);
    spec["x-kubernetes-validations"] = spec_rules();
    spec
}

fn spec_rules() -> Value {
    rules(&[
        Rule {
            expression: "self.framework == 'tensorflow' || !has(self.parameterServers) || self.parameterServers == 0",
            message: "parameterServers is for framework tensorflow only",
        },
        Rule {
            expression: "!has(self.roles) || self.roles.all(role, self.framework == 'tensorflow' ? role.name != 'launcher' : \
                         self.framework == 'mpi' && (role.name == 'worker' || role.name == 'launcher'))",
            message: "roles are those of the framework: worker, ps, chief and evaluator for tensorflow, worker and launcher for \
                      mpi, none for the others",
        },
        Rule {
            expression: "has(self.mpi) == (self.framework == 'mpi')",
            message: "mpi is for framework mpi only, and required there",
        },
        Rule {
            expression: "self.framework != 'mpi' || !has(self.successPolicy) || self.successPolicy != 'AllWorkers'",
            message: "workers of framework mpi never end by themselves, so successPolicy cannot be AllWorkers",
        },
        Rule {
            expression: "!has(self.elastic) || self.framework == 'pytorch'",
            message: "elastic is for framework pytorch only",
        },
        Rule {
            expression: "!has(self.elastic) || self.elastic.minWorkers <= self.elastic.maxWorkers",
            message: "elastic.minWorkers must be at most elastic.maxWorkers",
        },
        Rule {
            expression: "!has(self.elastic) || (self.workers >= self.elastic.minWorkers && self.workers <= \
                         self.elastic.maxWorkers)",
            message: "workers must be between elastic.minWorkers and elastic.maxWorkers",
        },
    ])
}

fn object_rules() -> Value {
    rules(&[
        Rule {
            expression: &format!("size(self.metadata.name) <= {MAX_NAME_LENGTH}"),
            message: &format!(
                "names of Pods are made of the job's, so it can have at most {MAX_NAME_LENGTH} characters"
            ),
        },
        Rule {
            expression: "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            message: "the name is that of a Service: it begins with a letter and holds only lower-case letters, digits \
                      and '-'",
        },
        Rule {
            expression: &format!(
                "!has(oldSelf.status) || !has(oldSelf.status.startTime) || ({})",
                unchanged_once_started()
            ),
            message: &format!(
                "{} cannot change once the job has started; delete the job and make it anew",
                names_of_fields_immutable_once_started()
            ),
        },
        Rule {
            expression: &format!(
                "!has(oldSelf.status) || !has(oldSelf.status.completionTime) || ({})",
                unchanged_once_finished()
            ),
            message: "the job has ended and does not run again; make another one",
        },
    ])
}

fn unchanged_once_started() -> String {
    let values = IMMUTABLE_ONCE_STARTED.iter().map(same_value);
    let presence = PRESENCE_IMMUTABLE_ONCE_STARTED.iter();
    let presence = presence.map(|field| format!("has(self.spec.{field}) == has(oldSelf.spec.{field})"));
    values.chain(presence).collect::<Vec<_>>().join(" && ")
}

fn names_of_fields_immutable_once_started() -> String {
    let paths = IMMUTABLE_ONCE_STARTED.iter().map(|field| field.path.join("."));
    paths.chain(PRESENCE_IMMUTABLE_ONCE_STARTED.map(str::to_owned)).collect::<Vec<_>>().join(", ")
}

/// The fields that a user would change to run a finished job once more.
fn unchanged_once_finished() -> String {
    let required = ["workers", "image", "command"].map(|field| format!("self.spec.{field} == oldSelf.spec.{field}"));
    let gpus = same_value(&ImmutableField { path: &["gpuPerWorker"], default: "0" });
    required.into_iter().chain([gpus]).collect::<Vec<_>>().join(" && ")
}

/// A CEL expression: the field has the same value as before.
fn same_value(field: &ImmutableField) -> String {
    let ImmutableField { path, default } = field;
    let value = |object: &str| {
        // CEL refuses `has` on a path whose parent is absent, so every step of the path is checked.
        let steps = (1..=path.len()).map(|length| format!("has({object}.spec.{})", path[..length].join(".")));
        let is_present = steps.collect::<Vec<_>>().join(" && ");
        format!("({is_present} ? {object}.spec.{} : {default})", path.join("."))
    };
    format!("{} == {}", value("self"), value("oldSelf"))
}
