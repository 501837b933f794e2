//! The object that a command is about, as `kubectl` names it, and its kind in a cluster. Reads nothing of the object.

use anyhow::{Context, bail};
use kube::{
    Client,
    api::ApiResource,
    discovery::{Discovery, Scope},
};

/// The object that a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    kind: String,
    group: Option<String>,
    /// Its name.
    pub name: String,
}

/// Parses one.
///
/// # Errors
/// If it is not KIND/NAME.
pub fn named(text: &str) -> anyhow::Result<Named> {
    let Some((kind, name)) = text.split_once('/').filter(|(kind, name)| !kind.is_empty() && !name.is_empty()) else {
        bail!("it is not KIND/NAME, such as AppService/web");
    };
    let (kind, group) = match kind.split_once('.') {
        Some((kind, group)) => (kind, Some(group.to_owned())),
        None => (kind, None),
    };
    Ok(Named { kind: kind.to_owned(), group, name: name.to_owned() })
}

impl Named {
    /// The kind with this name, plural, singular or short name.
    ///
    /// # Errors
    /// If the cluster has none or several, or does not answer.
    pub async fn find_kind(&self, client: &Client) -> anyhow::Result<(ApiResource, Scope)> {
        let found = Discovery::new(client.clone()).run().await.context("failed to ask the cluster for its kinds")?;
        let is_meant = |resource: &ApiResource| {
            let kind = self.kind.to_lowercase();
            let is_group = self.group.as_ref().is_none_or(|group| *group == resource.group);
            is_group && (resource.kind.to_lowercase() == kind || resource.plural == kind)
        };
        let all = found.groups().flat_map(|group| group.recommended_resources());
        let mut meant: Vec<_> = all.filter(|(resource, _)| is_meant(resource)).collect();
        match meant.len() {
            0 => bail!("the cluster has no kind '{}'; `kubectl api-resources` lists those that it has", self.kind),
            1 => {
                let (resource, capabilities) = meant.remove(0);
                Ok((resource, capabilities.scope))
            }
            _ => {
                let names: Vec<_> =
                    meant.iter().map(|(it, _)| format!("{}.{}/{}", it.kind, it.group, self.name)).collect();
                bail!("several kinds are called '{}'; name one of {}", self.kind, names.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_named_as_kubectl_names_it() {
        let of = |kind: &str, group: Option<&str>| Named {
            kind: kind.to_owned(),
            group: group.map(str::to_owned),
            name: "web".to_owned(),
        };
        assert_eq!(named("AppService/web").ok(), Some(of("AppService", None)));
        assert_eq!(named("appservices.apps.example.com/web").ok(), Some(of("appservices", Some("apps.example.com"))));
        for wrong in ["web", "/web", "AppService/", ""] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
