//! The RBAC objects for a plugin: what the host may do for it, and what its own account may do. Pure.

use pilothouse_controller::{
    api::ServiceAccountNamespace,
    labels::COMPONENT_OF,
    plugin::rights::{self, Right, Writer},
};
use pilothouse_engine::{Manifest, contract::KindRef};
use serde_json::{Value, json};

use super::{
    impersonation::{self, Impersonation, Rules},
    resources::Resources,
};

/// The API group of roles and bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// The host's service account.
#[derive(Clone)]
pub struct Host {
    /// Its namespace, which is the host's.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The account of a plugin.
#[derive(Clone)]
pub struct PluginAccount {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: ServiceAccountNamespace,
}

/// The name of the objects with the host's rights for a plugin, and of the account that a plugin gets.
pub fn name_for(plugin: &str) -> String {
    format!("pilothouse-plugin-{plugin}")
}

/// The name of the objects with the rights of a plugin's account. No plugin has a name with a dot, so it is not that of another plugin's
/// objects.
pub fn account_role(plugin: &str) -> String {
    format!("pilothouse-plugin-{plugin}.account")
}

/// The name of the objects that let the host act as a plugin's account.
pub fn impersonation_role(plugin: &str) -> String {
    format!("pilothouse-plugin-{plugin}.impersonation")
}

/// The name of the objects that say for which requests the host may act as it, where impersonation is constrained.
fn requests_role(plugin: &str) -> String {
    format!("pilothouse-plugin-{plugin}.requests")
}

/// The name of the objects with those of the rights of a role that count in the whole cluster.
fn cluster_scoped_role(role: &str) -> String {
    format!("{role}.cluster-scoped")
}

impl Host {
    fn subject(&self) -> Value {
        subject(&self.namespace, &self.name)
    }
}

/// Makes the RBAC objects of plugins.
pub struct RoleObjects<'a> {
    /// The host.
    pub host: &'a Host,
    /// The only namespace in which the rights are given; none for the whole cluster.
    pub namespace: Option<&'a str>,
    /// The resources of the kinds.
    pub resources: &'a Resources,
}

