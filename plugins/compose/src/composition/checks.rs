//! What is checked of a composition beside its expressions: names, kinds, and what only the host or a controller may write.

use pilothouse_sdk::raw::KindRef;
use serde_json::{Map, Value};

use crate::config::{ConditionConfig, KindConfig};
use crate::parts::{EACH, Node, SCHEMA};
use crate::problem::{Path, Problem};
use crate::template::Template;

/// Names that mean something else in expressions.
const RESERVED: [&str; 20] = [
    SCHEMA, EACH, "self", "object", "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for",
    "function", "if", "import", "return", "var", "while",
];

/// Names of libraries in expressions.
const LIBRARIES: [&str; 3] = ["math", "json", "optional"];

/// Conditions that only the host sets.
const OF_HOST: [&str; 2] = ["Reconciling", "Throttled"];

/// Fields of the status that only the host writes.
const STATUS_OF_HOST: [&str; 2] = ["conditions", "observedGeneration"];

/// What is wrong with a name for expressions.
pub fn fault_of_name(name: &str) -> Option<String> {
    let mut letters = name.chars();
    let is_plain =
        letters.next().is_some_and(|first| first.is_ascii_lowercase()) && letters.all(|it| it.is_ascii_alphanumeric());
    if !is_plain {
        let what = "is no name for expressions: it must begin with a small letter and go on with letters and digits, such as `webServer`";
        return Some(format!("`{name}` {what}"));
    }
    let is_taken = RESERVED.contains(&name) || LIBRARIES.contains(&name);
    is_taken.then(|| format!("`{name}` means something else in expressions; take another name"))
}

/// What is wrong with a reason.
pub fn fault_of_reason(reason: &str) -> Option<&'static str> {
    let is_word = reason.starts_with(|first: char| first.is_ascii_alphabetic())
        && reason.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    (!is_word).then_some("it must be one word, such as ModelNotFound")
}

/// What the plugin is called, and its kind.
pub fn check_head(name: &str, kind: &KindConfig, problems: &mut Vec<Problem>) {
    let is_label = name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.len() <= 63
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
    if !is_label {
        let what =
            "it must be a DNS label: at most 63 of a-z, 0-9 and -, beginning with a letter, such as `app-service`";
        problems.push(Problem::at(&Path::of("name"), what));
    }
    check_kind(&Path::of("kind"), &kind.api_version, &kind.kind, problems);
    if !kind.api_version.contains('/') {
        let what = "it must have a group, such as apps.example.com/v1: the kinds without one are Kubernetes' own";
        problems.push(Problem::at(&Path::of("kind").field("apiVersion"), what));
    }
}

fn check_kind(path: &Path, api_version: &str, kind: &str, problems: &mut Vec<Problem>) {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    if !version.starts_with('v') || api_version.matches('/').count() > 1 {
        let what = format!("`{api_version}` is no API version, such as apps/v1, or v1 for the core group");
        problems.push(Problem::at(&path.field("apiVersion"), what));
    }
    if !kind.starts_with(|first: char| first.is_ascii_uppercase()) || !kind.chars().all(|it| it.is_ascii_alphanumeric())
    {
        problems.push(Problem::at(&path.field("kind"), format!("`{kind}` is no kind, such as Deployment")));
    }
}

/// What a template must have and may not have. Returns its kind.
pub fn check_template(path: &Path, template: &Template, problems: &mut Vec<Problem>) -> KindRef {
    let none = KindRef { api_version: String::new(), kind: String::new() };
    let Template::Object(_) = template else {
        problems.push(Problem::at(path, "it must be an object with apiVersion, kind and metadata.name"));
        return none;
    };
    let mut text = |field: &str| match template.field(field).map(|value| (value, value.plain_text())) {
        Some((_, Some(text))) => text.to_owned(),
        Some((Template::Expression(_) | Template::Text(_), _)) => {
            let what = "it cannot be an expression: what the plugin may write must be known when it is installed";
            problems.push(Problem::at(&path.field(field), what));
            String::new()
        }
        _ => {
            problems
                .push(Problem::at(&path.field(field), "it is missing; write it out, such as `apiVersion: apps/v1`"));
            String::new()
        }
    };
    let kind = KindRef { api_version: text("apiVersion"), kind: text("kind") };
    if !kind.api_version.is_empty() && !kind.kind.is_empty() {
        check_kind(path, &kind.api_version, &kind.kind, problems);
    }
    if template.field("metadata").and_then(|metadata| metadata.field("name")).is_none() {
        let what = "it is missing; children are known by their names, such as ${schema.metadata.name}";
        problems.push(Problem::at(&path.field("metadata").field("name"), what));
    }
    if template.field("status").is_some() {
        let what = "the status of a child belongs to its controller; leave it out";
        problems.push(Problem::at(&path.field("status"), what));
    }
    kind
}

/// What is wrong with the kinds of children and lookups, taken together.
pub fn check_kinds(own: &KindConfig, nodes: &[Node], problems: &mut Vec<Problem>) {
    let mut known: Vec<(&KindRef, &Path)> = Vec::new();
    for node in nodes {
        match node {
            Node::Resource(resource) => {
                let (kind, path) = (&resource.kind, &resource.path);
                if kind.kind == own.kind && group(&kind.api_version) == group(&own.api_version) && !kind.kind.is_empty()
                {
                    let what = "it is of the kind that the composition is about; children must be of another one";
                    problems.push(Problem::at(&path.field("template").field("kind"), what));
                }
                let other = known.iter().find(|(other, _)| {
                    other.kind == kind.kind && group(&other.api_version) == group(&kind.api_version)
                });
                match other {
                    Some((other, first)) if other.api_version != kind.api_version => {
                        let what = format!(
                            "{first} has the same kind in {}, and an object is one in all versions of its kind; take that version",
                            other.api_version
                        );
                        problems.push(Problem::at(&path.field("template").field("apiVersion"), what));
                    }
                    Some(_) => {}
                    None => known.push((kind, path)),
                }
            }
            Node::Lookup(lookup) => check_kind(&lookup.path, &lookup.kind.api_version, &lookup.kind.kind, problems),
            Node::Variable { .. } => {}
        }
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// What of the status belongs to the host.
pub fn check_status(status: &Map<String, Value>, problems: &mut Vec<Problem>) {
    for field in status.keys().filter(|field| STATUS_OF_HOST.contains(&field.as_str())) {
        let what = match field.as_str() {
            "conditions" => "the host writes them; say yours under `conditions` beside `status`",
            _ => "the host writes it; leave it out",
        };
        problems.push(Problem::at(&Path::of("status").field(field), what));
    }
}

/// What of the conditions belongs to the host, or is there twice.
pub fn check_conditions(conditions: &[ConditionConfig], problems: &mut Vec<Problem>) {
    for (place, condition) in conditions.iter().enumerate() {
        let (path, name) = (Path::of("conditions").element(place).field("type"), condition.condition_type.as_str());
        if OF_HOST.contains(&name) {
            problems.push(Problem::at(&path, format!("`{name}` is the host's own; take another type")));
        }
        if !name.starts_with(|first: char| first.is_ascii_uppercase()) {
            problems.push(Problem::at(&path, format!("`{name}` is no type of a condition, such as Ready")));
        }
        if conditions.iter().take(place).any(|other| other.condition_type == name) {
            problems.push(Problem::at(&path, format!("there is a condition `{name}` already; take another type")));
        }
    }
}
