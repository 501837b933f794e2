//! What accounts may look up. A call cannot wait for the API server, so an answer that is not known yet is `Unknown`, and whoever called
//! asks the open questions and calls again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::Client;
use tokio::time::Instant;

use super::ServiceAccount;
use crate::{access::is_allowed, observable::Observable};

/// How long a permission counts before it is asked again.
pub const ALLOWED_FOR: Duration = Duration::from_secs(60);

/// The same for a denial. Shorter, for somebody waits for it to end.
pub const DENIED_FOR: Duration = Duration::from_secs(10);

/// A permission that nobody used for so long is forgotten.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// May an account read objects of a kind?
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// The account.
    pub account: ServiceAccount,
    /// `get` for an object by its name, `list` for a selection.
    pub verb: &'static str,
    /// The API group of the kind.
    pub group: Arc<str>,
    /// The plural of the kind.
    pub resource: Arc<str>,
    /// The namespace; empty for all of them, and for a cluster-scoped kind.
    pub namespace: Arc<str>,
    /// The name of the object; none for all.
    pub name: Option<Arc<str>>,
}

/// The answer to a [`Question`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Yes.
    Allowed,
    /// No.
    Denied,
    /// Nobody has asked yet.
    Unknown,
}

#[derive(Clone, Copy)]
struct Known {
    is_allowed: bool,
    asked: Instant,
    used: Instant,
}

impl Known {
    fn is_due(&self, now: Instant) -> bool {
        now >= self.asked + if self.is_allowed { ALLOWED_FOR } else { DENIED_FOR }
    }
}

/// What accounts may look up.
pub struct Permissions {
    known: Mutex<BTreeMap<Question, Known>>,
    is_any_known: Observable<bool>,
}

impl Default for Permissions {
    /// Nothing is known.
    fn default() -> Self {
        Self { known: Mutex::default(), is_any_known: Observable::new(false) }
    }
}

impl Permissions {
    /// What is known of a question.
    pub fn of(&self, question: &Question) -> Permission {
        match self.lock().get_mut(question) {
            None => Permission::Unknown,
            Some(known) => {
                known.used = Instant::now();
                if known.is_allowed { Permission::Allowed } else { Permission::Denied }
            }
        }
    }

    /// Asks the API server, with a client of the account. Returns whether the answer is another one than before.
    ///
    /// # Errors
    /// The error of the request; what was known before stays.
    pub async fn ask(&self, client: &Client, question: Question) -> Result<bool, kube::Error> {
        let is_allowed = is_allowed(client, attributes(&question)).await?;
        let now = Instant::now();
        let mut known = self.lock();
        let before = known.get(&question).copied();
        known.insert(question, Known { is_allowed, asked: now, used: before.map_or(now, |before| before.used) });
        self.is_any_known.set(true);
        Ok(before.is_none_or(|before| before.is_allowed != is_allowed))
    }

    /// The questions that are to be asked again now. Forgets those that nobody needs any more.
    pub fn due(&self) -> Vec<Question> {
        let now = Instant::now();
        let mut known = self.lock();
        known.retain(|_, known| now < known.used + KEPT_FOR);
        self.is_any_known.set(!known.is_empty());
        known.iter().filter(|(_, known)| known.is_due(now)).map(|(question, _)| question.clone()).collect()
    }

    /// Waits until anything is known. A host whose plugins have no accounts waits for ever.
    pub async fn until_some(&self) {
        self.is_any_known.wait_for(|is_any_known| *is_any_known).await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Question, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn attributes(question: &Question) -> ResourceAttributes {
    ResourceAttributes {
        group: Some(question.group.to_string()),
        resource: Some(question.resource.to_string()),
        namespace: Some(question.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
        name: question.name.as_deref().map(str::to_owned),
        verb: Some(question.verb.to_owned()),
        ..ResourceAttributes::default()
    }
}
