//! How Pods are replaced, and how many of them may be missing at a time. A rollout keeps to the disruption budget: Kubernetes itself
//! asks no budget when it rolls a workload.

use crate::gpus::Gpus;
use crate::parallelism::Spread;
use crate::server_spec::ServerSpec;
use crate::share::{Rounding, resolve};
use crate::spec_error::SpecError;
use serde_json::{Value, json};

/// How many Pods may exist beyond the desired ones, and how many may be missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// How many more may exist: a number or a share.
    pub max_surge: Value,
    /// How many may be missing: a number or a share.
    pub max_unavailable: Value,
    /// What the disruption budget says: `maxUnavailable` or `minAvailable`; none for no budget.
    pub budget: Option<Value>,
}

impl Rollout {
    /// The rollout of a server. A rollout of Pods with GPUs needs no spare one, unless the spec says otherwise.
    ///
    /// # Errors
    /// No Pod could be replaced, or the rollout would break the budget.
    pub fn of(spec: &ServerSpec<'_>, gpus: &Gpus<'_>) -> Result<Self, SpecError> {
        let given = spec.serving.rollout.clone().unwrap_or_default();
        let (surge, unavailable) = if gpus.count > 0 { (json!(0), json!(1)) } else { (json!("25%"), json!("25%")) };
        let max_surge = given.max_surge.unwrap_or(surge);
        let budget = given_budget(spec)?;
        // Where there shall be no Pod, none has to be replaced.
        let allowed =
            budget.as_ref().filter(|_| spec.desired_replicas() > 0).and_then(|it| missing_allowed(it, spec.replicas));
        if is_stateful_set(spec, gpus) {
            return Self::of_stateful_set(spec, budget, allowed);
        }
        let max_unavailable = match given.max_unavailable {
            Some(given) => given,
            None => allowed
                .filter(|allowed| number(&unavailable, spec.replicas) > *allowed)
                .map_or(unavailable, Value::from),
        };
        let missing = number(&max_unavailable, spec.replicas);
        if missing == 0 && resolve(&max_surge, spec.replicas.max(1), Rounding::Up).unwrap_or_default() == 0 {
            return Err(SpecError::RolloutStandsStill);
        }
        if let Some(budget) = allowed.filter(|allowed| missing > *allowed) {
            return Err(SpecError::RolloutBreaksBudget { rollout: missing, budget });
        }
        // A Pod that is missing takes its group with it, so that no more Pods may be missing than groups.
        let budget = if gpus.parallelism.is_multi_node() {
            allowed.map(|groups| json!({ "maxUnavailable": groups }))
        } else {
            budget
        };
        let default_budget = (spec.replicas > 1).then(|| json!({ "maxUnavailable": missing.max(1) }));
        Ok(Self { max_surge, max_unavailable, budget: budget.or(default_budget) })
    }

    /// The rollout of a StatefulSet, which replaces one Pod after the other whatever it is told: Kubernetes up to 1.36 knows no other way.
    fn of_stateful_set(spec: &ServerSpec<'_>, budget: Option<Value>, allowed: Option<i64>) -> Result<Self, SpecError> {
        if allowed == Some(0) {
            return Err(SpecError::OneAfterTheOther);
        }
        let (max_surge, max_unavailable) = (json!(0), json!(1));
        Ok(Self { max_surge, max_unavailable, budget: budget.or_else(|| (spec.replicas > 1).then(one_missing)) })
    }

    /// With a budget also if the spec asks for one Pod at most, but others may make more of it.
    pub fn with_budget_for(&mut self, most: i32) {
        if most > 1 {
            self.budget.get_or_insert_with(one_missing);
        }
    }

    /// How many of so many Pods the budget lets be missing; none for no budget.
    pub fn disruptions_allowed(&self, replicas: i32) -> Option<i64> {
        missing_allowed(self.budget.as_ref()?, replicas)
    }

    /// The update strategy of a Deployment.
    pub fn strategy(&self) -> Value {
        let bounds = json!({ "maxSurge": self.max_surge, "maxUnavailable": self.max_unavailable });
        json!({ "type": "RollingUpdate", "rollingUpdate": bounds })
    }
}

fn one_missing() -> Value {
    json!({ "maxUnavailable": 1 })
}

/// Whether the Pods are those of a StatefulSet: they have names of their own, and are no groups.
fn is_stateful_set(spec: &ServerSpec<'_>, gpus: &Gpus<'_>) -> bool {
    matches!(spec.spread, Spread::Nodes { .. }) && !gpus.parallelism.is_multi_node()
}

/// The budget that the spec gives.
fn given_budget(spec: &ServerSpec<'_>) -> Result<Option<Value>, SpecError> {
    let Some(given) = &spec.serving.disruption_budget else { return Ok(None) };
    match (&given.max_unavailable, &given.min_available) {
        (Some(max), None) => Ok(Some(json!({ "maxUnavailable": max }))),
        (None, Some(min)) => Ok(Some(json!({ "minAvailable": min }))),
        _ => Err(SpecError::AmbiguousBudget),
    }
}

/// How many of so many Pods a budget lets be missing. Kubernetes rounds shares of budgets up.
fn missing_allowed(budget: &Value, replicas: i32) -> Option<i64> {
    if let Some(max) = budget.get("maxUnavailable") {
        return resolve(max, replicas, Rounding::Up);
    }
    let min = resolve(budget.get("minAvailable")?, replicas, Rounding::Up)?;
    Some((i64::from(replicas) - min).max(0))
}

/// How many Pods a rollout lets be missing. Kubernetes rounds these shares down.
fn number(value: &Value, replicas: i32) -> i64 {
    resolve(value, replicas, Rounding::Down).unwrap_or_default()
}
