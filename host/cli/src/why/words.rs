//! A `Plugin` in the words of a report. Makes no request.

use kube::ResourceExt;
use pilothouse_controller::api::Plugin;

/// Its name, what is at work, and with whose rights.
pub fn of_plugin(plugin: &Plugin) -> String {
    let status = plugin.status.clone().unwrap_or_default();
    let is_ready = status.conditions.iter().any(|it| it.condition_type == "Ready" && it.status == "True");
    let account = plugin.spec.service_account_name.as_ref().map(|name| format!(", with the rights of '{name}'"));
    format!(
        "{} {} ({}){}{}",
        plugin.name_any(),
        status.version.unwrap_or_default(),
        status.short_digest.unwrap_or_default(),
        account.unwrap_or_default(),
        if is_ready { "" } else { ", not ready" }
    )
}
