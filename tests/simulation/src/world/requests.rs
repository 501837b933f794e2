//! The bodies of what somebody else does to children. Values only.

use pilothouse_controller::labels;
use serde_json::{Value, json};

use crate::{history::step::Edit, plugin::spec::ChildKind, properties::fresh::FOREIGN};

/// A merge patch that changes a child.
pub(super) fn change(kind: ChildKind, edit: Edit) -> Value {
    match edit {
        Edit::Value => match kind {
            ChildKind::ConfigMap => json!({"data": {"value": "edited"}}),
            ChildKind::Secret => json!({"data": {"value": "ZWRpdGVk"}}),
            ChildKind::Service => json!({"spec": {"selector": {"app": "edited"}}}),
            ChildKind::Deployment => json!({"spec": {"replicas": 9}}),
            ChildKind::Job => json!({"spec": {"parallelism": 9}}),
            ChildKind::Widget | ChildKind::ClusterWidget => json!({"spec": {"size": 99}}),
        },
        Edit::Remove => match kind {
            ChildKind::ConfigMap | ChildKind::Secret => json!({"data": null}),
            ChildKind::Service => json!({"spec": {"selector": null}}),
            ChildKind::Deployment | ChildKind::Job => json!({"metadata": {"labels": {"example.com/version": null}}}),
            ChildKind::Widget | ChildKind::ClusterWidget => json!({"spec": null}),
        },
        Edit::ForeignLabel => json!({"metadata": {"labels": {format!("{FOREIGN}label"): "1"}}}),
        Edit::PluginLabel => json!({"metadata": {"labels": {labels::PLUGIN: null}}}),
        Edit::Owner => json!({"metadata": {"ownerReferences": null}}),
    }
}

/// An object of a kind as somebody else makes it.
pub(super) fn plain(kind: ChildKind, name: &str) -> Value {
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
        ChildKind::Job => {
            let container = json!({"name": "other", "image": "example.com/other", "command": ["true"]});
            body["spec"] = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}});
        }
        ChildKind::Widget | ChildKind::ClusterWidget => body["spec"] = json!({"size": 1}),
    }
    body
}