impl RoleObjects<'_> {
    /// What the host may do for a plugin: a role and its binding, and others of what is in no namespace.
    pub fn of_host(&self, manifest: &Manifest, writer: Writer) -> Vec<Value> {
        let name = name_for(&manifest.name);
        let role = Role { plugin: &manifest.name, name: &name };
        let rules = self.rules(&rights::of_host(manifest, writer));
        let subject = self.host.subject();
        let mut objects =
            vec![role.object("ClusterRole", None, rules), role.binding(self.namespace, "ClusterRole", &subject)];
        objects.extend(self.in_cluster(manifest, &role, &subject, &["get", "list", "watch"]));
        objects
    }

    /// What a plugin's account may do, and that the host may act as it and as no other.
    pub fn of_account(&self, manifest: &Manifest, account: &PluginAccount, how: Impersonation) -> Vec<Value> {
        let name = account_role(&manifest.name);
        let rights = Role { plugin: &manifest.name, name: &name };
        let role = rights.object("ClusterRole", None, self.rules(&rights::of_account(manifest)));
        let mut objects = match account.place {
            ServiceAccountNamespace::Host => {
                let (own, subject) = (self.host.namespace.as_str(), subject(&self.host.namespace, &account.name));
                let metadata = json!({"name": account.name, "namespace": own, "labels": labels(&manifest.name)});
                let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
                let mut objects = vec![account, role, rights.binding(self.namespace, "ClusterRole", &subject)];
                objects.extend(self.in_cluster(manifest, &rights, &subject, &["get", "list"]));
                objects
            }
            // Who owns a namespace makes the account there, and binds the role to it.
            ServiceAccountNamespace::Object => vec![role],
        };
        objects.extend(self.impersonation(manifest, account, how));
        objects
    }

    /// That the host may act as a plugin's account, and for which requests.
    fn impersonation(&self, manifest: &Manifest, account: &PluginAccount, how: Impersonation) -> Vec<Value> {
        let (name, host) = (impersonation_role(&manifest.name), self.host.subject());
        let acting = Role { plugin: &manifest.name, name: &name };
        let (kind, namespace) = match account.place {
            ServiceAccountNamespace::Host => ("Role", Some(self.host.namespace.as_str())),
            ServiceAccountNamespace::Object => ("ClusterRole", None),
        };
        let whom = json!({
            "apiGroups": [how.rules.group()], "resources": ["serviceaccounts"], "resourceNames": [account.name], "verbs": [how.rules.verb()],
        });
        let mut rule = acting.object(kind, namespace, vec![whom]);
        if how.is_said {
            rule["metadata"]["annotations"] = json!({impersonation::SAID: how.rules.name()});
        }
        let mut objects = vec![rule, acting.binding(namespace, kind, &host)];
        if how.rules == Rules::Constrained {
            objects.extend(self.requests(manifest));
        }
        objects
    }

    /// For which requests the host may act as an account. It needs both: these, and the right to act as the account.
    fn requests(&self, manifest: &Manifest) -> Vec<Value> {
        let (name, host) = (requests_role(&manifest.name), self.host.subject());
        let rules = |rights: &[Right]| {
            let mut rules = self.rules(rights);
            for verb in rules.iter_mut().filter_map(|rule| rule["verbs"].as_array_mut()).flatten() {
                *verb = json!(impersonation::on(verb.as_str().unwrap_or_default()));
            }
            rules
        };
        let (requests, in_cluster) = (rules(&rights::as_account(manifest)), rules(&rights::as_account_in_cluster()));
        let role = Role { plugin: &manifest.name, name: &name };
        let Some(namespace) = self.namespace else {
            let all = [requests, in_cluster].concat();
            return vec![role.object("ClusterRole", None, all), role.binding(None, "ClusterRole", &host)];
        };
        let wide_name = cluster_scoped_role(&name);
        let wide = Role { plugin: &manifest.name, name: &wide_name };
        vec![
            role.object("ClusterRole", None, requests),
            role.binding(Some(namespace), "ClusterRole", &host),
            wide.object("ClusterRole", None, in_cluster),
            wide.binding(None, "ClusterRole", &host),
        ]
    }

    /// The lookups of kinds whose objects are in no namespace, for a role that is bound in one: no RoleBinding gives rights on them.
    fn in_cluster(&self, manifest: &Manifest, role: &Role<'_>, subject: &Value, verbs: &[&str]) -> Vec<Value> {
        let kinds = manifest.lookups.iter().map(|lookup| &lookup.kind);
        let kinds = kinds.filter(|kind| self.namespace.is_some() && self.resources.is_cluster_scoped(kind));
        let rule = |kind: &KindRef| json!({"apiGroups": [kind.group()], "resources": [self.resources.plural(kind)], "verbs": verbs});
        let rules: Vec<_> = kinds.map(rule).collect();
        if rules.is_empty() {
            return Vec::new();
        }
        let name = cluster_scoped_role(role.name);
        let role = Role { plugin: role.plugin, name: &name };
        vec![role.object("ClusterRole", None, rules), role.binding(None, "ClusterRole", subject)]
    }

    fn rules(&self, rights: &[Right]) -> Vec<Value> {
        let rule = |right: &Right| {
            let resource = right.resource(&self.resources.plural(&right.kind));
            json!({"apiGroups": [right.kind.group()], "resources": [resource], "verbs": right.verbs})
        };
        rights.iter().map(rule).collect()
    }
}

/// A role for a plugin.
struct Role<'a> {
    plugin: &'a str,
    name: &'a str,
}

impl Role<'_> {
    fn object(&self, kind: &str, namespace: Option<&str>, rules: Vec<Value>) -> Value {
        let (api_version, metadata) = (format!("{GROUP}/v1"), self.metadata(namespace));
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules})
    }

    /// Binds the role, for the whole cluster or in one namespace.
    fn binding(&self, namespace: Option<&str>, role: &str, subject: &Value) -> Value {
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" },
            "metadata": self.metadata(namespace),
            "roleRef": {"apiGroup": GROUP, "kind": role, "name": self.name},
            "subjects": [subject],
        })
    }

    fn metadata(&self, namespace: Option<&str>) -> Value {
        let mut metadata = json!({"name": self.name, "labels": labels(self.plugin)});
        if let Some(namespace) = namespace {
            metadata["namespace"] = json!(namespace);
        }
        metadata
    }
}

/// All that is made for a plugin has its name in a label, by which it is found when the plugin is uninstalled.
fn labels(plugin: &str) -> Value {
    json!({COMPONENT_OF: plugin})
}

fn subject(namespace: &str, name: &str) -> Value {
    json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
}
