//! How much memory the remembered lookups of all objects may take. No plugin gets so much of it that nothing is left for the others. Holds no
//! lookups.

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::{AnsweredLookup, Query, Target};

/// How many times as much as it leaves free a plugin may have, as for the memory of its calls.
const SHARE: usize = 3;

/// What the index has of a lookup by name, with the room that is free in its tree: a fingerprint among those of the key, and an entry by name.
const INDEXED_NAME: usize = 112;

/// What it has of a lookup by labels besides the selector: the same, and a tree of its own for each selector.
const INDEXED_SELECTOR: usize = 384;

/// What the allocator needs for each text.
const ALLOCATION: usize = 16;

/// The memory of remembered lookups.
#[derive(Debug)]
pub(super) struct LookupMemory {
    total: usize,
    used: usize,
    by_plugin: BTreeMap<Arc<str>, usize>,
}

/// No more lookups of a plugin can be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the host remembers what objects look up, to reconcile them when it changes. The objects of this plugin have {kib_used} KiB of the {kib_total} KiB \
     that there are for all plugins, and get no more. Let it look up fewer objects by their names, and more by labels; or give the \
     host more memory (--call-memory)",
    kib_used = .used.div_ceil(1024), kib_total = .total >> 10
)]
pub struct NoRoom {
    /// The bytes that the plugin has.
    pub used: usize,
    /// The bytes for all plugins.
    pub total: usize,
}

impl LookupMemory {
    pub(super) fn of(bytes: usize) -> Self {
        Self { total: bytes, used: 0, by_plugin: BTreeMap::new() }
    }

    /// Whether a plugin may have so many bytes more.
    pub(super) fn check(&self, plugin: &str, bytes: usize) -> Result<(), NoRoom> {
        let used = self.by_plugin.get(plugin).copied().unwrap_or_default();
        let left = self.total.checked_sub(self.used + bytes);
        match left.is_some_and(|left| used + bytes <= left.saturating_mul(SHARE)) {
            true => Ok(()),
            false => Err(NoRoom { used, total: self.total }),
        }
    }

    pub(super) fn take(&mut self, plugin: &Arc<str>, bytes: usize) {
        self.used += bytes;
        *self.by_plugin.entry(plugin.clone()).or_default() += bytes;
    }

    pub(super) fn give_back(&mut self, plugin: &str, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
        if let Some(used) = self.by_plugin.get_mut(plugin) {
            *used = used.saturating_sub(bytes);
            if *used == 0 {
                self.by_plugin.remove(plugin);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_unused(&self) -> bool {
        self.used == 0 && self.by_plugin.is_empty()
    }
}

/// What it takes to remember a lookup: in the index, and in the object's last answer.
pub(super) fn bytes_of(query: &Query) -> usize {
    let indexed = match &query.target {
        Target::Name(_) => INDEXED_NAME,
        Target::Labels(selector) => INDEXED_SELECTOR + selector.len() + ALLOCATION,
    };
    let texts = 3 + query.fields.len();
    let fields = query.fields.len() * size_of::<String>();
    size_of::<AnsweredLookup>() + query.text_bytes() + texts * ALLOCATION + fields + indexed
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::{Scope, contract::KindRef};

    use super::*;

    #[test]
    fn no_plugin_takes_all_and_each_gets_its_part_of_what_is_left() {
        let mut memory = LookupMemory::of(1_000);
        for (plugin, expected) in [("one", 750), ("two", 187), ("three", 47)] {
            let plugin = Arc::from(plugin);
            while memory.check(&plugin, 1).is_ok() {
                memory.take(&plugin, 1);
            }
            assert_eq!(memory.by_plugin.get(&plugin), Some(&expected));
        }
        assert_eq!(memory.check("one", 1), Err(NoRoom { used: 750, total: 1_000 }));
        memory.give_back("one", 750);
        assert_eq!((memory.used, memory.check("four", 500)), (234, Ok(())));
    }

    #[test]
    fn each_text_of_a_lookup_counts() {
        let named = |name: &str| Query::by_name(KindRef::new("v1", "ConfigMap"), Scope::OwnNamespace, name);
        let bytes = |query: &Query| bytes_of(query) - bytes_of(&named(""));
        assert_eq!(bytes(&named(&"n".repeat(200))), 200);
        let everywhere = Query { scope: Scope::Namespace("x".repeat(63)), ..named("") };
        assert_eq!(bytes(&everywhere), 63);
        let of_fields = Query { fields: vec!["/f".repeat(1_000); 10], ..named("") };
        assert!(bytes(&of_fields) > 20_000);
        let selected = Query::by_labels(KindRef::new("v1", "ConfigMap"), Scope::OwnNamespace, &"l".repeat(4_000));
        assert!(bytes(&selected) > 8_000, "the selector is in the index, too");
    }
}
