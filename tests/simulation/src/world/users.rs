//! What users and administrators do, as requests to the API server. What is refused is refused: they do not try again.

use std::sync::Arc;

use http::Method;
use pilothouse_controller::{labels, pipeline::conditions::is_written_by_host};
use serde_json::{Value, json};

use super::requests::{change, plain};
use crate::{
    api_server::Object,
    cluster::{Cluster, namespace},
    history::step::{ChildRef, Patched, Propagation, Step},
    kinds::{self, WidgetVersions},
    paths::KindPath,
    plugin::{
        app::{self, App},
        scope::{API_VERSION, Place, Scope},
        spec::ChildKind,
    },
    properties::{
        fresh::{FOREIGN, FRESH},
        writes::Writes,
    },
    time::Time,
};

/// The name of the ConfigMap that objects follow.
const FOLLOWED: &str = "followed";

/// What the name of a copy ends with.
const COPY: &str = "-copy";

/// Everybody who acts but the hosts.
pub struct Users {
    cluster: Arc<Cluster>,
    writes: Arc<Writes>,
    time: Time,
    scope: Scope,
}

impl ChildRef {
    /// The child's name.
    fn full_name(&self) -> String {
        if self.name.is_empty() { self.object.clone() } else { format!("{}-{}", self.object, self.name) }
    }

    fn namespace(&self, scope: Scope) -> &'static str {
        self.kind.namespace(scope, self.place)
    }
}

impl Users {
    /// Users of a cluster, who tell the judge of writes what objects may adopt.
    pub fn new(cluster: Arc<Cluster>, writes: Arc<Writes>, time: Time, scope: Scope) -> Self {
        Self { cluster, writes, time, scope }
    }

    /// Carries out what a user or an administrator does.
    pub fn act(&self, step: &Step) {
        let (cluster, objects) = (&self.cluster, kinds::objects(self.scope));
        match step {
            Step::Apply { object, spec } => self.apply(object, &serde_json::to_value(spec).unwrap_or_default()),
            Step::Touch { object } => {
                let now = self.time.now().to_string();
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
                self.ask_child(Method::PATCH, child, Some(&change(child.kind, *edit)));
            }
            Step::DeleteChild { child } => self.ask_child(Method::DELETE, child, None),
            Step::CopyChild { child } => self.copy(child),
            Step::OccupyName { child } => {
                let body = plain(child.kind, &child.full_name());
                cluster.ask("somebody", Method::POST, &self.path(child).all(), Some(&body));
            }
            Step::Adopt { child } => self.adopt(child),
            Step::Patch { of, patch } => self.patch(of, patch),
            Step::Followed { value } => self.follow(*value),
            Step::App { app } => self.ask_for_app(*app),
            _ => self.administer(step),
        }
    }

    fn administer(&self, step: &Step) {
        let cluster = &self.cluster;
        match step {
            Step::RemoveCrd => cluster.ask("admin", Method::DELETE, &kinds::crds().named(kinds::WIDGETS), None),
            Step::InstallCrd => {
                self.install_crd();
            }
            Step::WidgetVersions { versions } => self.set_versions(*versions),
            Step::DeleteNamespace { place } => {
                cluster.ask("admin", Method::DELETE, &kinds::namespaces().named(place.namespace()), None);
            }
            Step::CreateNamespace { place } => {
                let body = namespace(place.namespace());
                cluster.ask("admin", Method::POST, &kinds::namespaces().all(), Some(&body));
            }
            Step::Admission { kind, refuses, denial } => cluster.refuse(kind.as_str(), refuses.then_some(*denial)),
            _ => {}
        }
    }

    /// Takes away what stands in the way of the hosts: admission, missing kinds and namespaces, objects of others with the names of
    /// children, and conditions of others, which a host that starts takes for its own.
    pub fn clear_the_way(&self) {
        self.cluster.admit_all();
        self.prepare();
        self.objects().iter().for_each(|object| self.remove_conditions(object));
        for child in self.children() {
            self.remove_colour(&child);
            let name = child.name();
            let label = &child.labels()[labels::PLUGIN];
            let has_owner = child.owners().next().is_some();
            let is_in_the_way = !has_owner && name != FOLLOWED && (label.is_null() || name.ends_with(COPY));
            if is_in_the_way {
                let (version, kind) = (&child.kind.api_version, &child.kind.names.kind);
                let path = KindPath::of(version, kind, child.namespace());
                self.cluster.ask("somebody", Method::DELETE, &path.named(name), None);
            }
        }
    }

