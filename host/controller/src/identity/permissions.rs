//! What accounts may look up. A call cannot wait for the API server, so an answer that is not known yet is `Unknown`, and whoever called
//! asks the open questions and calls again. How much is asked about one account has a bound, whatever its plugin looks up.

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

/// About how many objects an account is asked by their names. Who needs more can be given a right to all objects of the kind, which is one
/// question.
pub const MAX_NAMES: usize = 1_000;

/// About how many namespaces and kinds together. Who needs more can be given the right in all namespaces.
const MAX_KINDS: usize = 10_000;

/// How many questions about one account are asked again at once. The others wait, longest asked first.
const ASKED_AGAIN: usize = 100;

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
    /// Nobody will ask: there are too many others about the account already.
    TooMany,
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

/// What is known of an account.
#[derive(Default)]
struct OfAccount {
    /// What it may do with all objects of a kind, in all namespaces or in one.
    kinds: BTreeMap<Question, Known>,
    /// The same for objects by their names.
    names: BTreeMap<Question, Known>,
}

impl OfAccount {
    /// The answers to questions of the same sort, and how many there may be. A plugin chooses names, and may choose namespaces.
    fn those_like(&mut self, question: &Question) -> (&mut BTreeMap<Question, Known>, usize) {
        match question.name {
            Some(_) => (&mut self.names, MAX_NAMES),
            None => (&mut self.kinds, MAX_KINDS),
        }
    }

    fn forget_unused(&mut self, now: Instant) {
        for known in [&mut self.kinds, &mut self.names] {
            known.retain(|_, known| now < known.used + KEPT_FOR);
        }
    }

    /// What is to be asked again now, longest asked first.
    fn due(&self, now: Instant) -> Vec<Question> {
        let mut due: Vec<_> = self.kinds.iter().chain(&self.names).filter(|(_, known)| known.is_due(now)).collect();
        due.sort_by_key(|(_, known)| known.asked);
        due.into_iter().take(ASKED_AGAIN).map(|(question, _)| question.clone()).collect()
    }
}

/// What accounts may look up.
pub struct Permissions {
    known: Mutex<BTreeMap<ServiceAccount, OfAccount>>,
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
        let mut known = self.lock();
        let Some(of_account) = known.get_mut(&question.account) else { return Permission::Unknown };
        let (known, limit) = of_account.those_like(question);
        let is_full = known.len() >= limit;
        match known.get_mut(question) {
            Some(known) => {
                known.used = Instant::now();
                if known.is_allowed { Permission::Allowed } else { Permission::Denied }
            }
            None if is_full => Permission::TooMany,
            None => Permission::Unknown,
        }
    }

    /// Asks the API server, with a client of the account, unless the question is one too many. Returns whether the answer is another one than
    /// before.
    ///
    /// # Errors
    /// The error of the request; what was known before stays.
    pub async fn ask(&self, client: &Client, question: Question) -> Result<bool, kube::Error> {
        if self.of(&question) == Permission::TooMany {
            return Ok(false);
        }
        let is_allowed = is_allowed(client, attributes(&question)).await?;
        let now = Instant::now();
        let mut known = self.lock();
        let (known, _) = known.entry(question.account.clone()).or_default().those_like(&question);
        let before = known.get(&question).copied();
        known.insert(question, Known { is_allowed, asked: now, used: before.map_or(now, |before| before.used) });
        self.is_any_known.set(true);
        Ok(before.is_none_or(|before| before.is_allowed != is_allowed))
    }

    /// The questions that are to be asked again now. Forgets those that nobody needs any more.
    pub fn due(&self) -> Vec<Question> {
        let now = Instant::now();
        let mut known = self.lock();
        known.values_mut().for_each(|of_account| of_account.forget_unused(now));
        known.retain(|_, of_account| !of_account.kinds.is_empty() || !of_account.names.is_empty());
        self.is_any_known.set(!known.is_empty());
        known.values().flat_map(|of_account| of_account.due(now)).collect()
    }

    /// Waits until anything is known. A host whose plugins have no accounts waits for ever.
    pub async fn until_some(&self) {
        self.is_any_known.wait_for(|is_any_known| *is_any_known).await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServiceAccount, OfAccount>> {
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// An API server that denies all that it is asked.
    fn denying() -> Client {
        let service = tower::service_fn(|_: Request<Body>| async {
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}, "status": {"allowed": false},
            });
            Ok::<_, Infallible>(Response::new(Body::from(review.to_string().into_bytes())))
        });
        Client::new(service, "default")
    }

    fn question(account: &str, name: Option<&str>) -> Question {
        Question {
            account: ServiceAccount { namespace: "default".into(), name: account.into() },
            verb: "get",
            group: "".into(),
            resource: "secrets".into(),
            namespace: "default".into(),
            name: name.map(Arc::from),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_is_asked_about_so_many_names() -> Result<(), kube::Error> {
        let (client, permissions) = (denying(), Permissions::default());
        let named = |number: usize| question("greedy", Some(&number.to_string()));
        for number in 0..MAX_NAMES + 100 {
            permissions.ask(&client, named(number)).await?;
        }
        assert_eq!(permissions.of(&named(MAX_NAMES - 1)), Permission::Denied);
        assert_eq!(permissions.of(&named(MAX_NAMES)), Permission::TooMany);
        // All objects of a kind, and other accounts.
        assert_eq!(permissions.of(&question("greedy", None)), Permission::Unknown);
        assert_eq!(permissions.of(&question("modest", Some("1"))), Permission::Unknown);

        // What is asked again is bounded, too, and comes to all of them in turn.
        tokio::time::advance(DENIED_FOR).await;
        let first = permissions.due();
        assert_eq!(first.len(), ASKED_AGAIN);
        for question in first.clone() {
            permissions.ask(&client, question).await?;
        }
        let second = permissions.due();
        assert!(second.len() == ASKED_AGAIN && first.iter().all(|asked| !second.contains(asked)));

        // Who stops needing them may ask about others.
        tokio::time::advance(KEPT_FOR).await;
        assert_eq!(permissions.due(), []);
        assert_eq!(permissions.of(&named(MAX_NAMES)), Permission::Unknown);
        Ok(())
    }
}
