//! What a composition consists of, once it is compiled. Evaluates nothing and checks nothing.

use std::collections::BTreeSet;

use pilothouse_expression::Reference;
use pilothouse_sdk::raw::KindRef;

use crate::config::ResourceConfig;
use crate::problem::Path;
use crate::template::{Compiled, Template};

/// The name of the object in expressions. The same as in ResourceGraphDefinitions of KRO, so that their templates work here as they are.
pub const SCHEMA: &str = "schema";

/// The name of one child of several in its `readyWhen`, as in KRO.
pub const EACH: &str = "each";

/// What is looked up, computed or returned. Its name is the one at the same place in [`Composition::names`].
#[derive(Debug)]
pub enum Node {
    /// An object of somebody else.
    Lookup(Lookup),
    /// A value that has a name.
    Variable {
        /// Where it is written.
        path: Path,
        /// The value.
        value: Template,
    },
    /// A child, or several.
    Resource(Resource),
}

/// An object of somebody else, or a list of them.
#[derive(Debug)]
pub struct Lookup {
    /// Where it is written.
    pub path: Path,
    /// Its kind.
    pub kind: KindRef,
    /// Which one, or which ones.
    pub which: Which,
    /// Another namespace than the object's own.
    pub namespace: Option<Template>,
    /// Whether the object does without it.
    pub is_optional: bool,
    /// The reason and the message where it is missing.
    pub missing: Option<(String, Template)>,
}

/// Which objects are looked up.
#[derive(Debug)]
pub enum Which {
    /// The one of this name.
    Named(Template),
    /// All with these labels.
    Selected {
        /// The label selector.
        selector: Template,
        /// Whether in all namespaces.
        is_everywhere: bool,
    },
}

/// A child, or several of one template.
#[derive(Debug)]
pub struct Resource {
    /// Where it is written.
    pub path: Path,
    /// Its kind.
    pub kind: KindRef,
    /// The child.
    pub template: Template,
    /// What must be true of it.
    pub ready_when: Vec<Compiled>,
    /// What must be true, so that it is there.
    pub include_when: Vec<Compiled>,
    /// The lists of which it has an element each.
    pub for_each: Vec<(String, Compiled)>,
    /// How the host treats it.
    pub config: ResourceConfig,
}

/// A condition.
#[derive(Debug)]
pub struct Condition {
    /// Where it is written.
    pub path: Path,
    /// Its type.
    pub condition_type: String,
    /// Whether it holds.
    pub status: Template,
    /// A word for programs.
    pub reason: Template,
    /// A sentence for people.
    pub message: Option<Template>,
}

/// A compiled composition.
#[derive(Debug)]
pub struct Composition {
    /// The plugin's name.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// The kind whose objects it is about.
    pub kind: KindRef,
    /// The names of the nodes.
    pub names: Vec<String>,
    /// What is looked up, computed and returned.
    pub nodes: Vec<Node>,
    /// What each node reads, by the places of nodes.
    pub reads: Vec<BTreeSet<usize>>,
    /// The places of the nodes, each after those that it reads.
    pub order: Vec<usize>,
    /// The fields of the status.
    pub status: Vec<(String, Template)>,
    /// Conditions.
    pub conditions: Vec<Condition>,
}

impl Composition {
    /// All references to the object, or to the node at a place.
    pub fn references(&self) -> Vec<Reference> {
        let conditions = self.conditions.iter().flat_map(|condition| {
            let message = condition.message.iter().flat_map(Template::references);
            condition.status.references().into_iter().chain(condition.reason.references()).chain(message)
        });
        let status = self.status.iter().flat_map(|(_, template)| template.references());
        self.nodes.iter().flat_map(Node::references).chain(status).chain(conditions).collect()
    }

    /// The place of the node with this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }
}

impl Node {
    /// What it reads. What a resource reads of itself is among it.
    pub fn references(&self) -> Vec<Reference> {
        match self {
            Self::Variable { value, .. } => value.references(),
            Self::Lookup(lookup) => {
                let Lookup { which, namespace, missing, .. } = lookup;
                let which = match which {
                    Which::Named(template) | Which::Selected { selector: template, .. } => template.references(),
                };
                let namespace = namespace.iter().flat_map(Template::references);
                let missing = missing.iter().flat_map(|(_, message)| message.references());
                which.into_iter().chain(namespace).chain(missing).collect()
            }
            Self::Resource(resource) => {
                let ready = resource.ready_when.iter().flat_map(Compiled::references);
                resource.references_to_be_made().into_iter().chain(ready).collect()
            }
        }
    }
}

impl Resource {
    /// What it reads before it is there.
    pub fn references_to_be_made(&self) -> Vec<Reference> {
        let expressions = self.include_when.iter().chain(self.for_each.iter().map(|(_, list)| list));
        let iterators: Vec<_> = self.for_each.iter().map(|(name, _)| name.as_str()).collect();
        let own = |reference: &Reference| !iterators.contains(&reference.name.as_str());
        let template = self.template.references().into_iter().filter(own);
        expressions.flat_map(Compiled::references).chain(template).collect()
    }
}
