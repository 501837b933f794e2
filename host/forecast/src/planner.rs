//! Answers a running host that asks what a new version would do, from the caches that the host has. Bounded: a version that answers slowly,
//! or very many objects, lead to a plan about some of them.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use pilothouse_controller::{
    api::PlanSummary,
    host::Host,
    source::plugin_objects::{PlanError, PlannedVersion, Planner},
};

use crate::{Bounds, Cluster, Depth, Report, summary};

/// How much of a cluster a plan of the host is about.
const BOUNDS: Bounds = Bounds { objects: 2_000, time: Duration::from_secs(60) };

/// How long it may take to read what the version needs to see.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Asks new versions about the objects of a host.
pub struct HostPlanner {
    host: Arc<Host>,
}

/// What a version needs to see is not there after a while.
#[derive(Debug, thiserror::Error)]
#[error("the objects that the version needs to see are not read after {READ_TIMEOUT:?}")]
struct NotRead;

impl HostPlanner {
    /// A planner for a host.
    pub fn new(host: Arc<Host>) -> Self {
        Self { host }
    }
}

impl Planner for HostPlanner {
    fn plan(&self, planned: PlannedVersion) -> BoxFuture<'static, Result<PlanSummary, PlanError>> {
        plan(self.host.clone(), planned).boxed()
    }
}

async fn plan(host: Arc<Host>, planned: PlannedVersion) -> Result<PlanSummary, PlanError> {
    let version = planned.version.clone();
    let read = tokio::time::timeout(READ_TIMEOUT, Cluster::of_host(&host, planned)).await;
    let cluster = read.map_err(|_| NotRead)??;
    let total = cluster.names().len();
    let forecast = cluster.forecast(Depth::Eventual, BOUNDS, |_| ()).await;
    let report = Report::of(&*version, None, &forecast);
    Ok(summary(&report, total.saturating_sub(forecast.objects.len())))
}
