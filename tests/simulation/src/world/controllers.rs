//! What goes on by itself in a cluster: garbage collection, the ends of namespaces and CRDs, and the controller of Deployments, whose
//! Pods are all available when it has rolled them out. Each comes a while after the change that it follows.

use std::{sync::Arc, time::Duration};

use http::Method;
use serde_json::json;

use crate::{api_server::Object, cluster::Cluster, network::Network, paths::KindPath, plugin::spec::ChildKind};

/// How long after a change garbage is collected at most, in milliseconds.
const DELAY: u32 = 40;

/// Starts all of them. A Deployment is rolled out after this many milliseconds at most.
pub fn start(cluster: &Arc<Cluster>, network: &Arc<Network>, rollout: u32) {
    tokio::spawn(collect_garbage(cluster.clone(), network.clone()));
    tokio::spawn(follow_deployments(cluster.clone(), network.clone(), rollout));
}

async fn collect_garbage(cluster: Arc<Cluster>, network: Arc<Network>) {
    // When there was no garbage.
    let mut idle = 0;
    loop {
        let revision = cluster.revision();
        let garbage = cluster.pending_garbage_after(idle);
        if garbage == 0 {
            idle = revision;
            cluster.until_changed(revision).await;
        } else {
            pause(&network, DELAY).await;
            cluster.collect_garbage(network.below(garbage as u32) as usize);
        }
    }
}

async fn follow_deployments(cluster: Arc<Cluster>, network: Arc<Network>, rollout: u32) {
    let changes = cluster.signal(ChildKind::Deployment.resource());
    loop {
        let revision = changes.get();
        match unfinished(&cluster) {
            None => changes.wait_for(|newest| *newest != revision).await,
            Some(deployment) => {
                pause(&network, rollout).await;
                let found = cluster.get(ChildKind::Deployment.resource(), deployment.namespace(), deployment.name());
                // What has changed meanwhile is another rollout.
                let is_same = |found: &Object| {
                    let generation = found.metadata("generation");
                    found.uid() == deployment.uid() && generation == deployment.metadata("generation")
                };
                if found.is_some_and(|found| is_same(&found)) {
                    roll_out(&cluster, &deployment);
                }
            }
        }
    }
}

async fn pause(network: &Network, longest: u32) {
    tokio::time::sleep(Duration::from_millis(u64::from(network.below(longest)) + 1)).await;
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
