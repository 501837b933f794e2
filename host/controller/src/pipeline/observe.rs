//! Stage 2: what is there. Reads the object and its children from the caches, at one moment, without a request.

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::contract::{KindRef, Request};

use crate::{
    cache::{Name, Object, State, Watched},
    kinds::Installed,
    pipeline::excerpt::Shown,
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
    /// What the plugin is shown of each child, in their order.
    pub child_excerpts: Vec<Shown>,
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
    let excerpt = plugin.excerpts.of_object(&object);
    let child_excerpts = plugin.excerpts.of_children(&children);
    Ok(Observed { kind: plugin.objects.kind().clone(), object, excerpt, children, child_excerpts, former, kinds })
}

impl Observed {
    /// The request that the plugin gets.
    pub fn request(&self, config: &str) -> Request {
        Request {
            object: self.excerpt.as_deref().unwrap_or(&self.object.text).to_owned(),
            children: self
                .shown_children()
                .filter(|(child, _)| !self.is_released(child))
                .map(|(child, excerpt)| excerpt.unwrap_or(&child.text).to_owned())
                .collect(),
            config: config.to_owned(),
        }
    }

    /// The children that the plugin is shown, and what of each where that is not everything.
    pub fn shown_children(&self) -> impl Iterator<Item = (&Object, Option<&str>)> {
        let excerpts = self.child_excerpts.iter().chain(std::iter::repeat(&Shown::All));
        self.children.iter().zip(excerpts).filter_map(|((_, child), excerpt)| match excerpt {
            Shown::All => Some((&**child, None)),
            Shown::Part(text) => Some((&**child, Some(&**text))),
            Shown::Nothing => None,
        })
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
        let children = ["b", "c", "d"].map(|name| {
            (KindRef::new("v1", "Pod"), Arc::new(Object { text: name.into(), ..Object::sample("ns", name) }))
        });
        let observed = |excerpt: Option<&str>| Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: Arc::new(object.clone()),
            excerpt: excerpt.map(str::to_owned),
            children: children.to_vec(),
            child_excerpts: vec![
                excerpt.map_or(Shown::All, |text| Shown::Part(text.to_owned())),
                Shown::All,
                Shown::Nothing,
            ],
            former: Vec::new(),
            kinds: BTreeMap::new(),
        };
        for (excerpt, object, children) in
            [(None, "everything", ["b", "c"]), (Some("a part"), "a part", ["a part", "c"])]
        {
            let request = observed(excerpt).request("null");
            assert_eq!((&*request.object, &*request.children), (object, &children.map(str::to_owned)[..]));
        }
    }
}
