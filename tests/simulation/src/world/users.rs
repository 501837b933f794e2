//! What users and administrators do, as requests to the API server. What is refused is refused: they do not try again.

use http::Method;
use pilothouse_controller::labels;
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    history::step::{ChildRef, Edit, Propagation, Step},
    kinds,
    paths::KindPath,
    plugin::{
        spec::ChildKind,
        version::{API_VERSION, KIND},
    },
    properties::{
        fresh::{FOREIGN, FRESH},
        writes::Writes,
    },
    time::Time,
};

/// The name of the ConfigMap that objects follow.
pub const FOLLOWED: &str = "followed";

/// What the name of a copy ends with.
const COPY: &str = "-copy";

impl ChildRef {
    /// The child's name.
    fn full_name(&self) -> String {
        format!("{}-{}", self.object, self.name)
    }

    fn path(&self) -> KindPath {
        KindPath::of(self.kind.api_version(), self.kind.as_str())
    }
}

/// Carries out what a user or an administrator does.
pub fn act(cluster: &Cluster, writes: &Writes, time: Time, step: &Step) {
    let objects = KindPath::of(API_VERSION, KIND);
    match step {
        Step::Apply { object, spec } => {
            let spec = serde_json::to_value(spec).unwrap_or_default();
            let patch = json!({"spec": spec});
            if let Some(known) = cluster.get(kinds::SIMULATEDS, object) {
                // A merge patch would leave what the new spec does not have.
                let mut whole = known.value.clone();
                whole["spec"] = patch["spec"].clone();
                whole["metadata"]["resourceVersion"] = json!(known.revision.to_string());
                cluster.ask("user", Method::PUT, &objects.named(object), Some(&whole));
            } else {
                let whole = json!({
                    "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": object}, "spec": patch["spec"],
                });
                cluster.ask("user", Method::POST, &objects.all(), Some(&whole));
            }
        }
        Step::Touch { object } => {
            let now = time.now().to_string();
            let patch = json!({"metadata": {"annotations": {format!("{FOREIGN}touched"): now}}});
            cluster.ask("user", Method::PATCH, &objects.named(object), Some(&patch));
        }
        Step::Delete { object, propagation } => {
            let policy = match propagation {
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
                Propagation::Orphan => "Orphan",
            };
            let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
            cluster.ask("user", Method::DELETE, &objects.named(object), Some(&options));
        }
        Step::EditChild { child, edit } => {
            let name = child.full_name();
            let patch = change(child.kind, *edit);
            cluster.ask("somebody", Method::PATCH, &child.path().named(&name), Some(&patch));
        }
        Step::DeleteChild { child } => {
            cluster.ask("somebody", Method::DELETE, &child.path().named(&child.full_name()), None);
        }
        Step::CopyChild { child } => copy(cluster, child),
        Step::OccupyName { child } => {
            let body = plain(child.kind, &child.full_name());
            cluster.ask("somebody", Method::POST, &child.path().all(), Some(&body));
        }
        // A Service that is taken over keeps the ports of others, for the list is merged: what there shall be is not known then.
        Step::Adopt { child } if child.kind == ChildKind::Service => {}
        Step::Adopt { child } => {
            let (kind, name) = (child.kind.as_str(), child.full_name());
            writes.may_be_adopted(kind, &name);
            let patch = json!({"metadata": {"annotations": {labels::ADOPT: format!("{kind}/{name}")}}});
            cluster.ask("user", Method::PATCH, &objects.named(&child.object), Some(&patch));
        }
        Step::Followed { value } => follow(cluster, *value),
        Step::RemoveCrd => {
            cluster.ask("admin", Method::DELETE, &kinds::crds().named(kinds::WIDGETS), None);
        }
        Step::InstallCrd => {
            install_crd(cluster);
        }
        Step::Admission { kind, refuses } => cluster.refuse(kind.as_str(), *refuses),
        _ => {}
    }
}

/// Takes away what stands in the way of the hosts: admission, missing kinds, objects of others with the names of children.
pub fn clear_the_way(cluster: &Cluster) {
    cluster.admit_all();
    install_crd(cluster);
    for kind in ChildKind::ALL {
        for child in cluster.objects(kind.resource()) {
            let name = child.name();
            let label = &child.labels()[labels::PLUGIN];
            let has_owner = child.owners().next().is_some();
            let is_in_the_way = !has_owner && name != FOLLOWED && (label.is_null() || name.ends_with(COPY));
            if is_in_the_way {
                let path = KindPath::of(kind.api_version(), kind.as_str());
                cluster.ask("somebody", Method::DELETE, &path.named(name), None);
            }
        }
    }
}

