//! From a `ModelDeployment` to the response. What a server consists of is in the shared library.

use crate::api::{Autoscaler, ModelDeployment, ReportedStatus};
use crate::autoscaler::{MetricNames, Scaling, scaling};
use crate::autoscalers::{Autoscalers, Scaled};
use crate::group_names;
use crate::others;
use crate::placement::{self, Placement};
use crate::progress::{self, Judged, State};
use crate::replicas::{self, Before, Kept};
use crate::sla::{Targets, needed_replicas};
use crate::sla_conditions;
use crate::sla_error::SlaError;
use crate::workload;
use llm_serving::conditions::{KIND_NOT_INSTALLED, of_missing_kinds};
use llm_serving::config::Config;
use llm_serving::engine::DefaultEngine;
use llm_serving::model_volume;
use llm_serving::parallelism::Spread;
use llm_serving::respond::{Observed, Parts, RECHECK_SECONDS, counted, refused, respond, unchanged};
use llm_serving::server::Server;
use llm_serving::server_spec::{Identity, ServerSpec};
use llm_serving::spec_error::SpecError;
use llm_serving::surroundings::{self, MissingKind};
use llm_serving::validate::checked;
use pilothouse_pods::transition::Announced;
use pilothouse_sdk::{Error, Request, Response};
use thiserror::Error as ThisError;

/// The conditions whose changes are Events, besides those of every server.
const ANNOUNCED: [Announced<'_>; 4] = {
    let [sla] = sla_conditions::ANNOUNCED;
    let [autoscaler, workload] = others::ANNOUNCED;
    let [names] = group_names::ANNOUNCED;
    [sla, autoscaler, workload, names]
};

/// The desired children, the status and the conditions of a `ModelDeployment`.
///
/// # Errors
/// A lookup fails, or an object cannot be read.
pub fn reconcile(request: &Request<ModelDeployment>) -> Result<Response, Error> {
    let config = request.config::<Config>()?;
    match Checked::of(&request.object, &config) {
        Ok(Checked { mut server, targets, names, scaling }) => {
            server.rollout.with_budget_for(scaling.most());
            let placement = placement::look(request, &server)?;
            // Clients talk to what runs, also while it goes.
            server.clients = placement.running_kind(&server).clients();
            let scaling = replicas::with_zero_of_others(scaling, before(&request.object));
            Served { scaled: Scaled { request, server: &server, targets, names, scaling }, placement }.respond()
        }
        Err(mistake) => without_server(request, &mistake),
    }
}

/// The first mistake of an object, which only its user can correct.
#[derive(Debug, ThisError)]
enum Mistake {
    #[error(transparent)]
    Sla(#[from] SlaError),
    #[error(transparent)]
    Server(#[from] SpecError),
}

/// What an object asks for, if it has no mistake.
struct Checked<'a> {
    server: Server<'a>,
    targets: Targets,
    names: MetricNames,
    scaling: Scaling,
}

impl<'a> Checked<'a> {
    /// What it asks for, or the first mistake.
    fn of(object: &'a ModelDeployment, config: &'a Config) -> Result<Self, Mistake> {
        let targets = Targets::of(object.spec.sla.as_ref())?;
        let server = checked(server_spec(object), config)?;
        let names = MetricNames::of(&server, &targets);
        let engine = object.spec.model_fields.engine.as_deref().unwrap_or("vllm");
        let scaling = scaling(&object.spec, &names, engine)?;
        Ok(Self { server, targets, names, scaling })
    }
}

/// The response to an object with a mistake.
fn without_server(request: &Request<ModelDeployment>, mistake: &Mistake) -> Result<Response, Error> {
    let workload = identity(&request.object).workload;
    let live = placement::running(request, &workload)?.workload;
    let targets = surroundings::Targets::of(request, &workload);
    let old = reported(&request.object);
    let serving = counted(old.serving, &live, targets);
    Ok(refused(mistake.to_string(), &live, ReportedStatus { serving, observed_latency: None, ..old }))
}

/// What was reported last.
fn reported(object: &ModelDeployment) -> ReportedStatus {
    object.status.as_ref().map(|status| status.reported.clone()).unwrap_or_default()
}

/// What is known of the time before, besides the autoscalers that exist.
fn before(object: &ModelDeployment) -> Before {
    let old = reported(object);
    let has_autoscaler = old.autoscaler.is_some_and(|autoscaler| autoscaler != Autoscaler::None);
    Before { has_autoscaler, needed: old.needed_replicas, kept: old.kept_replicas }
}

/// A `ModelDeployment` that can be served.
struct Served<'a> {
    scaled: Scaled<'a>,
    placement: Placement,
}

