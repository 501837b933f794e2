//! A plugin that is gone, as far as the objects that it leaves behind need it: if their children have an order, they are deleted in it, and
//! nothing else happens to them; what it has made as a decorator is taken away. Answers nothing.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use pilothouse_engine::{
    Call, CallContext, Decorates, Manifest, Outcome, Reconciler, Recorded, Usage, Verb, contract::KindRef,
};
use serde::{Deserialize, Serialize};

use super::{ActivePlugin, PluginSettings, record_key::RecordKey, settings::Presence};
use crate::identity::{Account, AccountNamespace};

/// What is left of a plugin.
pub struct Departed(Manifest);

/// What has to be known of a plugin when it is gone, also by a host that has never seen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaver {
    /// Its name.
    pub plugin: String,
    /// The API version of the kind that it reconciled.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The name of its `Plugin`; none if it came from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_by: Option<String>,
    /// Whether it decorated objects of that kind, and did not own them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decorates: bool,
    /// The service account that wrote the children; none for the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Where that account is; none for the namespace of each object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_namespace: Option<String>,
}

impl Leaver {
    /// What a plugin will have been.
    pub fn of(plugin: &ActivePlugin) -> Self {
        let reconciles = plugin.objects.kind();
        let fixed = |account: &Account| match &account.namespace {
            AccountNamespace::Fixed(namespace) => Some(namespace.to_string()),
            AccountNamespace::OfObject => None,
        };
        Self {
            plugin: plugin.name.to_string(),
            api_version: reconciles.api_version.clone(),
            kind: reconciles.kind.clone(),
            said_by: plugin.said_by.as_deref().map(str::to_owned),
            decorates: plugin.manifest().decorates.is_some(),
            service_account_name: plugin.account.as_ref().map(|account| account.name.to_string()),
            service_account_namespace: plugin.account.as_ref().and_then(fixed),
        }
    }

    /// The kind that it reconciled.
    pub fn reconciles(&self) -> KindRef {
        KindRef::new(self.api_version.as_str(), self.kind.as_str())
    }

    /// Where its child kinds are recorded. The kind is that of [`reconciles`](Self::reconciles).
    pub fn recorded<'a>(&'a self, reconciles: &'a KindRef) -> RecordKey<'a> {
        RecordKey::new(reconciles, self.decorates.then_some(self.plugin.as_str()))
    }

    /// What takes its place, with the kinds of which it may have had children.
    pub fn departed(&self, children: impl IntoIterator<Item = KindRef>) -> (Arc<dyn Reconciler>, PluginSettings) {
        let manifest = Manifest {
            children: children.into_iter().collect(),
            decorates: self.decorates.then(Decorates::default),
            // Children may have been built in an order, which the plugin knew. They go in the reverse of the recorded one.
            orders_children: !self.decorates,
            ..Manifest::new(self.plugin.as_str(), "gone", self.reconciles())
        };
        let namespace = || match &self.service_account_namespace {
            Some(namespace) => AccountNamespace::Fixed(namespace.as_str().into()),
            None => AccountNamespace::OfObject,
        };
        let account = self.service_account_name.as_deref();
        let account = account.map(|name| Account { name: name.into(), namespace: namespace() });
        let settings = PluginSettings { account, presence: Presence::Departed, ..PluginSettings::default() };
        (Arc::new(Departed(manifest)), settings)
    }
}

impl Reconciler for Departed {
    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn digest(&self) -> &str {
        ""
    }

    fn call(&self, _: Verb, _: pilothouse_engine::contract::Request, _: CallContext) -> BoxFuture<'_, Call> {
        let outcome = Outcome::Contract("the plugin is gone".to_owned());
        std::future::ready(Call { outcome, usage: Usage::default(), recorded: Recorded::default() }).boxed()
    }
}
