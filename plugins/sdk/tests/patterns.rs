//! The functions of `docs/patterns.md`: each block of the page is in this file word for word, and each function does what the page says.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use pilothouse_sdk::{
    Error, Handling, Object, Options, ReadinessStatus, RemovalPolicy, Request, Response, Verdict, clock, json,
    k8s_openapi::api::{
        apps::v1::Deployment,
        batch::v1::Job,
        core::v1::{ConfigMap, Secret, Service},
    },
    lookup,
    testing::Case,
};
use serde::Deserialize;

const PAGE: &str = include_str!("../../../docs/patterns.md");

mod waiting {
    use super::*;

    #[derive(Deserialize)]
    pub struct Spec {
        settings: String,
    }

    pub fn reconcile(request: &Request<Object<Spec>>) -> Result<Response, Error> {
        let settings = &request.object.spec.settings;
        let Some(found) = lookup::get::<ConfigMap>(None, settings)? else {
            return Ok(Response::wait("SettingsMissing", format!("there is no ConfigMap '{settings}'"), 300));
        };
        let color = found.data.unwrap_or_default().remove("color").unwrap_or_default();
        Ok(Response::done().child(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": request.object.name() },
            "data": { "color": color },
        })))
    }
}

mod order {
    use super::*;

    #[derive(Deserialize)]
    pub struct Spec {
        image: String,
    }

    pub fn reconcile(request: &Request<Object<Spec>>) -> Response {
        let (name, image) = (request.object.name(), &request.object.spec.image);
        let migration = format!("{name}-migrate");
        let after = Options { after: vec![format!("Job/{migration}")], ..Options::default() };
        Response::done()
            .child(json!({
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": { "name": migration },
                "spec": { "template": { "spec": {
                    "restartPolicy": "Never",
                    "containers": [{ "name": "migrate", "image": image, "args": ["migrate"] }],
                } } },
            }))
            .child_with(server(name, image), after)
    }

    fn server(name: &str, image: &str) -> serde_json::Value {
        serde_json::json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": name },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "app", "image": image }] },
                },
            },
        })
    }
}

mod values {
    use super::*;

    pub fn reconcile(request: &Request<Object<serde_json::Value>>) -> Result<Response, Error> {
        let name = request.object.name();
        let service = request.child::<Service>(name)?;
        let address = service.and_then(|service| service.spec?.cluster_ip);
        let response = Response::done().child(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": name },
            "spec": { "selector": { "app": name }, "ports": [{ "port": 80 }] },
        }));
        let settings = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name },
            "data": { "address": address },
        });
        // Until the address is known, a ConfigMap that is there stays as it is, and none is made.
        let handling = if address.is_some() { Handling::Apply } else { Handling::Keep };
        Ok(response.child_with(settings, Options { handling, ..Options::default() }))
    }
}

mod secrets {
    use super::*;

    #[derive(Deserialize)]
    pub struct Spec {
        image: String,
        password: String,
    }

    pub fn reconcile(request: &Request<Object<Spec>>) -> Result<Response, Error> {
        let (name, spec) = (request.object.name(), &request.object.spec);
        let Some(secret) = lookup::get::<Secret>(None, &spec.password)? else {
            return Ok(Response::wait("PasswordMissing", format!("there is no Secret '{}'", spec.password), 300));
        };
        let from = json!({ "secretKeyRef": { "name": spec.password, "key": "password" } });
        Ok(Response::done().child(json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": name },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    // Another Secret is another template: the Pods roll.
                    "metadata": {
                        "labels": { "app": name },
                        "annotations": { "example.com/password": secret.metadata.resource_version },
                    },
                    "spec": { "containers": [{
                        "name": "app",
                        "image": spec.image,
                        "env": [{ "name": "PASSWORD", "valueFrom": from }],
                    }] },
                },
            },
        })))
    }
}

mod scaling {
    use super::*;

    #[derive(Deserialize)]
    pub struct Spec {
        image: String,
        replicas: Option<i32>,
    }

    pub fn reconcile(request: &Request<Object<Spec>>) -> Response {
        let (name, spec) = (request.object.name(), &request.object.spec);
        // Without a number of its own, the object leaves the number to an autoscaler.
        let unmanaged = if spec.replicas.is_none() { vec!["/spec/replicas".to_owned()] } else { Vec::new() };
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": name },
            "spec": {
                "replicas": spec.replicas.unwrap_or(1),
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "app", "image": spec.image }] },
                },
            },
        });
        Response::done().child_with(deployment, Options { unmanaged, ..Options::default() })
    }
}

mod cleaning_up {
    use super::*;

