//! Stage 2: what is there. Reads the object and its children from the caches, at one moment, without a request.

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::contract::{KindRef, Request};

use crate::{
    cache::{Name, Object, State, Watched},
    kinds::Installed,
    plugin::ActivePlugin,
};

/// An object and its children as the caches know them.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The kind of the object.
    pub kind: KindRef,
    /// The object.
    pub object: Arc<Object>,
    /// What the plugin is shown of the object, where that is not everything.
    pub excerpt: Option<String>,
    /// Its children, by kind and name.
    pub children: Vec<(KindRef, Arc<Object>)>,
    /// Its children of kinds that the plugin no longer declares. The plugin does not see them.
    pub former: Vec<(KindRef, Arc<Object>)>,
    /// How the API server serves the child kinds that are installed.
    pub kinds: BTreeMap<KindRef, Arc<Installed>>,
}

/// Why nothing can be decided now.
#[derive(Clone, Debug, PartialEq)]
pub enum Unobserved {
    /// The object is not there: it was deleted.
    Gone,
    /// The children of a kind are not known; the reason, if the API server gave one.
    NotSynced(KindRef, Option<String>),
}

/// Reads an object and its children.
///
/// # Errors
/// [`Unobserved`]; nothing may be written or deleted then.
pub fn observe(plugin: &ActivePlugin, name: &Name) -> Result<Observed, Unobserved> {
    let object = plugin.objects.store().get(name).ok_or(Unobserved::Gone)?;
    let owned = |kind: &KindRef, watched: &Watched| {
        let owned = watched.store().owned_by(&object.uid);
        owned.into_iter().map(|child| (kind.clone(), child)).collect::<Vec<_>>()
    };
    let (mut children, mut kinds) = (Vec::new(), BTreeMap::new());
    for (kind, watched) in &plugin.children {
        match watched.state() {
            State::Synced => {}
            State::NotInstalled => continue,
            State::Failing(why) => return Err(Unobserved::NotSynced(kind.clone(), Some(why))),
            State::Starting => return Err(Unobserved::NotSynced(kind.clone(), None)),
        }
        children.extend(owned(kind, watched));
        kinds.extend(watched.installed().map(|installed| (kind.clone(), installed)));
    }
    // Nothing waits for a former kind: what is not known of it is pruned later.
    let synced = plugin.former.iter().filter(|(_, watched)| watched.state() == State::Synced);
    let former = synced.flat_map(|(kind, watched)| owned(kind, watched)).collect();
    let excerpt = plugin.excerpt.as_ref().map(|excerpt| excerpt.of(&object.text));
    Ok(Observed { kind: plugin.objects.kind().clone(), object, excerpt, children, former, kinds })
}

impl Observed {
    /// The request that the plugin gets.
    pub fn request(&self, config: &str) -> Request {
        Request {
            object: self.excerpt.as_deref().unwrap_or(&self.object.text).to_owned(),
            children: self.own().map(|(_, child)| child.text.to_string()).collect(),
            config: config.to_owned(),
        }
    }

    /// The children but for those that were released.
    pub fn own(&self) -> impl Iterator<Item = &(KindRef, Arc<Object>)> {
        self.children.iter().filter(|(_, child)| !self.is_released(child))
    }

    /// Whether a child was released, for its object is deleted without it: it is nobody's now, and stays as it is.
    pub fn is_released(&self, child: &Object) -> bool {
        self.object.deleting && child.controller.is_none() && !child.is_kept()
    }

    /// The child of that kind and name.
    pub fn child(&self, kind: &KindRef, name: &str) -> Option<&Arc<Object>> {
        self.children.iter().find(|(of, child)| of == kind && *child.name.name == *name).map(|(_, child)| child)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_shown_the_excerpt_where_there_is_one() {
        let object = Object { text: "everything".into(), ..Object::sample("ns", "a") };
        let observed = |excerpt: Option<&str>| Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: Arc::new(object.clone()),
            excerpt: excerpt.map(str::to_owned),
            children: Vec::new(),
            former: Vec::new(),
            kinds: BTreeMap::new(),
        };
        assert_eq!(observed(None).request("null").object, "everything");
        assert_eq!(observed(Some("a part")).request("null").object, "a part");
    }
}
