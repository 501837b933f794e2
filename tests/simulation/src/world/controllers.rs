//! What goes on by itself in a cluster: garbage collection, the ends of namespaces and CRDs, and the controllers of Deployments and Jobs.
//! The Pods of a Deployment are all available when it has rolled them out; those of Jobs are there, run and end. Each comes a while after
//! the change that it follows.

use std::{sync::Arc, time::Duration};

use http::Method;
use serde_json::{Value, json};
use tokio::select;

use super::{jobs, pods};
use crate::{
    api_server::Object, cluster::Cluster, kinds::PODS, network::Network, paths::KindPath, plugin::spec::ChildKind,
    time::Time,
};

/// How long after a change garbage is collected at most, in milliseconds.
const DELAY: u32 = 40;

/// What a controller works with.
#[derive(Clone)]
struct Controller {
    cluster: Arc<Cluster>,
    network: Arc<Network>,
    time: Time,
    /// How long a Deployment or a Pod takes at most for what it does, in milliseconds.
    longest: u32,
}

/// Starts all of them. A Deployment is rolled out after this many milliseconds at most, and a Pod has started or ended.
pub fn start(cluster: &Arc<Cluster>, network: &Arc<Network>, time: Time, longest: u32) {
    let controller = Controller { cluster: cluster.clone(), network: network.clone(), time, longest };
    tokio::spawn(collect_garbage(cluster.clone(), network.clone()));
    tokio::spawn(controller.clone().follow_deployments());
    tokio::spawn(controller.clone().follow_jobs());
    tokio::spawn(controller.follow_pods());
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

async fn pause(network: &Network, longest: u32) {
    tokio::time::sleep(Duration::from_millis(u64::from(network.below(longest)) + 1)).await;
}

impl Controller {
    async fn follow_deployments(self) {
        let changes = self.cluster.signal(ChildKind::Deployment.resource());
        loop {
            let revision = changes.get();
            match self.unfinished_deployment() {
                None => changes.wait_for(|newest| *newest != revision).await,
                Some(deployment) => {
                    pause(&self.network, self.longest).await;
                    let resource = ChildKind::Deployment.resource();
                    let found = self.cluster.get(resource, deployment.namespace(), deployment.name());
                    // What has changed meanwhile is another rollout.
                    let is_same = |found: &Object| {
                        let generation = found.metadata("generation");
                        found.uid() == deployment.uid() && generation == deployment.metadata("generation")
                    };
                    if found.is_some_and(|found| is_same(&found)) {
                        self.roll_out(&deployment);
                    }
                }
            }
        }
    }

    /// A Deployment whose status is about an earlier generation.
    fn unfinished_deployment(&self) -> Option<Arc<Object>> {
        let deployments = self.cluster.objects(ChildKind::Deployment.resource());
        let is_old = |deployment: &Arc<Object>| {
            deployment.value["status"]["observedGeneration"] != *deployment.metadata("generation")
        };
        deployments.into_iter().find(is_old)
    }

    fn roll_out(&self, deployment: &Object) {
        let replicas = &deployment.value["spec"]["replicas"];
        let status = json!({
            "observedGeneration": deployment.metadata("generation"), "replicas": replicas,
            "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
        });
        self.set_status("deployments", &path("apps/v1", "Deployment", deployment), status);
    }

    async fn follow_jobs(self) {
        let (jobs, pods) = (self.cluster.signal(ChildKind::Job.resource()), self.cluster.signal(PODS));
        loop {
            let (of_jobs, of_pods) = (jobs.get(), pods.get());
            if self.next_of_jobs().is_none() {
                select! {
                    biased;
                    () = jobs.wait_for(|newest| *newest != of_jobs) => {}
                    () = pods.wait_for(|newest| *newest != of_pods) => {}
                }
                continue;
            }
            pause(&self.network, DELAY).await;
            // What has changed meanwhile may ask for something else.
            if let Some((about, next)) = self.next_of_jobs() {
                self.carry_out(&about, next);
            }
        }
    }

    /// The first thing to do about any Job or Pod of one, and the Job or Pod.
    fn next_of_jobs(&self) -> Option<(Arc<Object>, jobs::Next)> {
        let (all, pods) = (self.cluster.objects(ChildKind::Job.resource()), self.cluster.objects(PODS));
        let now = self.now();
        let of_job = all.iter().find_map(|job| {
            let own: Vec<_> = pods.iter().filter(|pod| controls(job, pod)).map(|pod| &pod.value).collect();
            Some((job.clone(), jobs::next(&job.value, &own, &now)?))
        });
        of_job.or_else(|| {
            let has_job = |pod: &Arc<Object>| all.iter().any(|job| controls(job, pod));
            pods.iter().find_map(|pod| Some((pod.clone(), jobs::release_orphan(&pod.value, has_job(pod))?)))
        })
    }

    fn carry_out(&self, about: &Object, next: jobs::Next) {
        let (who, pods) = ("jobs", KindPath::of("v1", "Pod", about.namespace()));
        match next {
            jobs::Next::Create(pod) => self.cluster.ask(who, Method::POST, &pods.all(), Some(&pod)),
            jobs::Next::Delete(name) => self.cluster.ask(who, Method::DELETE, &pods.named(&name), None),
            jobs::Next::Release(name) => {
                let patch = json!({"metadata": {"finalizers": null}});
                self.cluster.ask(who, Method::PATCH, &pods.named(&name), Some(&patch));
            }
            jobs::Next::Status(status) => self.set_status(who, &path("batch/v1", "Job", about), status),
        }
    }

    async fn follow_pods(self) {
        let changes = self.cluster.signal(PODS);
        loop {
            let revision = changes.get();
            if self.next_of_pods().is_none() {
                changes.wait_for(|newest| *newest != revision).await;
                continue;
            }
            pause(&self.network, self.longest).await;
            if let Some((pod, next)) = self.next_of_pods() {
                let path = path("v1", "Pod", &pod);
                match next {
                    pods::Next::Status(status) => self.set_status("node", &path, status),
                    pods::Next::Gone => {
                        let now = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
                        self.cluster.ask("node", Method::DELETE, &path, Some(&now));
                    }
                }
            }
        }
    }

    fn next_of_pods(&self) -> Option<(Arc<Object>, pods::Next)> {
        let now = self.now();
        self.cluster.objects(PODS).into_iter().find_map(|pod| {
            let next = pods::next(&pod.value, &now)?;
            Some((pod, next))
        })
    }

    fn set_status(&self, who: &str, path: &str, status: Value) {
        self.cluster.ask(who, Method::PATCH, &format!("{path}/status"), Some(&json!({"status": status})));
    }

    fn now(&self) -> String {
        self.time.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

fn path(api_version: &str, kind: &str, object: &Object) -> String {
    KindPath::of(api_version, kind, object.namespace()).named(object.name())
}

/// Whether a Pod belongs to a Job.
fn controls(job: &Object, pod: &Object) -> bool {
    pod.owners().any(|owner| owner.uid == job.uid())
}
