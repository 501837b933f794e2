//! Who makes a request, and what they may do.

use std::sync::Arc;

use super::kinds::Kind;

/// A user with their rights.
#[derive(Clone, Debug)]
pub struct User {
    /// The name.
    pub name: Arc<str>,
    /// What they may do.
    pub rights: Rights,
}

/// What a user may do.
#[derive(Clone, Debug)]
pub enum Rights {
    /// Everything.
    All,
    /// What one of these rules allows.
    Rules(Arc<[Rule]>),
}

/// A rule as a Role has it. `*` stands for anything.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// The verbs.
    pub verbs: Vec<String>,
    /// The groups; the core one is empty.
    pub groups: Vec<String>,
    /// The plurals, a subresource after a slash.
    pub resources: Vec<String>,
    /// The namespaces; empty for all.
    pub namespaces: Vec<String>,
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The group.
    pub group: &'a str,
    /// The plural.
    pub resource: &'a str,
    /// The subresource; empty for none.
    pub subresource: &'a str,
    /// The namespace; empty for all or for none.
    pub namespace: &'a str,
}

impl User {
    /// A user who may do everything.
    pub fn admin(name: &str) -> Self {
        Self { name: name.into(), rights: Rights::All }
    }

    /// Whether the user may do something.
    pub fn may(&self, wanted: Attributes<'_>) -> bool {
        let Rights::Rules(rules) = &self.rights else { return true };
        let resource = if wanted.subresource.is_empty() {
            wanted.resource.to_owned()
        } else {
            format!("{}/{}", wanted.resource, wanted.subresource)
        };
        let has = |list: &[String], wanted: &str| list.iter().any(|known| known == "*" || known == wanted);
        rules.iter().any(|rule| {
            has(&rule.verbs, wanted.verb)
                && has(&rule.groups, wanted.group)
                && has(&rule.resources, &resource)
                && (rule.namespaces.is_empty() || has(&rule.namespaces, wanted.namespace))
        })
    }
}

impl<'a> Attributes<'a> {
    /// A verb on the objects of a kind.
    pub fn of(verb: &'a str, kind: &'a Kind, namespace: &'a str, subresource: &'a str) -> Self {
        Self { verb, group: &kind.names.group, resource: &kind.names.plural, subresource, namespace }
    }
}
