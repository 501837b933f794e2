//! What KEDA says of the ScaledObject: whether somebody has paused it, and why it makes no autoscaler of it. KEDA removes the
//! HorizontalPodAutoscaler of one that is paused, and may itself remove all Pods.

use pilothouse_sdk::Kind;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The annotations by which users pause KEDA. The second one says how many Pods there shall be meanwhile.
const PAUSED: &str = "autoscaling.keda.sh/paused";
const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";

/// How KEDA reads a "no" in the first one. Whatever else it says is a "yes".
const NO: [&str; 6] = ["0", "f", "F", "false", "FALSE", "False"];

/// An observed ScaledObject.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ScaledObject {
    metadata: Metadata,
    status: Status,
}

impl Kind for ScaledObject {
    const API_VERSION: &'static str = "keda.sh/v1alpha1";
    const KIND: &'static str = "ScaledObject";
    const FIELDS: &'static [&'static str] = &["/metadata/name", "/metadata/annotations", "/status/conditions"];
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<ScaledObjectCondition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ScaledObjectCondition {
    #[serde(rename = "type")]
    condition_type: String,
    status: String,
    message: String,
}

/// Why KEDA makes no autoscaler, so that nothing of its reads anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Somebody has paused it: the number of Pods is that one's affair.
    Paused,
    /// KEDA finds something wrong, and says this.
    NotReady(String),
}

impl Silence {
    /// One CamelCase word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Paused => "AutoscalerPaused",
            Self::NotReady(_) => "ScaledObjectNotReady",
        }
    }

    /// A sentence.
    pub fn message(&self) -> String {
        match self {
            Self::Paused => {
                format!("KEDA is paused by the annotation {PAUSED} or {PAUSED_REPLICAS} of the ScaledObject")
            }
            Self::NotReady(words) => format!("KEDA makes no autoscaler of the ScaledObject: {words}"),
        }
    }
}

impl ScaledObject {
    fn is_paused(&self) -> bool {
        let annotations = &self.metadata.annotations;
        annotations.contains_key(PAUSED_REPLICAS)
            || annotations.get(PAUSED).is_some_and(|value| !NO.contains(&value.as_str()))
    }

    /// Why there is no autoscaler of it; none if nothing is known to be wrong.
    pub fn silence(&self) -> Option<Silence> {
        if self.is_paused() {
            return Some(Silence::Paused);
        }
        let is_not_ready = |it: &&ScaledObjectCondition| it.condition_type == "Ready" && it.status == "False";
        self.status.conditions.iter().find(is_not_ready).map(|it| Silence::NotReady(it.message.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn silence(object: Value) -> Option<&'static str> {
        let object: ScaledObject = serde_json::from_value(object).ok()?;
        object.silence().map(|silence| silence.reason())
    }

    #[test]
    fn a_pause_is_read_as_keda_reads_it() {
        let cases = [
            (PAUSED, "true", true),
            (PAUSED, "1", true),
            (PAUSED, "", true),
            (PAUSED, "yes", true),
            (PAUSED, "false", false),
            (PAUSED, "F", false),
            (PAUSED_REPLICAS, "0", true),
            (PAUSED_REPLICAS, "false", true),
            ("autoscaling.keda.sh/paused-scale-in", "true", false),
        ];
        for (name, value, is_paused) in cases {
            let found = silence(json!({ "metadata": { "annotations": { name: value } } }));
            assert_eq!(found, is_paused.then_some("AutoscalerPaused"), "{name}={value}");
        }
    }

    #[test]
    fn what_keda_finds_wrong_is_told() {
        let with = |status: &str| json!({ "status": { "conditions": [{ "type": "Ready", "status": status, "message": "m" }] } });
        assert_eq!(silence(with("False")), Some("ScaledObjectNotReady"));
        assert_eq!(silence(with("Unknown")), None);
        assert_eq!(silence(with("True")), None);
        assert_eq!(silence(json!({})), None);
    }
}
