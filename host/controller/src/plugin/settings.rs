//! What the cluster says of a plugin, beside its component: its configuration, its account, and where it works. Values only.

use std::{sync::Arc, time::Duration};

use kube::ResourceExt;
use pilothouse_engine::{Limits, Selector};

use super::Grants;
use crate::{
    api::{LimitsSpec, Plugin, ServiceAccountNamespace},
    identity::{Account, AccountNamespace},
};

/// What a plugin may use, where that is not what every plugin may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginLimits {
    /// The bytes of memory of a call.
    pub memory_bytes: Option<usize>,
    /// The computing time of a call.
    pub cpu: Option<Duration>,
    /// The time of a call, with all that it waits for.
    pub wall: Option<Duration>,
    /// The bytes of an answer.
    pub output_bytes: Option<usize>,
    /// How many calls an instance answers at most.
    pub calls_per_instance: Option<u32>,
    /// How many of its objects are reconciled at once.
    pub concurrency: Option<usize>,
}

impl PluginLimits {
    /// What a `Plugin` says that its plugin may use.
    fn of_plugin(plugin: &Plugin) -> Self {
        let limits = plugin.spec.limits.as_ref().map(Self::of_spec).unwrap_or_default();
        // What an object may lead to is then what its own namespace allows, and an instance could carry it into another one.
        let is_account_of_object = plugin.spec.service_account_namespace == ServiceAccountNamespace::Object;
        let calls_per_instance = limits.calls_per_instance.or(is_account_of_object.then_some(1));
        Self { calls_per_instance, ..limits }
    }

    fn of_spec(spec: &LimitsSpec) -> Self {
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            memory_bytes: spec.memory_mebibytes.map(|mebibytes| number(mebibytes) << 20),
            cpu: spec.cpu_milliseconds.map(|milliseconds| Duration::from_millis(milliseconds.into())),
            wall: spec.timeout_seconds.map(|seconds| Duration::from_secs(seconds.into())),
            output_bytes: spec.output_kibibytes.map(|kibibytes| number(kibibytes) << 10),
            calls_per_instance: spec.calls_per_instance,
            concurrency: spec.concurrency.map(number),
        }
    }

    /// The limits of its calls, where those of every plugin are `limits`.
    pub fn of_calls(&self, limits: Limits) -> Limits {
        Limits {
            memory_bytes: self.memory_bytes.unwrap_or(limits.memory_bytes),
            cpu: self.cpu.unwrap_or(limits.cpu),
            wall: self.wall.unwrap_or(limits.wall),
            output_bytes: self.output_bytes.unwrap_or(limits.output_bytes),
            calls_per_instance: self.calls_per_instance.unwrap_or(limits.calls_per_instance),
            ..limits
        }
    }
}

/// What the cluster says of a plugin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginSettings {
    /// Its configuration as JSON text; none for that of the command line.
    pub config: Option<Arc<str>>,
    /// What it may do at most.
    pub grants: Grants,
    /// The account that it works with; none for the host's own.
    pub account: Option<Account>,
    /// What it may use.
    pub limits: PluginLimits,
    /// The namespaces whose objects it reconciles; none for all.
    pub namespaces: Option<Selector>,
    /// Whether it is there.
    pub presence: Presence,
    /// The name of the `Plugin` that says all this; none if none does.
    pub said_by: Option<Arc<str>>,
}

impl PluginSettings {
    /// What a `Plugin` says, for a host in this namespace.
    pub fn of_plugin(plugin: &Plugin, host_namespace: &str) -> Self {
        let spec = &plugin.spec;
        let account = spec.service_account_name.as_deref().map(|name| Account {
            name: name.into(),
            namespace: match spec.service_account_namespace {
                ServiceAccountNamespace::Host => AccountNamespace::Fixed(host_namespace.into()),
                ServiceAccountNamespace::Object => AccountNamespace::OfObject,
            },
        });
        Self {
            config: spec.config.as_ref().map(|config| Arc::from(config.text())),
            grants: Grants::Granted(spec.grants.clone()),
            account,
            limits: PluginLimits::of_plugin(plugin),
            namespaces: spec.namespaces.as_ref().map(Selector::from),
            presence: Presence::AtWork,
            said_by: Some(plugin.name_any().into()),
        }
    }

    /// The same with another configuration.
    pub fn with_config(&self, config: Option<Arc<str>>) -> Self {
        Self { config, ..self.clone() }
    }
}

/// Whether a plugin is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    #[default]
    AtWork,
    /// It is gone, and only the objects that it leaves behind are looked after.
    Departed,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_instance_carries_nothing_from_one_tenant_to_another() -> serde_json::Result<()> {
        use ServiceAccountNamespace::{Host, Object};
        for (namespace, said, expected) in
            [(Host, None, None), (Host, Some(3), Some(3)), (Object, None, Some(1)), (Object, Some(3), Some(3))]
        {
            let mut plugin: Plugin = serde_json::from_value(json!({
                "apiVersion": "pilothouse.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "web"},
                "spec": {"source": {"directory": {"fileName": "web.wasm"}}, "limits": {"callsPerInstance": said}},
            }))?;
            plugin.spec.service_account_namespace = namespace;
            let settings = PluginSettings::of_plugin(&plugin, "pilothouse");
            assert_eq!(settings.limits.calls_per_instance, expected, "{namespace:?} {said:?}");
        }
        Ok(())
    }
}
