//! What goes on by itself in a cluster: garbage collection, the ends of namespaces and CRDs, and the controller of Deployments, whose
//! Pods are available as soon as it looks. Each comes a while after the change that it follows.

use std::{sync::Arc, time::Duration};

use http::Method;
use serde_json::json;

use crate::{api_server::Object, cluster::Cluster, network::Network, paths::KindPath, plugin::spec::ChildKind};

/// How long after a change the controllers act at most, in milliseconds.
const DELAY: u32 = 40;

/// Starts all of them.
pub fn start(cluster: &Arc<Cluster>, network: &Arc<Network>) {
    tokio::spawn(follow(cluster.clone(), network.clone()));
}

async fn follow(cluster: Arc<Cluster>, network: Arc<Network>) {
    // When there was no garbage.
    let mut idle = 0;
    loop {
        let revision = cluster.revision();
        let (garbage, deployment) = (cluster.pending_garbage_after(idle), unfinished(&cluster));
        if garbage == 0 {
            idle = revision;
        }
        if garbage == 0 && deployment.is_none() {
            cluster.until_changed(revision).await;
            continue;
        }
        tokio::time::sleep(Duration::from_millis(u64::from(network.below(DELAY)) + 1)).await;
        match deployment {
            Some(deployment) if garbage == 0 || network.below(2) == 0 => roll_out(&cluster, &deployment),
            _ => cluster.collect_garbage(network.below(garbage as u32) as usize),
        }
    }
}

/// A Deployment whose status is about an earlier generation.
fn unfinished(cluster: &Cluster) -> Option<Arc<Object>> {
    let deployments = cluster.objects(ChildKind::Deployment.resource());
    let is_old = |deployment: &Arc<Object>| {
        deployment.value["status"]["observedGeneration"] != *deployment.metadata("generation")
    };
    deployments.into_iter().find(is_old)
}

fn roll_out(cluster: &Cluster, deployment: &Object) {
    let replicas = &deployment.value["spec"]["replicas"];
    let status = json!({"status": {
        "observedGeneration": deployment.metadata("generation"), "replicas": replicas, "updatedReplicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas,
    }});
    let path = KindPath::of("apps/v1", "Deployment", deployment.namespace()).named(deployment.name());
    cluster.ask("deployments", Method::PATCH, &format!("{path}/status"), Some(&status));
}
