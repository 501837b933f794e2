//! From a `ModelDeployment` to the response. What a server consists of is in the shared library.

use crate::api::{ModelDeployment, ReportedStatus};
use crate::autoscaler::{self, Bounds, MetricNames, Scaling, scaling};
use crate::keda::{self, ScaledObject};
use crate::observed_hpa::ObservedHpa;
use crate::placement::{self, Placement};
use crate::replicas::{self, Before, Kept};
use crate::sla::{Targets, needed_replicas};
use crate::sla_conditions::{self, ANNOUNCED};
use crate::turn::{Existing, Turn};
use crate::workload;
use llm_serving::child::Child;
use llm_serving::conditions::{KIND_NOT_INSTALLED, of_missing_kinds};
use llm_serving::config::Config;
use llm_serving::engine::DefaultEngine;
use llm_serving::parallelism::Spread;
use llm_serving::respond::{Observed, Parts, RECHECK_SECONDS, respond, unchanged};
use llm_serving::server::Server;
use llm_serving::server_spec::{Identity, ServerSpec};
use llm_serving::surroundings::MissingKind;
use llm_serving::validate::checked;
use pilothouse_pods::name::{MAX_STATEFUL_SET, dns_label};
use pilothouse_pods::transition::StatusCondition;
use pilothouse_sdk::{Error, Request, Response, lookup};
use serde_json::Value;

/// The desired children, the status and the conditions of a `ModelDeployment`.
///
/// # Errors
/// A lookup fails, or an object cannot be read.
pub fn reconcile(request: &Request<ModelDeployment>) -> Result<Response, Error> {
    let config = request.config::<Config>()?;
    let targets = match Targets::of(request.object.spec.sla.as_ref()) {
        Ok(targets) => targets,
        Err(error) => return Ok(Response::invalid(error.to_string())),
    };
    let mut server = match checked(server_spec(&request.object), &config) {
        Ok(server) => server,
        Err(error) => return Ok(Response::invalid(error.to_string())),
    };
    let names = MetricNames::of(&server, &targets);
    let engine = request.object.spec.model_fields.engine.as_deref().unwrap_or("vllm");
    match scaling(&request.object.spec, &names, engine) {
        Ok(scaling) => {
            server.rollout.with_budget_for(scaling.most());
            Served { request, server: &server, targets, names, scaling }.respond()
        }
        Err(error) => Ok(Response::invalid(error.to_string())),
    }
}

/// A `ModelDeployment` that can be served.
struct Served<'a> {
    request: &'a Request<ModelDeployment>,
    server: &'a Server<'a>,
    targets: Targets,
    names: MetricNames,
    scaling: Scaling,
}

/// The autoscalers as the cluster has them.
struct Autoscalers {
    /// The one that decides; none if none does, or if it does not exist yet.
    deciding: Option<ObservedHpa>,
    /// The names of the metrics that it reads.
    names: MetricNames,
    /// The one that there shall be.
    child: Option<Child>,
    /// KEDA, if it is asked for and not there.
    missing: Option<MissingKind>,
    /// Whether one of this object exists.
    exists: bool,
}