    /// What the plugin's manifest names with `finalize: finalize`.
    pub fn finalize(request: &Request<Object<serde_json::Value>>) -> Response {
        let name = format!("{}-cleanup", request.object.name());
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": { "name": name },
            "spec": { "template": { "spec": {
                "restartPolicy": "Never",
                "containers": [{ "name": "cleanup", "image": "registry.example.com/cleanup:1" }],
            } } },
        });
        match request.readiness::<Job>(&name) {
            Some(found) if found.status == ReadinessStatus::Current => Response::done(),
            Some(found) if found.status == ReadinessStatus::Failed => {
                Response::wait("CleanupFailed", found.message.clone(), 300).child(job)
            }
            _ => Response::wait("CleaningUp", "the Job is not done", 300).child(job),
        }
    }
}

mod versions {
    use super::*;

    #[derive(Deserialize)]
    pub struct Spec {
        /// Since version 2.
        image: Option<ImageRef>,
        /// Of version 1: objects that nobody has touched since then have it.
        #[serde(rename = "imageName")]
        image_name: Option<String>,
    }

    #[derive(Deserialize)]
    struct ImageRef {
        repository: String,
        tag: String,
    }

    impl Spec {
        pub fn image(&self) -> Option<String> {
            let image = self.image.as_ref().map(|image| format!("{}:{}", image.repository, image.tag));
            image.or_else(|| self.image_name.clone())
        }
    }
}

mod moving {
    use super::*;

    pub fn reconcile(request: &Request<Object<serde_json::Value>>) -> Result<Response, Error> {
        let name = request.object.name();
        let (old, new) = (name.to_owned(), format!("{name}-server"));
        let kept = |name: &str| json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name } });
        let response = Response::done().child(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": new },
            "spec": { "selector": { "app": name }, "ports": [{ "port": 80 }] },
        }));
        // What has the old name goes once the new one is there.
        let is_there = request.child::<Service>(&new)?.is_some();
        let was_there = request.child::<Service>(&old)?.is_some();
        let options = Options { handling: Handling::Keep, ..Options::default() };
        Ok(if was_there && !is_there { response.child_with(kept(&old), options) } else { response })
    }
}

mod data {
    use super::*;

    pub fn reconcile(request: &Request<Object<serde_json::Value>>) -> Response {
        let claim = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": { "name": request.object.name() },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
        });
        let options = Options { on_removal: RemovalPolicy::Keep, ..Options::default() };
        Response::done().child_with(claim, options)
    }
}

mod time {
    use super::*;

    #[derive(Deserialize)]
    pub struct Spec {
        until: String,
    }

    pub fn reconcile(request: &Request<Object<Spec>>) -> Response {
        // Both are RFC 3339 in UTC, so their order is that of texts.
        if clock::now_text() >= request.object.spec.until {
            return Response::done().no_children().removes_many();
        }
        let lease = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": request.object.name() } });
        Response::done().child(lease).requeue_after(60)
    }
}

fn object(spec: &str) -> Case {
    Case::yaml(&format!("{{apiVersion: example.com/v1, kind: Website, metadata: {{name: web}}, spec: {spec}}}"))
}

fn service(name: &str, address: &str) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"clusterIP": address},
    })
}

#[test]
fn every_block_of_the_page_is_in_this_file() {
    let blocks: Vec<_> = PAGE.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 9, "the page is written in another way: {} blocks", blocks.len());
    let here = include_str!("patterns.rs");
    let plain = |text: &str| text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    let here = plain(here);
    for block in blocks {
        assert!(here.contains(&plain(block)), "the page has something else:\n{block}");
    }
}

#[test]
fn what_is_missing_is_waited_for() -> Result<(), Error> {
    let waits = object("{settings: colors}").run(waiting::reconcile)?;
    assert!(matches!(waits.verdict(), Verdict::Wait(why) if why.reason == "SettingsMissing"));
    assert!(waits.response.children.is_none(), "children change while it waits");
    let settings = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "colors"}, "data": {"color": "blue"},
    });
    let done = object("{settings: colors}").found(settings).run(waiting::reconcile)?;
    assert_eq!(done.child::<ConfigMap>()?.data.unwrap_or_default()["color"], "blue");
    Ok(())
}

#[test]
fn a_child_waits_for_another_one() -> Result<(), Error> {
    let answer = object("{image: web}").run(order::reconcile)?;
    let children = answer.response.children.unwrap_or_default();
    assert_eq!(children.len(), 2);
    assert_eq!((&children[0].after, &children[1].after), (&vec![], &vec![0]));
    Ok(())
}

