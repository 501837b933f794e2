//! All objects of an API server, to tell whether something changed any of them. Changes nothing.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use kube::{
    Api, Client, Discovery,
    api::{DynamicObject, ListParams},
    discovery::verbs,
};
use serde_json::Value;

use crate::{
    cluster::PATIENCE,
    wait::{Look, eventually},
};

/// The kinds that go on changing by themselves, and one that the API server makes up with each answer.
const RESTLESS: [&str; 3] = ["ComponentStatus", "Event", "Lease"];

/// All objects, each with its kind, namespace and name.
pub struct Everything(BTreeMap<String, Value>);

impl Everything {
    /// All that there is, once nothing changes any more by itself.
    ///
    /// # Errors
    /// If it cannot be read, or changes without end.
    pub async fn at_rest(client: &Client) -> Result<Self> {
        let mut last = Self::read(client).await?;
        eventually(PATIENCE, "nothing to change any more", async || {
            let now = Self::read(client).await?;
            let differing = now.differs_from(&last);
            last = now;
            Ok(Look::of(differing.is_empty(), differing))
        })
        .await?;
        Ok(last)
    }

    async fn read(client: &Client) -> Result<Self> {
        let mut all = BTreeMap::new();
        let discovered = Discovery::new(client.clone()).run().await?;
        for (resource, capabilities) in discovered.groups().flat_map(|group| group.recommended_resources()) {
            if !capabilities.supports_operation(verbs::LIST) || RESTLESS.contains(&resource.kind.as_str()) {
                continue;
            }
            let listed = Api::<DynamicObject>::all_with(client.clone(), &resource).list(&ListParams::default()).await;
            for object in listed.with_context(|| resource.kind.clone())? {
                let (namespace, name) = (&object.metadata.namespace, &object.metadata.name);
                let place = [namespace, name].map(|part| part.as_deref().unwrap_or_default()).join("/");
                all.insert(format!("{}.{} {place}", resource.kind, resource.group), serde_json::to_value(object)?);
            }
        }
        Ok(Self(all))
    }

    /// Checks that all objects are as they were, to the last field.
    ///
    /// # Errors
    /// If one is there that was not, or is another one, or is gone. Names them.
    pub async fn is_unchanged(&self, client: &Client) -> Result<()> {
        let differing = Self::read(client).await?.differs_from(self);
        ensure!(differing.is_empty(), "these are not as they were: {differing:#?}");
        Ok(())
    }

    /// How many there are.
    pub fn number(&self) -> usize {
        self.0.len()
    }

    fn differs_from(&self, before: &Self) -> Vec<String> {
        let all = self.0.keys().chain(before.0.keys().filter(|name| !self.0.contains_key(*name)));
        all.filter(|name| self.0.get(*name) != before.0.get(*name)).cloned().collect()
    }
}
