//! From a `ModelDeployment` to the response. What a server consists of is in the shared library.

use crate::api::{ModelDeployment, ReportedStatus};
use crate::autoscaler::{self, MetricNames, Scaling, scaling};
use crate::live::LiveStatefulSet;
use crate::observed_hpa::ObservedHpa;
use crate::sla::{Targets, needed_replicas};
use crate::sla_conditions::{self, ANNOUNCED};
use crate::workload;
use llm_serving::child::Child;
use llm_serving::config::Config;
use llm_serving::engine::DefaultEngine;
use llm_serving::respond::{Observed, Parts, respond};
use llm_serving::server::Server;
use llm_serving::server_spec::{Identity, ServerSpec};
use llm_serving::validate::checked;
use pilothouse_pods::name::{MAX_STATEFUL_SET, dns_label};
use pilothouse_sdk::{Error, Request, Response};

/// The desired children, the status and the conditions of a `ModelDeployment`.
///
/// # Errors
/// A lookup fails, or an object cannot be read.
pub fn reconcile(request: &Request<ModelDeployment>) -> Result<Response, Error> {
    let config = request.config::<Config>()?;
    let server = match checked(server_spec(&request.object), &config) {
        Ok(server) => server,
        Err(error) => return Ok(Response::invalid(error.to_string())),
    };
    let targets = match Targets::of(request.object.spec.sla.as_ref()) {
        Ok(targets) => targets,
        Err(error) => return Ok(Response::invalid(error.to_string())),
    };
    let names = MetricNames::of(&server, &targets);
    let engine = request.object.spec.model_fields.engine.as_deref().unwrap_or("vllm");
    match scaling(&request.object.spec, &names, engine) {
        Ok(scaling) => Served { request, server: &server, targets, names, scaling }.respond(),
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

impl Served<'_> {
    fn respond(&self) -> Result<Response, Error> {
        let (object, name) = (&self.request.object, self.server.workload());
        let live = self.request.child::<LiveStatefulSet>(name)?.unwrap_or_default();
        let hpa = self.request.child::<ObservedHpa>(name)?.filter(|_| matches!(self.scaling, Scaling::Hpa(_)));
        let old_status = object.status.as_ref();
        let needed = needed_replicas(&object.spec);
        let observed = Observed {
            workload: &live.workload,
            desired: workload::desired(&self.scaling, &live, needed),
            old_conditions: old_status.map(|status| status.conditions.as_slice()).unwrap_or_default(),
        };
        let children = workload::children(object, self.server, &self.scaling, &live);
        let parts = Parts {
            children: children.map(|children| children.into_iter().chain(self.hpa()).collect()),
            conditions: sla_conditions::of(&self.targets, &self.names, hpa.as_ref()),
            announced: &ANNOUNCED,
        };
        let latency = sla_conditions::observed(&self.names, hpa.as_ref()).map(sla_conditions::in_words);
        respond(self.server, &observed, parts, |serving| ReportedStatus {
            serving,
            needed_replicas: needed,
            observed_latency: latency,
        })
    }

    fn hpa(&self) -> Option<Child> {
        let Scaling::Hpa(bounds) = self.scaling else { return None };
        let given = self.request.object.spec.autoscaling.as_ref();
        let metrics = autoscaler::metrics(self.server, &self.names, &self.targets, given);
        Some(Child::new(autoscaler::hpa(self.server, given, bounds, metrics)))
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
        resources: spec.resources.clone().unwrap_or_default(),
        model: &spec.model_fields,
        serving: &spec.serving,
        default_engine: DefaultEngine::Vllm,
        default_port: None,
    }
}
