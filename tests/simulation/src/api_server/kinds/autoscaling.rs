//! HorizontalPodAutoscalers.

use serde_json::json;

use super::{
    Strategy,
    edit::{at, copy_field, default_to, object_at},
};

/// HorizontalPodAutoscalers.
pub(super) static AUTOSCALER: Strategy = Strategy {
    default: |object| {
        let Some(spec) = object_at(object, &["spec"]) else { return };
        default_to(spec, "minReplicas", 1);
        let cpu = json!([{
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
        }]);
        default_to(spec, "metrics", cpu);
    },
    prepare_create: |object, _, _| {
        object["status"] = json!({"desiredReplicas": 0, "currentMetrics": null});
    },
    prepare_update: |new, old, _, _| copy_field(old, new, "status"),
    validate: |object, _, causes| {
        let (least, most) = (at(object, &["spec", "minReplicas"]), at(object, &["spec", "maxReplicas"]));
        let (min, max) = (least.as_i64().unwrap_or(1), most.as_i64().unwrap_or_default());
        if min < 1 {
            causes.invalid("spec.minReplicas", least, "must be greater than or equal to 1");
            if min == 0 {
                causes
                    .forbidden("spec.metrics", "must specify at least one Object or External metric to scale to zero");
            }
        }
        if max < 1 {
            causes.invalid("spec.maxReplicas", most, "must be greater than 0");
        }
        if max < min {
            causes.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`");
        }
        for field in ["kind", "name"] {
            if at(object, &["spec", "scaleTargetRef", field]).as_str().is_none_or(str::is_empty) {
                causes.required(format!("spec.scaleTargetRef.{field}"), "");
            }
        }
        let version = at(object, &["spec", "scaleTargetRef", "apiVersion"]);
        if version.as_str().is_none_or(str::is_empty) {
            causes.invalid("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group");
        }
    },
    ..Strategy::USUAL
};
