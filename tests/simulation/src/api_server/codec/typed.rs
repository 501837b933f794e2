//! Reads the object of a built-in kind as if it went into a Go type and out again: null and zero are left out unless the field
//! distinguishes them, structures are always there, quantities and times are normalised.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{error::DecodeError, quantity::canonical_quantity};
use crate::api_server::{
    path::Path,
    schema::{Fields, Node, Scalar, Shape},
    time,
};

/// The fields that distinguish zero, false or an empty text from nothing: pointers in the Go types.
const POINTERS: [&str; 67] = [
    "activeDeadlineSeconds",
    "allocateLoadBalancerNodePorts",
    "allowPrivilegeEscalation",
    "appProtocol",
    "automountServiceAccountToken",
    "averageUtilization",
    "averageValue",
    "backoffLimit",
    "backoffLimitPerIndex",
    "blockOwnerDeletion",
    "collisionCount",
    "completionMode",
    "completions",
    "controller",
    "currentCPUUtilizationPercentage",
    "defaultMode",
    "deletionGracePeriodSeconds",
    "enableServiceLinks",
    "endPort",
    "expirationSeconds",
    "fsGroup",
    "fsGroupChangePolicy",
    "holderIdentity",
    "hostUsers",
    "hostnameOverride",
    "immutable",
    "internalTrafficPolicy",
    "ipFamilyPolicy",
    "leaseDurationSeconds",
    "leaseTransitions",
    "loadBalancerClass",
    "managedBy",
    "manualSelector",
    "maxFailedIndexes",
    "maxSurge",
    "maxUnavailable",
    "minAvailable",
    "minDomains",
    "minReplicas",
    "mode",
    "mountPropagation",
    "optional",
    "parallelism",
    "partition",
    "podReplacementPolicy",
    "preemptionPolicy",
    "preferredHolder",
    "priority",
    "privileged",
    "procMount",
    "progressDeadlineSeconds",
    "readOnlyRootFilesystem",
    "recursiveReadOnly",
    "replicas",
    "revisionHistoryLimit",
    "runAsGroup",
    "runAsNonRoot",
    "runAsUser",
    "runtimeClassName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "stabilizationWindowSeconds",
    "started",
    "storageClassName",
    "suspend",
    "terminationGracePeriodSeconds",
    "ttlSecondsAfterFinished",
];

/// Reads a value; none for one that is left out.
pub(super) fn decode(value: Value, node: &Node, unknown: &mut Vec<String>) -> Result<Option<Value>, DecodeError> {
    Reader { unknown }.read(value, node, Path::ROOT)
}

struct Reader<'u> {
    unknown: &'u mut Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, value: Value, node: &Node, path: Path<'_>) -> Result<Option<Value>, DecodeError> {
        match (&node.shape, value) {
            (_, Value::Null) => Ok(None),
            (Shape::Any, value) => Ok(Some(value)),
            (Shape::Object(fields), Value::Object(object)) => self.object(object, fields, path),
            (Shape::Object(_), value) => Err(DecodeError::new(path, &value, "object")),
            (Shape::List { items, .. }, Value::Array(elements)) => {
                let mut read = Vec::with_capacity(elements.len());
                for (index, element) in elements.into_iter().enumerate() {
                    let path = path.index(index);
                    let element = self.read(element, items, path)?;
                    read.push(element.map_or_else(|| self.zero(items, path), Ok)?);
                }
                let is_always_shown = node.default.is_some();
                Ok((is_always_shown || !read.is_empty()).then_some(Value::Array(read)))
            }
            (Shape::List { .. }, value) => Err(DecodeError::new(path, &value, "array")),
            (Shape::Scalar(scalar), value) => normalise(*scalar, value, path).map(Some),
        }
    }

    /// What Go has where a list has null.
    fn zero(&mut self, node: &Node, path: Path<'_>) -> Result<Value, DecodeError> {
        Ok(match &node.shape {
            Shape::Object(fields) => {
                self.object(Map::new(), fields, path)?.unwrap_or_else(|| Value::Object(Map::new()))
            }
            Shape::Scalar(Scalar::Boolean) => false.into(),
            Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Number) => 0.into(),
            Shape::Scalar(_) => "".into(),
            Shape::List { .. } | Shape::Any => Value::Null,
        })
    }

    fn object(
        &mut self,
        mut read: Map<String, Value>,
        fields: &Fields,
        path: Path<'_>,
    ) -> Result<Option<Value>, DecodeError> {
        let mut error = None;
        read.retain(|name, value| match self.field(name, value.take(), fields, path) {
            Ok(Some(read)) => {
                *value = read;
                true
            }
            Ok(None) => false,
            Err(wrong) => {
                error.get_or_insert(wrong);
                false
            }
        });
        if let Some(error) = error {
            return Err(error);
        }
        if fields.named.is_empty() {
            return Ok((!read.is_empty()).then_some(Value::Object(read)));
        }
        for (name, node) in &fields.named {
            let Some(default) = &node.default else { continue };
            if read.contains_key(&**name) {
                continue;
            }
            let value = if default.is_null() { Some(Value::Null) } else { self.read(default.clone(), node, path)? };
            read.extend(value.map(|value| (name.to_string(), value)));
        }
        Ok(Some(Value::Object(read)))
    }

    /// Reads a field of an object; none for one that is left out.
    fn field(
        &mut self,
        name: &str,
        value: Value,
        fields: &Fields,
        path: Path<'_>,
    ) -> Result<Option<Value>, DecodeError> {
        let Some(node) = fields.get(name) else {
            self.unknown.push(path.field(name).to_string());
            return Ok(None);
        };
        let is_map = fields.named.is_empty();
        let keeps_zero = || is_map || node.default.is_some() || is_pointer(name, path);
        match self.read(value, node, path.field(name))? {
            Some(value) if !is_zero(&value, node) || keeps_zero() => Ok(Some(value)),
            // A map keeps its key.
            None if is_map => self.zero(node, path).map(Some),
            _ => Ok(None),
        }
    }
}