impl Served<'_> {
    fn respond(&self) -> Result<Response, Error> {
        let object = &self.request.object;
        let placement = placement::look(self.request, self.server)?;
        let old_status = object.status.as_ref();
        let old_conditions = old_status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        if let Some(kind) = placement.missing {
            return Ok(self.without_kind(&placement, kind, old_conditions));
        }
        let autoscalers = self.autoscalers()?;
        let needed = needed_replicas(&object.spec);
        let before = Before {
            has_autoscaler: autoscalers.exists,
            needed: old_status.and_then(|status| status.needed_replicas),
            kept: old_status.and_then(|status| status.kept_replicas),
        };
        let kept = Kept::of(&self.scaling, &placement.live, before);
        let scaling = kept.scaling(self.scaling.clone());
        let observed = Observed {
            workload: &placement.live.workload,
            desired: replicas::desired(&scaling, &placement.live, needed),
            old_conditions,
        };
        let mut children = workload::children(object, self.server, &scaling, &placement);
        let is_to_be_recorded = kept.replicas.is_some() && !kept.is_recorded;
        if let (Ok(children), true) = (&mut children, is_to_be_recorded) {
            children.extend(self.untouched_autoscalers()?);
        }
        let (deciding, names) = (autoscalers.deciding.as_ref(), &autoscalers.names);
        let parts = Parts {
            children: children.map(|children| children.into_iter().chain(autoscalers.child).collect()),
            missing_kinds: autoscalers.missing.into_iter().collect(),
            conditions: sla_conditions::of(&self.targets, names, deciding),
            announced: &ANNOUNCED,
        };
        let latency = sla_conditions::observed(names, deciding).map(sla_conditions::in_words);
        let response = respond(self.server, &observed, parts, |serving| ReportedStatus {
            serving,
            needed_replicas: needed,
            kept_replicas: kept.replicas,
            observed_latency: latency,
        })?;
        // The host's own write of a status is no change that leads to a call, and the autoscaler goes with the next one.
        Ok(if is_to_be_recorded { response.requeue_after(0) } else { response })
    }

    /// The response while the cluster does not have the kind of the workload: what is there stays as it is.
    fn without_kind(&self, placement: &Placement, kind: MissingKind, old_conditions: &[StatusCondition]) -> Response {
        let live = placement.other.as_ref().unwrap_or(&placement.live);
        let desired = replicas::desired(&self.scaling, live, needed_replicas(&self.request.object.spec));
        let observed = Observed { workload: &live.workload, desired, old_conditions };
        let conditions: Vec<_> = of_missing_kinds(&[kind]).into_iter().collect();
        let message = conditions.first().map(|condition| condition.message.clone()).unwrap_or_default();
        unchanged(Response::wait(KIND_NOT_INSTALLED, message, RECHECK_SECONDS), &observed, conditions, &ANNOUNCED)
    }

    fn autoscalers(&self) -> Result<Autoscalers, Error> {
        let (request, name) = (self.request, self.server.workload());
        let own = request.child::<ObservedHpa>(name)?;
        let has_scaled_object = request.child::<ScaledObject>(name)?.is_some();
        let asks = matches!(self.scaling, Scaling::Hpa(_) | Scaling::Keda(_));
        let of_keda = if asks { lookup::get::<ObservedHpa>(None, &keda::hpa_name(name))? } else { None };
        let of_keda = of_keda.filter(|hpa| hpa.is_of_scaled_object(name));
        let missing = self.missing_keda()?;
        let existing = Existing {
            hpa: own.is_some(),
            scaled_object: has_scaled_object,
            hpa_of_keda: of_keda.is_some(),
            keda: missing.is_none(),
        };
        let turn = Turn::of(&self.scaling, existing);
        let (deciding, names) = match (turn, &self.scaling) {
            (Turn::Hpa, _) | (_, Scaling::Hpa(_)) => (own, self.names.clone()),
            (_, Scaling::Keda(_)) => (of_keda, self.names_of_keda()),
            (_, Scaling::Fixed(_) | Scaling::External { .. }) => (None, self.names.clone()),
        };
        let child = self.autoscaler(turn).map(Child::new);
        let exists = existing.hpa || existing.scaled_object;
        Ok(Autoscalers { deciding, names, child, missing, exists })
    }

    /// The autoscalers of this object as they are, for one more call.
    fn untouched_autoscalers(&self) -> Result<Vec<Child>, Error> {
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

fn server_spec(object: &ModelDeployment) -> ServerSpec<'_> {
    let spec = &object.spec;
    ServerSpec {
        identity: Identity {
            object: object.name(),
            namespace: object.namespace(),
            component: "modeldeployment",
            workload: dns_label(object.name(), MAX_STATEFUL_SET),
        },
        model_name: &spec.model,
        replicas: needed_replicas(spec),
        gpu_count: spec.tensor_parallel_size,
        gpu_count_field: "tensorParallelSize",
        spread: Spread::Nodes { pipeline: spec.pipeline_parallel_size.unwrap_or(1), gpus_per_node: spec.gpus_per_node },
        resources: spec.resources.clone().unwrap_or_default(),
        model: &spec.model_fields,
        serving: &spec.serving,
        default_engine: DefaultEngine::Vllm,
        default_port: None,
    }
}
