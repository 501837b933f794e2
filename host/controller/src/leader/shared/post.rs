//! What one host at a time does: work for the plugins that own a kind, or for one decorator. Decides nothing.

use std::sync::Arc;

use crate::leader::names::object_name;

/// What one host at a time does. Two plugins for one kind are never at work at once, whatever their names, so it is the kind that is held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Post(Arc<str>);

impl Post {
    /// The work for the plugins that own a kind of this group.
    pub fn of_kind(kind: &str, group: &str) -> Self {
        // No CRD can be of the core group.
        let group = if group.is_empty() { "core" } else { group };
        Self(format!("kind.{}.{group}", kind.to_lowercase()).into())
    }

    /// The work for a decorator.
    pub fn of_decorator(plugin: &str) -> Self {
        Self(format!("decorator.{plugin}").into())
    }

    /// The name of its Lease, where that of the host that leads has this name.
    pub fn lease(&self, lease: &str) -> String {
        object_name(format!("{lease}.{}", self.0))
    }
}

impl std::fmt::Display for Post {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_called_by_what_they_are_for() {
        let lease = |post: Post| post.lease("pilothouse");
        assert_eq!(
            lease(Post::of_kind("AppService", "apps.example.com")),
            "pilothouse.kind.appservice.apps.example.com"
        );
        assert_eq!(lease(Post::of_kind("ConfigMap", "")), "pilothouse.kind.configmap.core");
        assert_eq!(lease(Post::of_decorator("team")), "pilothouse.decorator.team");
    }
}
