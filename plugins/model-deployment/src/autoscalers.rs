//! The autoscalers of a `ModelDeployment` as the cluster has them, and the one that there shall be. It only scales what is ours.

use crate::api::ModelDeployment;
use crate::autoscaler::{self, Bounds, MetricNames, Scaling};
use crate::keda;
use crate::observed_hpa::ObservedHpa;
use crate::observed_scaled_object::{ScaledObject, Silence};
use crate::sla::Targets;
use crate::turn::{Existing, Turn};
use llm_serving::child::{Child, Standing};
use llm_serving::server::Server;
use llm_serving::surroundings::MissingKind;
use pilothouse_sdk::{Error, Request, lookup};
use serde_json::Value;

/// What autoscalers are made of.
pub struct Scaled<'a> {
    /// The object.
    pub request: &'a Request<ModelDeployment>,
    /// Its server.
    pub server: &'a Server<'a>,
    /// What it shall achieve.
    pub targets: Targets,
    /// The names of the metrics.
    pub names: MetricNames,
    /// Who decides.
    pub scaling: Scaling,
}

/// The autoscalers as the cluster has them.
pub struct Autoscalers {
    /// The one that decides; none if none does, or if it does not exist yet.
    pub deciding: Option<ObservedHpa>,
    /// The names of the metrics that it reads.
    pub names: MetricNames,
    /// The one that there shall be.
    pub child: Option<Child>,
    /// KEDA, if it is asked for and not there.
    pub missing: Option<MissingKind>,
    /// Whether one of this object exists.
    pub exists: bool,
    /// Why KEDA, which decides, makes no autoscaler; none if nothing is known to be wrong.
    pub silence: Option<Silence>,
    /// What has to go first, in a sentence; none if nothing has.
    pub waits: Option<String>,
}

impl Scaled<'_> {
    /// The autoscalers, where there is this under the name of the workload.
    ///
    /// # Errors
    /// A lookup fails, or an object cannot be read.
    pub fn autoscalers(&self, workload: Standing) -> Result<Autoscalers, Error> {
        let (request, name) = (self.request, self.server.workload());
        let own = request.child::<ObservedHpa>(name)?;
        let scaled_object = request.child::<ScaledObject>(name)?;
        let asks = matches!(self.scaling, Scaling::Hpa(_) | Scaling::Keda(_));
        let of_keda = if asks { lookup::get::<ObservedHpa>(None, &keda::hpa_name(name))? } else { None };
        let of_keda = of_keda.filter(|hpa| hpa.is_of_scaled_object(name));
        let missing = self.missing_keda()?;
        let existing = Existing {
            hpa: own.is_some(),
            scaled_object: scaled_object.is_some(),
            hpa_of_keda: of_keda.is_some(),
            keda: missing.is_none(),
        };
        let turn = Turn::of(&self.scaling, existing);
        let (deciding, names) = match (turn, &self.scaling) {
            (Turn::Hpa, _) | (_, Scaling::Hpa(_)) => (own, self.names.clone()),
            (_, Scaling::Keda(_)) => (of_keda, self.names_of_keda()),
            (_, Scaling::Fixed(_) | Scaling::External { .. }) => (None, self.names.clone()),
        };
        let child = self.autoscaler(turn).map(Child::new).and_then(|child| child.leading_to(workload));
        let exists = existing.hpa || existing.scaled_object;
        let waits = existing.superseded(&self.scaling).map(|old| {
            format!("the {old} for '{name}' has to go, and is still there; if it stays, see its finalizers")
        });
        let scaled_object = scaled_object.filter(|_| matches!(self.scaling, Scaling::Keda(_)));
        let silence = scaled_object.as_ref().and_then(ScaledObject::silence);
        Ok(Autoscalers { deciding, names, child, missing, exists, silence, waits })
    }

    /// The autoscalers of this object as they are, for one more call.
    ///
    /// # Errors
    /// An object cannot be read.
    pub fn untouched(&self) -> Result<Vec<Child>, Error> {
        let name = self.server.workload();
        let has_hpa = self.request.child::<ObservedHpa>(name)?.is_some();
        let has_scaled_object = self.request.child::<ScaledObject>(name)?.is_some();
        let hpa = has_hpa.then(|| Child::untouched::<ObservedHpa>(name));
        Ok(hpa.into_iter().chain(has_scaled_object.then(|| Child::untouched::<ScaledObject>(name))).collect())
    }

    /// KEDA, if it shall decide and is not installed.
    fn missing_keda(&self) -> Result<Option<MissingKind>, Error> {
        if !matches!(self.scaling, Scaling::Keda(_)) {
            return Ok(None);
        }
        MissingKind::of::<ScaledObject>("autoscaling.autoscaler", self.server.workload())
    }

    /// KEDA names the metrics of its triggers by their numbers, and the latency is the first.
    fn names_of_keda(&self) -> MetricNames {
        let latency = if self.names.latency.is_empty() { String::new() } else { keda::FIRST_METRIC.to_owned() };
        MetricNames { latency, queue: self.names.queue.clone() }
    }

    fn autoscaler(&self, turn: Turn) -> Option<Value> {
        let given = self.request.object.spec.autoscaling.as_ref();
        match (turn, &self.scaling) {
            (Turn::Hpa, Scaling::Hpa(bounds) | Scaling::Keda(bounds)) => {
                let metrics = autoscaler::metrics(self.server, &self.names, &self.targets, given);
                // Only KEDA removes the last Pod.
                let bounds = Bounds { min: bounds.min.max(1), ..*bounds };
                Some(autoscaler::hpa(self.server, given, bounds, metrics))
            }
            (Turn::ScaledObject, Scaling::Keda(bounds)) => {
                Some(keda::scaled_object(self.server, given?, *bounds, &self.targets))
            }
            _ => None,
        }
    }
}
