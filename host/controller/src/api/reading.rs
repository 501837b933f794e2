//! Reads `Plugin`s one by one. As a list of a Rust type, they would all be unreadable because of one: of a deeply nested `config`, the
//! API server notes the owner of each level, and a parser gives up.

use kube::{Api, Client, api::ListParams, core::ApiResource};

use super::Plugin;
use crate::object::Incoming;

/// The API of `Plugin`s, from which each is read by [`read_plugin`].
pub fn plugins(client: Client) -> Api<Incoming> {
    Api::all_with(client, &resource())
}

fn resource() -> ApiResource {
    ApiResource::erase::<Plugin>(&())
}

/// Reads a `Plugin`.
///
/// # Errors
/// If it is none.
pub fn read_plugin(incoming: Incoming) -> Result<Plugin, serde_json::Error> {
    serde_json::from_str(&incoming.into_object(&resource()).text.read())
}

/// All `Plugin`s of a cluster that can be read.
///
/// # Errors
/// The error of the request.
pub async fn list_plugins(client: Client) -> Result<Vec<Plugin>, kube::Error> {
    let listed = plugins(client).list(&ListParams::default()).await?;
    Ok(listed.items.into_iter().filter_map(|plugin| read_plugin(plugin).ok()).collect())
}

/// A `Plugin` by its name; none if there is none.
///
/// # Errors
/// The error of the request, or of reading its answer.
pub async fn find_plugin(client: Client, name: &str) -> Result<Option<Plugin>, kube::Error> {
    let found = plugins(client).get_opt(name).await?;
    found.map(read_plugin).transpose().map_err(kube::Error::SerdeError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_read_however_deep_its_configuration_is() -> Result<(), serde_json::Error> {
        let nested = |open: &str, end: &str| format!("{}1{}", open.repeat(300), end.repeat(300));
        let text = format!(
            r#"{{"apiVersion":"pilothouse.dev/v1alpha1","kind":"Plugin",
                "metadata":{{"name":"web","generation":3,"managedFields":[{{"fieldsV1":{}}}]}},
                "spec":{{"source":{{"configMap":{{"name":"web"}}}},"config":{}}}}}"#,
            nested(r#"{"f:a":"#, "}"),
            nested(r#"{"a":"#, "}"),
        );
        let plugin = read_plugin(serde_json::from_str(&text)?)?;
        assert_eq!((plugin.metadata.name.as_deref(), plugin.metadata.generation), (Some("web"), Some(3)));
        assert_eq!(plugin.spec.config.map(|config| config.text().len()), Some(300 * 6 + 1));
        Ok(())
    }
}
