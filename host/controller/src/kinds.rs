//! What the API server says about a kind: its plural, its scope, whether it has a status subresource. Asks for the one
//! group and version and caches nothing; the watches keep what they found.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::{Api, Client, api::ApiResource};
use pilothouse_engine::contract::KindRef;

use crate::cache::Incoming;

/// A kind that the API server serves.
#[derive(Clone, Debug, PartialEq)]
pub struct Installed {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether it has the status subresource.
    pub has_status: bool,
}

impl Installed {
    /// The way to objects of the kind: in a namespace, or anywhere where the kind has none.
    pub fn api(&self, client: &Client, namespace: &str) -> Api<Incoming> {
        if self.namespaced {
            Api::namespaced_with(client.clone(), namespace, &self.resource)
        } else {
            Api::all_with(client.clone(), &self.resource)
        }
    }
}

/// Finds a kind; none if it is not installed.
///
/// # Errors
/// Whatever the request fails with.
pub async fn find(client: &Client, kind: &KindRef) -> Result<Option<Installed>, kube::Error> {
    let listed = if kind.group().is_empty() {
        client.list_core_api_resources(kind.version()).await
    } else {
        client.list_api_group_resources(&kind.api_version).await
    };
    match listed {
        Ok(list) => Ok(pick(&list, kind)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

fn pick(list: &APIResourceList, kind: &KindRef) -> Option<Installed> {
    let found = list.resources.iter().find(|resource| resource.kind == kind.kind && !resource.name.contains('/'))?;
    let status = format!("{}/status", found.name);
    Some(Installed {
        resource: ApiResource {
            group: kind.group().to_owned(),
            version: kind.version().to_owned(),
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            plural: found.name.clone(),
        },
        namespaced: found.namespaced,
        has_status: list.resources.iter().any(|resource| resource.name == status),
    })
}