#[test]
fn a_value_of_a_live_child_is_waited_for() -> Result<(), Error> {
    let handling = |answer: &pilothouse_sdk::testing::Answer| answer.response.children.as_ref().unwrap()[1].handling;
    let unknown = object("{}").run(values::reconcile)?;
    assert_eq!(handling(&unknown), Handling::Keep);
    let known = object("{}").child(service("web", "10.0.0.1")).run(values::reconcile)?;
    assert_eq!(handling(&known), Handling::Apply);
    assert_eq!(known.child::<ConfigMap>()?.data.unwrap_or_default()["address"], "10.0.0.1");
    Ok(())
}

#[test]
fn another_secret_is_another_template() -> Result<(), Error> {
    let with = |version: &str| {
        let secret = serde_json::json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "resourceVersion": version}, "data": {"password": "c2VjcmV0"},
        });
        object("{image: web, password: db}").found(secret).run(secrets::reconcile)
    };
    let (first, second) = (with("1")?, with("2")?);
    assert_ne!(first.child::<Deployment>()?, second.child::<Deployment>()?);
    assert!(!format!("{first:?}").contains("c2VjcmV0"), "its value is in the answer");
    Ok(())
}

#[test]
fn replicas_are_left_to_an_autoscaler() -> Result<(), Error> {
    let unmanaged =
        |answer: pilothouse_sdk::testing::Answer| answer.response.children.unwrap()[0].unmanaged_fields.clone();
    assert_eq!(unmanaged(object("{image: web}").run(scaling::reconcile)?), ["/spec/replicas"]);
    assert!(unmanaged(object("{image: web, replicas: 3}").run(scaling::reconcile)?).is_empty());
    Ok(())
}

#[test]
fn an_object_waits_until_it_is_cleaned_up() -> Result<(), Error> {
    let reason = |verdict: &Verdict| match verdict {
        Verdict::Wait(why) => why.reason.clone(),
        other => format!("{other:?}"),
    };
    assert_eq!(reason(object("{}").run(cleaning_up::finalize)?.verdict()), "CleaningUp");
    let job = serde_json::json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web-cleanup"}});
    let failed = pilothouse_sdk::Readiness {
        status: ReadinessStatus::Failed,
        reason: "BackoffLimitExceeded".to_owned(),
        message: "it failed".to_owned(),
    };
    let answer = object("{}").child_that_is(job.clone(), failed).run(cleaning_up::finalize)?;
    assert_eq!(reason(answer.verdict()), "CleanupFailed");
    assert_eq!(object("{}").child(job).run(cleaning_up::finalize)?.verdict(), &Verdict::Done);
    Ok(())
}

#[test]
fn objects_of_the_version_before_are_read() -> Result<(), Error> {
    fn reconcile(request: &Request<Object<versions::Spec>>) -> Response {
        Response::done().status(json!({ "image": request.object.spec.image() }))
    }
    for (spec, image) in [("{imageName: 'web:1'}", "web:1"), ("{image: {repository: web, tag: '2'}}", "web:2")] {
        let status: serde_json::Value = object(spec).run(reconcile)?.status()?;
        assert_eq!(status["image"], image);
    }
    Ok(())
}

#[test]
fn a_child_with_an_old_name_goes_once_the_new_one_is_there() -> Result<(), Error> {
    let names = |case: Case| -> Result<Vec<_>, Error> {
        Ok(case.run(moving::reconcile)?.children::<Service>()?.into_iter().filter_map(|it| it.metadata.name).collect())
    };
    assert_eq!(names(object("{}"))?, ["web-server"]);
    assert_eq!(names(object("{}").child(service("web", "10.0.0.1")))?, ["web-server", "web"]);
    let both = object("{}").child(service("web", "10.0.0.1")).child(service("web-server", "10.0.0.2"));
    assert_eq!(names(both)?, ["web-server"]);
    Ok(())
}

#[test]
fn data_outlives_its_object() -> Result<(), Error> {
    let children = object("{}").run(data::reconcile)?.response.children.unwrap_or_default();
    assert_eq!(children[0].on_removal, RemovalPolicy::Keep);
    Ok(())
}

#[test]
fn what_has_an_end_asks_to_be_called_again() -> Result<(), Error> {
    let at = |now: &str| object("{until: '2026-01-31T12:00:00Z'}").now(now).run(time::reconcile);
    let before = at("2026-01-31T11:59:59Z")?;
    assert_eq!((before.response.requeue_after, before.children::<ConfigMap>()?.len()), (Some(60), 1));
    let after = at("2026-01-31T12:00:00Z")?;
    assert!(after.response.removes_many && after.children::<ConfigMap>()?.is_empty());
    Ok(())
}
