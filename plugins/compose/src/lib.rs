//! The plugin `compose`: kinds without code. Its configuration is a composition: the kind, its children as templates with expressions in CEL,
//! what they read of the object, of each other and of objects of others, and the status and the conditions. Each configuration makes another
//! plugin of the same component. It writes and deletes nothing itself: it returns the children that should exist, and the host applies them.

mod composition;
mod config;
mod manifest;
mod parts;
mod problem;
mod reconcile;
mod template;
mod text;

pub use reconcile::reconcile;

use composition::compile;

pilothouse_sdk::configured_plugin! {
    name: "compose",
    config_schema: include_str!("../config.schema.json"),
    configure: configure,
    reconcile: reconcile,
}

/// The manifest of the plugin that a configuration makes, JSON text.
///
/// # Errors
/// All that is wrong with the configuration, one sentence each.
pub fn configure(config: &str) -> Result<String, Vec<String>> {
    let composition = compile(config);
    let composition = composition.map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(manifest::manifest(&composition).to_string())
}
