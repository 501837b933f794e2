//! The selectors of lists and watches: by labels and by a few fields.

use serde_json::Value;

use super::{error::ApiError, kinds::Kind, request::Query, store::Object};

/// What a list or a watch shows.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    namespace: String,
    labels: Vec<Requirement>,
    fields: Vec<(String, String, Equality)>,
}

/// What a label must be.
#[derive(Clone, Debug)]
enum Requirement {
    Exists(String),
    Missing(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

/// Whether two values must be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Equality {
    Same,
    Other,
}

impl Selector {
    /// Reads the selectors of a request.
    ///
    /// # Errors
    /// 400 for one that cannot be read, or for a field that cannot be selected by.
    pub fn parse(query: &Query, kind: &Kind, namespace: &str) -> Result<Self, ApiError> {
        let mut selector = Self { namespace: namespace.to_owned(), ..Self::default() };
        for part in split(query.get("labelSelector")) {
            selector.labels.push(requirement(part.trim())?);
        }
        for part in query.get("fieldSelector").split(',').filter(|part| !part.is_empty()) {
            selector.fields.push(field(part, kind)?);
        }
        Ok(selector)
    }

    /// Whether it selects by anything but the namespace.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether it selects one object by its name.
    pub fn names_one(&self) -> bool {
        self.fields.iter().any(|(path, _, equality)| path == "metadata.name" && *equality == Equality::Same)
    }

    /// Whether an object is selected.
    pub fn selects(&self, object: &Object) -> bool {
        let is_here = self.namespace.is_empty() || object.namespace() == self.namespace;
        is_here
            && self.labels.iter().all(|label| label.fits(object.labels()))
            && self.fields.iter().all(|(path, value, equality)| {
                let mut steps = path.split('.');
                let found = steps.try_fold(&object.value, |value, step| value.get(step));
                let found = found.map(|found| found.as_str().map_or_else(|| found.to_string(), str::to_owned));
                (found.unwrap_or_default() == *value) == (*equality == Equality::Same)
            })
    }
}

impl Requirement {
    fn fits(&self, labels: &Value) -> bool {
        let value = |key: &str| labels[key].as_str();
        match self {
            Self::Exists(key) => value(key).is_some(),
            Self::Missing(key) => value(key).is_none(),
            Self::In(key, values) => value(key).is_some_and(|value| values.iter().any(|known| known == value)),
            Self::NotIn(key, values) => value(key).is_none_or(|value| values.iter().all(|known| known != value)),
        }
    }
}

/// The parts of a selector. A comma in parentheses separates nothing.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

fn requirement(part: &str) -> Result<Requirement, ApiError> {
    let key = |text: &str| {
        let text = text.trim();
        if super::names::is_qualified_name(text) {
            Ok(text.to_owned())
        } else {
            Err(ApiError::bad_request(format!("unable to parse requirement: {part}")))
        }
    };
    if let Some((name, list)) = part.split_once('(') {
        let values = list.trim_end_matches(')').split(',').map(|value| value.trim().to_owned()).collect();
        let name = name.trim();
        if let Some(name) = name.strip_suffix("notin") {
            return Ok(Requirement::NotIn(key(name)?, values));
        }
        let name = name
            .strip_suffix("in")
            .ok_or_else(|| ApiError::bad_request(format!("unable to parse requirement: {part}")))?;
        return Ok(Requirement::In(key(name)?, values));
    }
    if let Some((name, value)) = part.split_once("!=") {
        return Ok(Requirement::NotIn(key(name)?, vec![value.trim().to_owned()]));
    }
    if let Some((name, value)) = part.split_once('=') {
        return Ok(Requirement::In(key(name)?, vec![value.trim_start_matches('=').trim().to_owned()]));
    }
    match part.strip_prefix('!') {
        Some(name) => Ok(Requirement::Missing(key(name)?)),
        None => Ok(Requirement::Exists(key(part)?)),
    }
}

fn field(part: &str, kind: &Kind) -> Result<(String, String, Equality), ApiError> {
    let (name, value, equality) = match part.split_once("!=") {
        Some((name, value)) => (name, value, Equality::Other),
        None => {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (name, value.trim_start_matches('='), Equality::Same)
        }
    };
    let more: &[&str] = match &*kind.names.kind {
        "Pod" => &["spec.nodeName", "spec.restartPolicy", "status.phase", "status.podIP"],
        "Event" => &[
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.uid",
            "reason",
            "type",
        ],
        "Secret" => &["type"],
        "Namespace" => &["status.phase"],
        "Job" => &["status.successful"],
        _ => &[],
    };
    let is_known = name == "metadata.name" || (name == "metadata.namespace" && kind.namespaced) || more.contains(&name);
    if is_known {
        Ok((name.to_owned(), value.to_owned(), equality))
    } else {
        Err(ApiError::bad_request(format!("field label not supported: {name}")))
    }
}
