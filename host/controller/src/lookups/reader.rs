//! The account whose permissions count for the lookups of a call. Makes no request: what is not known yet is denied and noted, and the
//! call is made again when it is known.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::core::ApiResource;
use pilothouse_engine::contract::LookupError;

use crate::identity::{Identities, Permission, Question, ServiceAccount};

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
        // A right to all objects of the kind is the usual one, so it is asked first: that is one question for all names.
        for name in std::iter::once(None).chain(read.name.map(Some)) {
            let question = self.question(resource, Read { name, ..read });
            match self.identities.permissions.of(&question) {
                Permission::Allowed => return Ok(()),
                Permission::Denied => {}
                Permission::Unknown => {
                    self.noted().insert(question);
                    return Err(LookupError::Denied("the permission is not known yet".to_owned()));
                }
            }
        }
        Err(LookupError::Denied(self.denial(resource, read)))
    }

    /// What was noted and is still open.
    pub(super) fn open_questions(&self) -> Vec<Question> {
        self.noted().iter().cloned().collect()
    }

    fn question(&self, resource: &ApiResource, read: Read<'_>) -> Question {
        Question {
            account: self.account.clone(),
            verb: read.verb,
            group: resource.group.as_str().into(),
            resource: resource.plural.as_str().into(),
            namespace: read.namespace.into(),
            name: read.name.map(Arc::from),
        }
    }

    fn denial(&self, resource: &ApiResource, read: Read<'_>) -> String {
        let Read { verb, namespace, name } = read;
        let place = if namespace.is_empty() { String::new() } else { format!(" in namespace '{namespace}'") };
        let object = name.map(|name| format!(" '{name}'")).unwrap_or_default();
        let group = if resource.group.is_empty() { String::new() } else { format!(".{}", resource.group) };
        format!("{} may not {verb} {}{group}{object}{place}; grant it with a role", self.account, resource.plural)
    }

    fn noted(&self) -> MutexGuard<'_, BTreeSet<Question>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
