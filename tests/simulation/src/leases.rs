//! Which Lease a host needs for a write that it sends, and whether it has it. One for everything, or where hosts share the work, one for each
//! plugin. Judges nothing else.

use http::{Method, Request};
use pilothouse_controller::labels::{HOST_LEASE, PLUGIN, PLUGIN_LEASE};
use serde_json::Value;

use crate::{
    api_server::{ApiServer, Object},
    host_id::HostId,
    kinds,
    paths::{LEASE, OWN_NAMESPACE},
    plugin::{app, manifest},
};

/// A Lease that a host does not have, with the one that does.
#[derive(Debug, PartialEq, Eq)]
pub struct MissingLease {
    /// The Lease.
    pub lease: String,
    /// Its holder; empty if there is none.
    pub holder: String,
}

/// The Lease that a host would need for this write and does not have.
pub fn missing<B>(server: &ApiServer, host: HostId, request: &Request<B>) -> Option<MissingLease> {
    // Without an election there is none.
    let lead = server.object(kinds::LEASES, OWN_NAMESPACE, LEASE)?;
    if label(lead, HOST_LEASE).is_empty() {
        return of(host, LEASE, Some(lead));
    }
    let leases = || server.objects(kinds::LEASES);
    let own = leases().find(|lease| {
        !label(lease, HOST_LEASE).is_empty() && holder(lease) == host.to_string() && name(lease) != LEASE
    });
    let missing_own = own.is_none().then(|| MissingLease { lease: format!("that of {host}"), holder: String::new() });
    missing_own.or_else(|| {
        let plugin = plugin(server, request)?;
        let is_of_plugin =
            |lease: &&Object| !label(lease, PLUGIN_LEASE).is_empty() && annotation(lease, PLUGIN) == plugin;
        of(host, &format!("that of {plugin}"), leases().map(|lease| &**lease).find(is_of_plugin))
    })
}

fn of(host: HostId, name: &str, lease: Option<&Object>) -> Option<MissingLease> {
    let holder = lease.map(holder).unwrap_or_default();
    (holder != host.to_string()).then(|| MissingLease { lease: name.to_owned(), holder: holder.to_owned() })
}

/// The plugin for which a host sends a write; none for what is the host's own.
fn plugin<B>(server: &ApiServer, request: &Request<B>) -> Option<String> {
    let plugins = [app::PLUGIN, manifest::PLUGIN];
    let manager = |plugin: &str| {
        request.uri().query().is_some_and(|query| query.contains(&format!("fieldManager=pilothouse%2F{plugin}")))
    };
    if let Some(plugin) = plugins.into_iter().find(|plugin| manager(plugin)) {
        return Some(plugin.to_owned());
    }
    if request.method() != Method::DELETE {
        return None;
    }
    let deleted = deleted(server, request.uri().path())?;
    Some(label(deleted, PLUGIN)).filter(|plugin| !plugin.is_empty()).map(str::to_owned)
}

/// The object that a path is of.
fn deleted<'s>(server: &'s ApiServer, path: &str) -> Option<&'s Object> {
    let parts: Vec<_> = path.trim_matches('/').split('/').collect();
    let (group, rest) = match *parts.first()? {
        "api" => (String::new(), parts.get(2..)?),
        _ => (format!(".{}", parts.get(1)?), parts.get(3..)?),
    };
    let (namespace, plural, name) = match *rest {
        ["namespaces", namespace, plural, name] => (namespace, plural, name),
        [plural, name] => ("", plural, name),
        _ => return None,
    };
    server.object(&format!("{plural}{group}"), namespace, name).map(|object| &**object)
}

fn text<'o>(object: &'o Object, path: &[&str]) -> &'o str {
    path.iter().fold(&object.value, |value: &Value, field| &value[*field]).as_str().unwrap_or_default()
}

fn name(object: &Object) -> &str {
    text(object, &["metadata", "name"])
}

fn label<'o>(object: &'o Object, key: &str) -> &'o str {
    text(object, &["metadata", "labels", key])
}

fn annotation<'o>(object: &'o Object, key: &str) -> &'o str {
    text(object, &["metadata", "annotations", key])
}

fn holder(lease: &Object) -> &str {
    text(lease, &["spec", "holderIdentity"])
}