/// Creates a fresh object beside each one, with the same spec.
pub fn create_fresh(cluster: &Cluster) {
    let objects = KindPath::of(API_VERSION, KIND);
    for object in cluster.objects(kinds::SIMULATEDS) {
        let name = format!("{}{FRESH}", object.name());
        let fresh = json!({
            "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": object.value["spec"],
        });
        cluster.ask("user", Method::POST, &objects.all(), Some(&fresh));
    }
}

/// Deletes all objects.
pub fn delete_all(cluster: &Cluster) {
    let objects = KindPath::of(API_VERSION, KIND);
    for object in cluster.objects(kinds::SIMULATEDS) {
        cluster.ask("user", Method::DELETE, &objects.named(object.name()), None);
    }
}

/// Creates the CRD of Widgets where it does not exist. Returns whether it was there and stays.
pub fn install_crd(cluster: &Cluster) -> bool {
    if let Some(known) = cluster.get_cluster_scoped(kinds::DEFINITIONS, kinds::WIDGETS) {
        return !known.is_deleting();
    }
    cluster.ask("admin", Method::POST, &kinds::crds().all(), Some(&kinds::widget_crd()));
    false
}

fn follow(cluster: &Cluster, value: Option<u8>) {
    let path = KindPath::of("v1", "ConfigMap");
    let Some(value) = value else {
        cluster.ask("somebody", Method::DELETE, &path.named(FOLLOWED), None);
        return;
    };
    let data = json!({"value": value.to_string()});
    if cluster.get(ChildKind::ConfigMap.resource(), FOLLOWED).is_some() {
        cluster.ask("somebody", Method::PATCH, &path.named(FOLLOWED), Some(&json!({"data": data})));
    } else {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": FOLLOWED}, "data": data});
        cluster.ask("somebody", Method::POST, &path.all(), Some(&body));
    }
}

fn copy(cluster: &Cluster, child: &ChildRef) {
    let name = child.full_name();
    let Some(known) = cluster.get(child.kind.resource(), &name) else { return };
    let mut copy = known.value.clone();
    let metadata = std::mem::take(&mut copy["metadata"]);
    copy["metadata"] = json!({
        "name": format!("{name}{COPY}"), "labels": metadata["labels"], "annotations": metadata["annotations"],
    });
    for field in ["clusterIP", "clusterIPs"] {
        copy["spec"].as_object_mut().map(|spec| spec.remove(field));
    }
    copy.as_object_mut().map(|copy| copy.remove("status"));
    cluster.ask("somebody", Method::POST, &child.path().all(), Some(&copy));
}

/// A merge patch that changes a child.
fn change(kind: ChildKind, edit: Edit) -> Value {
    match edit {
        Edit::Value => match kind {
            ChildKind::ConfigMap => json!({"data": {"value": "edited"}}),
            ChildKind::Secret => json!({"data": {"value": "ZWRpdGVk"}}),
            ChildKind::Service => json!({"spec": {"selector": {"app": "edited"}}}),
            ChildKind::Deployment => json!({"spec": {"replicas": 9}}),
            ChildKind::Widget => json!({"spec": {"size": 99}}),
        },
        Edit::Remove => match kind {
            ChildKind::ConfigMap | ChildKind::Secret => json!({"data": null}),
            ChildKind::Service => json!({"spec": {"selector": null}}),
            ChildKind::Deployment => json!({"metadata": {"labels": {"example.com/version": null}}}),
            ChildKind::Widget => json!({"spec": null}),
        },
        Edit::ForeignLabel => json!({"metadata": {"labels": {format!("{FOREIGN}label"): "1"}}}),
        Edit::PluginLabel => json!({"metadata": {"labels": {labels::PLUGIN: null}}}),
        Edit::Owner => json!({"metadata": {"ownerReferences": null}}),
    }
}

/// An object of a kind as somebody else makes it.
fn plain(kind: ChildKind, name: &str) -> Value {
    let mut body = json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "metadata": {"name": name}});
    match kind {
        ChildKind::ConfigMap | ChildKind::Secret => {}
        ChildKind::Service => body["spec"] = json!({"ports": [{"name": "other", "port": 1}]}),
        ChildKind::Deployment => {
            let labels = json!({"app": "other"});
            body["spec"] = json!({
                "replicas": 0, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "other", "image": "example.com/other"}]},
                },
            });
        }
        ChildKind::Widget => body["spec"] = json!({"size": 1}),
    }
    body
}