/// Whether a field distinguishes zero from nothing. A status has few such fields.
fn is_pointer(name: &str, path: Path<'_>) -> bool {
    if path.first() == "status" {
        return ["averageUtilization", "averageValue", "collisionCount", "started", "terminating"].contains(&name);
    }
    POINTERS.binary_search(&name).is_ok()
}

/// Whether Go leaves a value out.
fn is_zero(value: &Value, node: &Node) -> bool {
    match value {
        Value::String(text) => text.is_empty() && !matches!(node.shape, Shape::Scalar(Scalar::IntOrString)),
        Value::Bool(value) => !value,
        Value::Number(number) => {
            number.as_f64() == Some(0.0) && !matches!(node.shape, Shape::Scalar(Scalar::IntOrString))
        }
        _ => false,
    }
}

fn normalise(scalar: Scalar, value: Value, path: Path<'_>) -> Result<Value, DecodeError> {
    let fits = match (scalar, &value) {
        (Scalar::Text, Value::String(_)) | (Scalar::Boolean, Value::Bool(_)) | (Scalar::Number, Value::Number(_)) => {
            true
        }
        (Scalar::Int32, Value::Number(number)) => number.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        (Scalar::Int64, Value::Number(number)) => number.as_i64().is_some(),
        (Scalar::IntOrString, Value::String(_)) => true,
        (Scalar::IntOrString, Value::Number(number)) => number.as_i64().is_some(),
        (Scalar::Bytes, Value::String(text)) => is_base64(text),
        (Scalar::Time, Value::String(text)) => return time_of(text, time::seconds, path, &value),
        (Scalar::MicroTime, Value::String(text)) if has_micros(text) => {
            return time_of(text, time::micros, path, &value);
        }
        (Scalar::Quantity, Value::String(text)) => {
            return canonical_quantity(text).map(Value::from).ok_or_else(|| DecodeError::new(path, &value, "quantity"));
        }
        (Scalar::Quantity, Value::Number(number)) => {
            let text = canonical_quantity(&number.to_string());
            return text.map(Value::from).ok_or_else(|| DecodeError::new(path, &value, "quantity"));
        }
        _ => false,
    };
    if fits { Ok(value) } else { Err(DecodeError::new(path, &value, name_of(scalar))) }
}

fn time_of(text: &str, write: fn(Timestamp) -> String, path: Path<'_>, value: &Value) -> Result<Value, DecodeError> {
    let time: Result<Timestamp, _> = text.parse();
    time.map(|time| write(time).into()).map_err(|_| DecodeError::new(path, value, "time"))
}

/// Whether a time has the six digits that the server insists on.
fn has_micros(text: &str) -> bool {
    let digits = text.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
    digits == 6
}

fn name_of(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Text | Scalar::Bytes => "string",
        Scalar::Time | Scalar::MicroTime => "time",
        Scalar::Int32 => "int32",
        Scalar::Int64 => "int64",
        Scalar::Number => "number",
        Scalar::Boolean => "bool",
        Scalar::IntOrString => "int-or-string",
        Scalar::Quantity => "quantity",
    }
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_char = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
    text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && body.chars().all(is_char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pointers_are_in_order() {
        assert!(POINTERS.is_sorted());
    }
}
