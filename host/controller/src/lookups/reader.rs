//! The account whose permissions count for the lookups of a call. Makes no request: what is not known yet is denied and noted, and the
//! call is made again when it is known.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::core::ApiResource;
use pilothouse_engine::contract::LookupError;

use crate::identity::{Identities, MAX_NAMES, Permission, Question, ServiceAccount};

/// Reads in the name of an account.
#[derive(Clone)]
pub struct Reader {
    account: ServiceAccount,
    identities: Arc<Identities>,
    open: Arc<Mutex<BTreeSet<Question>>>,
}

/// A read.
#[derive(Clone, Copy)]
pub(super) struct Read<'a> {
    /// `get` or `list`.
    pub(super) verb: &'static str,
    /// The namespace; empty for all of them, and for a cluster-scoped kind.
    pub(super) namespace: &'a str,
    /// The name of the object; none for all.
    pub(super) name: Option<&'a str>,
}

impl Reader {
    /// A reader that has noted nothing yet.
    pub fn new(account: ServiceAccount, identities: Arc<Identities>) -> Self {
        Self { account, identities, open: Arc::default() }
    }

    /// Whether the account may read this.
    pub(super) fn check(&self, resource: &ApiResource, read: Read<'_>) -> Result<(), LookupError> {
        let mut is_open = false;
        for question in self.questions(resource, read) {
            match self.identities.permissions.of(&question) {
                Permission::Allowed => return Ok(()),
                Permission::Denied => {}
                Permission::TooMany => return Err(LookupError::Denied(self.too_many(resource, read))),
                Permission::Unknown => {
                    // Each round of questions costs a call: that about all namespaces is asked with the next one, and one about a name only
                    // if it matters.
                    is_open = true;
                    let is_widest = question.namespace.as_ref() != read.namespace;
                    self.noted().insert(question);
                    if !is_widest {
                        break;
                    }
                }
            }
        }
        if is_open {
            return Err(LookupError::Denied("the permission is not known yet".to_owned()));
        }
        Err(LookupError::Denied(self.denial(resource, read)))
    }

    /// What was noted and is still open.
    pub(super) fn open_questions(&self) -> Vec<Question> {
        self.noted().iter().cloned().collect()
    }

    /// What allows a read, the usual rights first: to all objects of the kind in all namespaces, then in one, is one question for all of them.
    fn questions(&self, resource: &ApiResource, read: Read<'_>) -> impl Iterator<Item = Question> {
        let everywhere = (!read.namespace.is_empty()).then_some(("", None));
        let (group, plural) = (Arc::from(resource.group.as_str()), Arc::from(resource.plural.as_str()));
        let rights = everywhere
            .into_iter()
            .chain([(read.namespace, None)])
            .chain(read.name.map(|name| (read.namespace, Some(name))));
        rights.map(move |(namespace, name)| Question {
            account: self.account.clone(),
            verb: read.verb,
            group: Arc::clone(&group),
            resource: Arc::clone(&plural),
            namespace: namespace.into(),
            name: name.map(Arc::from),
        })
    }

    fn denial(&self, resource: &ApiResource, read: Read<'_>) -> String {
        let Read { verb, namespace, name } = read;
        let place = if namespace.is_empty() { String::new() } else { format!(" in namespace '{namespace}'") };
        let object = name.map(|name| format!(" '{name}'")).unwrap_or_default();
        let group = if resource.group.is_empty() { String::new() } else { format!(".{}", resource.group) };
        format!("{} may not {verb} {}{group}{object}{place}; grant it with a role", self.account, resource.plural)
    }

    fn too_many(&self, resource: &ApiResource, read: Read<'_>) -> String {
        let Read { verb, name, namespace } = read;
        let (account, plural) = (&self.account, &resource.plural);
        match name {
            Some(name) => format!(
                "{account} looks up {MAX_NAMES} objects by their names already, and whether it may {verb} {plural} '{name}' is not asked; let it \
                 {verb} all {plural} with a role without resourceNames, or look up fewer"
            ),
            None => format!(
                "{account} looks up too many kinds in too many namespaces, and whether it may {verb} {plural} in '{namespace}' is not asked; \
                 let it {verb} {plural} in all namespaces, or look up fewer"
            ),
        }
    }

    fn noted(&self) -> MutexGuard<'_, BTreeSet<Question>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
