//! What users, controllers and accidents do to objects and their children, and the moments at which a host has followed.

use std::time::Duration;

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    app_services::AppServices,
    cluster::{Namespace, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

/// One TrainingJob for so many AppServices.
const PER_JOB: usize = 20;

/// How long a host may take for anything: one that counts what it runs is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// Objects of the reference kinds in one namespace.
pub struct Work {
    namespace: Namespace,
    web: AppServices,
    /// How many AppServices.
    objects: usize,
}

impl Work {
    /// Work with so many AppServices.
    pub fn new(namespace: Namespace, objects: usize) -> Result<Self> {
        Ok(Self { web: AppServices::new(&namespace.client(), &namespace.name)?, namespace, objects })
    }

    /// Creates all objects.
    pub async fn create(&self) -> Result<()> {
        self.web.create(self.objects).await?;
        for number in 0..self.objects / PER_JOB {
            self.namespace.apply(training_job(number)).await?;
        }
        Ok(())
    }

    /// Waits until every object's status speaks of its spec.
    pub async fn until_reported(&self) -> Result<()> {
        for kind in ["AppService", "TrainingJob"] {
            let reported = |object: &Value| object["status"]["observedGeneration"] == object["metadata"]["generation"];
            self.until_all(kind, "to be reported on", reported).await?;
        }
        Ok(())
    }

    /// Says of every new Deployment that all its replicas are ready, and waits until that has reached the objects.
    pub async fn come_up(&self) -> Result<()> {
        let deployments = self.namespace.api("Deployment")?;
        let status = json!({"status": {
            "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
        }});
        let ready = async |name: &str| {
            deployments.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
            Ok(())
        };
        self.web.each(self.objects, ready).await?;
        self.until_all("AppService", "to be ready", |object| condition(object, "Ready")["status"] == "True").await
    }

    /// Annotates every object and every Deployment.
    pub async fn touch(&self) -> Result<()> {
        let touched = json!({"metadata": {"annotations": {"example.com/touched": "yes"}}});
        self.web.change_objects(self.objects, &touched).await?;
        self.web.change_children(self.objects, &touched).await
    }

    /// Gives every object another image.
    pub async fn change_all(&self) -> Result<()> {
        self.web.change_objects(self.objects, &json!({"spec": {"image": "example.com/web:2"}})).await?;
        self.until_reported().await
    }

    /// Gives one object after the other another image, and then edits one Deployment after the other, as nobody should.
    pub async fn one_by_one(&self) -> Result<()> {
        let follower = self.web.follow_children().await?;
        for number in 0..self.objects {
            self.web.change(&follower, number, "example.com/web:3").await?;
        }
        for number in 0..self.objects {
            self.web.drift(&follower, number).await?;
        }
        Ok(())
    }

    /// Deletes all objects, and waits until they are gone.
    pub async fn delete(&self) -> Result<()> {
        for kind in ["AppService", "TrainingJob"] {
            self.namespace.api(kind)?.delete_collection(&Default::default(), &Default::default()).await?;
            self.until_all(kind, "to be gone", |_| false).await?;
        }
        Ok(())
    }

    async fn until_all(&self, kind: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Result<()> {
        eventually(PATIENCE, &format!("every {kind} {what}"), async || {
            let objects = self.namespace.list(kind).await?;
            let waiting = objects.iter().filter(|object| !holds(object)).count();
            Ok(Look::of(waiting == 0, format!("{waiting} of {} are not", objects.len())))
        })
        .await
    }
}

fn training_job(number: usize) -> Value {
    json!({
        "apiVersion": "ml.example.com/v1alpha1", "kind": "TrainingJob", "metadata": {"name": format!("job-{number}")},
        "spec": {"framework": "pytorch", "workers": 3, "image": "example.com/train:1", "command": ["train"]},
    })
}