    /// Removes from a Widget what somebody may have set that its plugin does not set. A host does not repair that; where the plugin
    /// sets it, the host does so again.
    fn remove_colour(&self, child: &Object) {
        if !child.value["spec"]["colour"].is_null() && child.kind.is_custom() {
            let path = KindPath::of(&child.kind.api_version, &child.kind.names.kind, child.namespace());
            let patch = json!({"spec": {"colour": null}});
            self.cluster.ask("somebody", Method::PATCH, &path.named(child.name()), Some(&patch));
        }
    }

    /// Removes the conditions that no host writes.
    fn remove_conditions(&self, object: &Object) {
        let conditions = object.value["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_of_host = |condition: &&Value| is_written_by_host(condition["type"].as_str().unwrap_or_default());
        let kept: Vec<_> = conditions.iter().filter(is_of_host).collect();
        if kept.len() < conditions.len() {
            let of = Patched::Status(object.name().to_owned());
            self.patch(&of, &json!({"status": {"conditions": kept}}));
        }
    }

    /// Creates the kinds and namespaces that are missing. Returns whether all were there and stay.
    pub fn prepare(&self) -> bool {
        let has_namespaces = Place::ALL.map(|place| self.create_namespace(place.namespace()));
        self.install_crd() && has_namespaces.into_iter().all(|is_there| is_there)
    }

    /// Creates a fresh object beside each one, with the same spec.
    pub fn create_fresh(&self) {
        for object in self.objects() {
            let name = format!("{}{FRESH}", object.name());
            self.apply(&name, &object.value["spec"]);
        }
    }

    /// Deletes all objects.
    pub fn delete_all(&self) {
        self.ask_for_app(None);
        for object in self.objects() {
            let path = kinds::objects(self.scope).named(object.name());
            self.cluster.ask("user", Method::DELETE, &path, None);
        }
    }

    fn objects(&self) -> Vec<Arc<Object>> {
        self.cluster.objects(kinds::resource(self.scope))
    }

    fn children(&self) -> impl Iterator<Item = Arc<Object>> {
        ChildKind::all(self.scope).iter().flat_map(|kind| self.cluster.objects(kind.resource()))
    }

    fn path(&self, child: &ChildRef) -> KindPath {
        KindPath::of(child.kind.api_version(), child.kind.as_str(), child.namespace(self.scope))
    }

    fn ask_child(&self, method: Method, child: &ChildRef, body: Option<&Value>) {
        self.cluster.ask("somebody", method, &self.path(child).named(&child.full_name()), body);
    }

    /// Creates an object, or gives it another spec.
    fn apply(&self, name: &str, spec: &Value) {
        let (scope, objects) = (self.scope, kinds::objects(self.scope));
        if let Some(known) = self.cluster.get(kinds::resource(scope), scope.namespace(), name) {
            // A merge patch would leave what the new spec does not have.
            let mut whole = known.value.clone();
            whole["spec"] = spec.clone();
            whole["metadata"]["resourceVersion"] = json!(known.revision.to_string());
            self.cluster.ask("user", Method::PUT, &objects.named(name), Some(&whole));
        } else {
            let whole =
                json!({"apiVersion": API_VERSION, "kind": scope.kind(), "metadata": {"name": name}, "spec": spec});
            self.cluster.ask("user", Method::POST, &objects.all(), Some(&whole));
        }
    }

    /// Creates the object of the reference plugin, gives it another spec, or deletes it.
    fn ask_for_app(&self, app: Option<App>) {
        let (path, name) = (kinds::apps(), app::OBJECT);
        let is_there = self.cluster.get(app::RESOURCE, Place::Home.namespace(), name).is_some();
        match app {
            None if is_there => self.cluster.ask("user", Method::DELETE, &path.named(name), None),
            None => {}
            Some(app) if is_there => {
                let patch = json!({"spec": app.spec()});
                self.cluster.ask("user", Method::PATCH, &path.named(name), Some(&patch));
            }
            Some(app) => {
                let whole = json!({
                    "apiVersion": app::API_VERSION, "kind": app::KIND, "metadata": {"name": name}, "spec": app.spec(),
                });
                self.cluster.ask("user", Method::POST, &path.all(), Some(&whole));
            }
        }
    }

    fn patch(&self, of: &Patched, patch: &Value) {
        let objects = kinds::objects(self.scope);
        let path = match of {
            Patched::Object(name) => objects.named(name),
            Patched::Status(name) => format!("{}/status", objects.named(name)),
            Patched::Child(child, version) => {
                let api_version = format!("{}/{version}", kinds::GROUP);
                let path = KindPath::of(&api_version, child.kind.as_str(), child.namespace(self.scope));
                path.named(&child.full_name())
            }
        };
        self.cluster.ask("somebody", Method::PATCH, &path, Some(patch));
    }

    fn adopt(&self, child: &ChildRef) {
        // A Service that is taken over keeps the ports of others, for the list is merged: what there shall be is not known then.
        // The children of the reference plugin cannot be created anew with another selector.
        if child.kind == ChildKind::Service || child.object == app::OBJECT {
            return;
        }
        let (kind, name, namespace) = (child.kind.as_str(), child.full_name(), child.namespace(self.scope));
        self.writes.may_be_adopted(kind, namespace, &name);
        let target = if namespace == self.scope.namespace() {
            format!("{kind}/{name}")
        } else {
            format!("{kind}/{namespace}/{name}")
        };
        let patch = json!({"metadata": {"annotations": {labels::ADOPT: target}}});
        self.cluster.ask("user", Method::PATCH, &kinds::objects(self.scope).named(&child.object), Some(&patch));
    }

    fn follow(&self, value: Option<u8>) {
        let path = KindPath::of("v1", "ConfigMap", Place::Home.namespace());
        let Some(value) = value else {
            self.cluster.ask("somebody", Method::DELETE, &path.named(FOLLOWED), None);
            return;
        };
        let data = json!({"value": value.to_string()});
        if self.cluster.get(ChildKind::ConfigMap.resource(), Place::Home.namespace(), FOLLOWED).is_some() {
            self.cluster.ask("somebody", Method::PATCH, &path.named(FOLLOWED), Some(&json!({"data": data})));
        } else {
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": FOLLOWED}, "data": data});
            self.cluster.ask("somebody", Method::POST, &path.all(), Some(&body));
        }
    }

    fn copy(&self, child: &ChildRef) {
        let (name, namespace) = (child.full_name(), child.namespace(self.scope));
        let Some(known) = self.cluster.get(child.kind.resource(), namespace, &name) else { return };
        let mut copy = known.value.clone();
        let metadata = std::mem::take(&mut copy["metadata"]);
        copy["apiVersion"] = child.kind.api_version().into();
        copy["metadata"] = json!({
            "name": format!("{name}{COPY}"), "labels": metadata["labels"], "annotations": metadata["annotations"],
        });
        kinds::without_what_the_server_adds(&mut copy);
        copy.as_object_mut().map(|copy| copy.remove("status"));
        self.cluster.ask("somebody", Method::POST, &self.path(child).all(), Some(&copy));
    }

    fn set_versions(&self, versions: WidgetVersions) {
        let patch = json!({"spec": {"versions": versions.to_value()}});
        self.cluster.ask("admin", Method::PATCH, &kinds::crds().named(kinds::WIDGETS), Some(&patch));
    }

    /// Creates the CRD of Widgets where it does not exist, and lets it serve what hosts know. Returns whether it was there and stays.
    fn install_crd(&self) -> bool {
        let Some(known) = self.cluster.get(kinds::DEFINITIONS, "", kinds::WIDGETS) else {
            let crd = kinds::widget_crd(WidgetVersions::First);
            self.cluster.ask("admin", Method::POST, &kinds::crds().all(), Some(&crd));
            return false;
        };
        if known.value["spec"]["versions"][0]["served"] != true {
            self.set_versions(WidgetVersions::Moved);
        }
        !known.is_deleting()
    }

    /// Creates a namespace where it does not exist. Returns whether it was there and stays.
    fn create_namespace(&self, name: &str) -> bool {
        let Some(known) = self.cluster.get(kinds::NAMESPACES, "", name) else {
            self.cluster.ask("admin", Method::POST, &kinds::namespaces().all(), Some(&namespace(name)));
            return false;
        };
        !known.is_deleting()
    }
}