impl Served<'_> {
    fn respond(&self) -> Result<Response, Error> {
        let Scaled { request, server, targets, scaling, .. } = &self.scaled;
        let (object, placement) = (&request.object, &self.placement);
        if let Some(kind) = placement.missing {
            return Ok(self.without_kind(kind));
        }
        let Autoscalers { deciding, names, child, missing, exists, silence, waits } =
            self.scaled.autoscalers(placement.standing)?;
        let mut before = before(object);
        before.has_autoscaler |= exists;
        let kept = Kept::of(scaling, &placement.live, before);
        let scaling = kept.scaling(replicas::unless_paused(scaling.clone(), silence.as_ref()));
        let mut observed = self.observed(&scaling);
        let Judged { progress, overdue, seconds_left } = self.judged(&observed)?;
        observed.overdue = overdue;
        let mut children = workload::children(object, server, &scaling, placement);
        let is_to_be_recorded = kept.replicas.is_some() && !kept.is_recorded;
        if let (Ok(children), true) = (&mut children, is_to_be_recorded) {
            children.extend(self.scaled.untouched()?);
        }
        let (deciding, ready) = (deciding.as_ref(), observed.workload.status.ready_replicas);
        let mut conditions = sla_conditions::of(targets, &names, deciding, ready, silence);
        conditions.extend(others::conditions(request, server, &self.scaled.scaling, waits)?);
        conditions.extend(group_names::condition(placement.taken.as_ref()));
        let parts = Parts {
            children: children.map(|children| children.into_iter().chain(child).collect()),
            missing_kinds: missing.into_iter().collect(),
            conditions,
            announced: &ANNOUNCED,
        };
        let latency = sla_conditions::observed(&names, deciding, ready).map(sla_conditions::in_words);
        let response = respond(server, &observed, parts, |serving| ReportedStatus {
            serving,
            needed_replicas: Some(self.needed()),
            autoscaler: Some(self.scaled.scaling.autoscaler()),
            kept_replicas: kept.replicas,
            progress,
            observed_latency: latency,
        })?;
        // The host's own write of a status is no change that leads to a call, and the autoscaler goes with the next one.
        let next = if is_to_be_recorded { Some(0) } else { seconds_left };
        Ok(match next {
            Some(seconds) => response.requeue_after(seconds),
            None => response,
        })
    }

    fn judged(&self, observed: &Observed<'_>) -> Result<Judged, Error> {
        let object = &self.scaled.request.object;
        let state = State {
            generation: object.metadata.generation,
            workload: observed.workload,
            desired: observed.desired,
            is_awaited: observed.awaited.is_some(),
        };
        let old = object.status.as_ref().and_then(|status| status.reported.progress.as_ref());
        progress::judge(&state, old, model_volume::progress_deadline_seconds(self.scaled.server))
    }

    /// How many replicas are needed; none while all are suspended.
    fn needed(&self) -> i32 {
        if self.scaled.scaling == Scaling::Fixed(0) { 0 } else { needed_replicas(&self.scaled.request.object.spec) }
    }

    fn observed(&self, scaling: &Scaling) -> Observed<'_> {
        let (Scaled { request, server, .. }, placement) = (&self.scaled, &self.placement);
        let old_status = request.object.status.as_ref();
        Observed {
            workload: &placement.running().workload,
            between: placement.running_kind(server).between(server.workload()),
            awaited: placement.waits(server),
            overdue: None,
            targets: surroundings::Targets::of(request, server.workload()),
            desired: replicas::desired(scaling, &placement.live, self.needed()),
            old_conditions: old_status.map(|status| status.conditions.as_slice()).unwrap_or_default(),
        }
    }

    /// The response while the cluster does not have the kind of the workload: what is there stays as it is.
    fn without_kind(&self, kind: MissingKind) -> Response {
        let scaling = &self.scaled.scaling;
        let desired = replicas::desired(scaling, self.placement.running(), self.needed());
        let observed = Observed { desired, ..self.observed(scaling) };
        let old = reported(&self.scaled.request.object);
        let serving = counted(old.serving, observed.workload, observed.targets);
        let conditions: Vec<_> = of_missing_kinds(&[kind]).into_iter().collect();
        let message = conditions.first().map(|condition| condition.message.clone()).unwrap_or_default();
        let response = Response::wait(KIND_NOT_INSTALLED, message, RECHECK_SECONDS);
        let response = response.status(ReportedStatus { serving, observed_latency: None, ..old });
        unchanged(response, &observed, conditions, &ANNOUNCED)
    }
}

fn identity(object: &ModelDeployment) -> Identity<'_> {
    Identity {
        object: object.name(),
        namespace: object.namespace(),
        component: "modeldeployment",
        workload: placement::workload_name(object.name()),
    }
}

fn server_spec(object: &ModelDeployment) -> ServerSpec<'_> {
    let spec = &object.spec;
    ServerSpec {
        identity: identity(object),
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
