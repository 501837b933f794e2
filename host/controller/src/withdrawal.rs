//! Takes away what decorators have made that are gone for good: their children, and their labels and annotations on objects of others. Touches
//! nothing of a plugin that is merely not at work.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use pilothouse_engine::contract::KindRef;

use crate::{
    host::Host,
    plugin::{Leaver, Presence},
};

/// How often the host looks whether anything is left of a decorator that is gone.
const LOOK: Duration = Duration::from_millis(500);

/// Takes away what decorators have made whose `Plugin`s are gone for good. A plugin that is merely not at work, such as one that cannot
/// be loaded, loses nothing.
pub fn withdraw_decorators(host: &Arc<Host>, is_gone: impl Fn(&str) -> bool + Send + 'static) {
    let host = host.clone();
    tokio::spawn(async move {
        let leavers = host.leavers().await;
        let is_meant = |leaver: &Leaver| leaver.decorates && leaver.said_by.as_deref().is_some_and(&is_gone);
        for (leaver, children) in leavers.into_iter().filter(|(leaver, _)| is_meant(leaver)) {
            let host = host.clone();
            tokio::spawn(async move { take_decorations_away(&host, leaver, children).await });
        }
    });
}

/// Takes away what a decorator has made, and forgets it when nothing is left.
async fn take_decorations_away(host: &Arc<Host>, leaver: Leaver, children: BTreeSet<KindRef>) {
    if host.has(&leaver.plugin) {
        return;
    }
    let (departed, settings) = leaver.departed(children);
    host.install(departed, settings);
    loop {
        tokio::time::sleep(LOOK).await;
        match host.active_plugin(&leaver.plugin) {
            // It is there again.
            Some(plugin) if plugin.presence == Presence::AtWork => return,
            Some(plugin) if !plugin.has_decorations_left() => break,
            _ => {}
        }
    }
    host.forget_leaver(&leaver).await;
    tracing::info!(plugin = leaver.plugin, "nothing is left of what the plugin has made");
}
