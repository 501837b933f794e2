//! Whose rights a plugin works with: an account of its own, by impersonation. Grants nothing; the API server decides.
//!
//! # Flow
//!
//! A plugin may have an [`Account`]. For each object that gives a [`ServiceAccount`]: one of the host's namespace, or one of the object's
//! own. [`Identities::client`] makes requests in its name: children are written and read with it. [`Permissions`] knows what it may look
//! up, although the caches are the host's.
//!
//! # Guarantees
//!
//! - The API server judges each write of a child by the rights of the account, not of the host.
//! - A lookup that the account may not make is denied, whatever the host's caches hold.
//!
//! # Caveats
//!
//! - What an account may look up is asked again after [`ALLOWED_FOR`] and [`DENIED_FOR`]: a right that is taken away counts for that long. An account
//!   that is asked about many objects by name is asked again more slowly.
//! - Objects, their status, finalizers and Events are the host's, and are written with its own rights.

mod account;
mod acting_as;
mod permissions;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::{
    future::ready,
    stream::{self, StreamExt, TryStreamExt},
};
use kube::Client;
use tokio::time::sleep;

pub use self::{
    account::{Account, AccountNamespace, ServiceAccount},
    permissions::{ALLOWED_FOR, DENIED_FOR, MAX_NAMES, Permission, Permissions, Question},
};
use crate::{
    client::fenced,
    errors::chain,
    leader::{Permit, Post},
};

/// How often it is looked for permissions that are due.
const PERIOD: Duration = Duration::from_secs(5);

/// How many questions are asked at once. They share the connection with all other requests.
const ASKED_AT_ONCE: usize = 16;

/// How many clients are kept. One more, and they are made anew as they are needed.
const MAX_CLIENTS: usize = 1_000;

/// Nobody can tell what an account may look up.
#[derive(Debug, thiserror::Error)]
#[error("failed to ask the API server what {account} may look up: {}", chain(error))]
pub struct AskError {
    /// The account.
    pub account: ServiceAccount,
    /// The error of the request.
    pub error: kube::Error,
}

/// What tells clients apart: for which post they write, and as which account they act.
type ClientKey = (Option<Post>, Option<ServiceAccount>);

/// Clients that act as accounts, and what those may look up.
pub struct Identities {
    host: Client,
    clients: Mutex<BTreeMap<ClientKey, Client>>,
    /// What accounts may look up.
    pub permissions: Permissions,
}

impl Identities {
    /// The identities behind the host's own client.
    pub fn new(host: Client) -> Self {
        Self { host, clients: Mutex::default(), permissions: Permissions::default() }
    }

    /// A client that acts as an account; without one, the host's own.
    pub fn client(&self, account: Option<&ServiceAccount>) -> Client {
        self.client_within(None, account)
    }

    /// The same, but it writes only while this permits it.
    pub fn client_within(&self, permit: Option<&Permit>, account: Option<&ServiceAccount>) -> Client {
        if permit.is_none() && account.is_none() {
            return self.host.clone();
        }
        let key = (permit.map(|permit| permit.post.clone()), account.cloned());
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(&key) {
            clients.clear();
        }
        let make = || {
            let host = permit.map_or_else(|| self.host.clone(), |permit| fenced(&self.host, &permit.fence));
            account.map_or_else(|| host.clone(), |account| acting_as::acting_as(&host, account))
        };
        clients.entry(key).or_insert_with(make).clone()
    }

    /// Asks the API server questions about permissions, each in the name of its account.
    ///
    /// # Errors
    /// [`AskError`] of the first that has no answer.
    pub async fn ask(&self, questions: Vec<Question>) -> Result<(), AskError> {
        let asked = questions.into_iter().map(|question| async move {
            let account = question.account.clone();
            let asked = self.permissions.ask(&self.client(Some(&account)), question).await;
            asked.map_err(|error| AskError { account, error })
        });
        stream::iter(asked).buffer_unordered(ASKED_AT_ONCE).try_for_each(|_| ready(Ok(()))).await
    }

    /// Waits until the permissions of some accounts have changed. Asks the API server again about all that are due.
    pub async fn until_changed(&self) -> BTreeSet<ServiceAccount> {
        loop {
            self.permissions.until_some().await;
            sleep(PERIOD).await;
            let asked = self.permissions.due().into_iter().map(|question| async {
                let account = question.account.clone();
                match self.permissions.ask(&self.client(Some(&account)), question).await {
                    Ok(has_changed) => has_changed.then_some(account),
                    Err(error) => {
                        // What was known before counts on, and the question stays due.
                        tracing::debug!("failed to ask what {account} may look up: {}", chain(&error));
                        None
                    }
                }
            });
            let answers = stream::iter(asked).buffer_unordered(ASKED_AT_ONCE);
            let changed: BTreeSet<_> = answers.filter_map(ready).collect().await;
            if !changed.is_empty() {
                return changed;
            }
        }
    }
}
