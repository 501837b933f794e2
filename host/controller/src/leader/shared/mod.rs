//! Several hosts share the work: each works for some plugins, and one failing hands all that it had to the others.
//!
//! # Flow
//!
//! Each host renews a Lease of its own ([`own_lease`]). What one host at a time does is a post, with a Lease that names who has it and is
//! written only when that changes. A host looks at the Leases of the hosts ([`super::hosts`]), and where they tell that something has changed,
//! at those of the posts; it takes what nobody has, asks for what others have too many of, and gives up what is asked of it ([`desk`], by the
//! plan in [`plan`]). What it may do is in [`Posts`], where the host reads it. One of the hosts leads, by an [`Election`]: it does what is no
//! plugin's.
//!
//! # Guarantees
//!
//! - A Lease of a post counts only as long as that of its holder is renewed. Who takes a dead host's posts has deleted its Lease before, in the
//!   version that it had not renewed for its whole duration.
//! - A post is given up once nothing of it is under way and its fence is closed.
//! - At rest, the Leases of posts cost no request, however many there are.

mod desk;
mod own_lease;
mod plan;
mod post;
mod posts;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, ResourceExt};

use self::{desk::Desk, own_lease::OwnLease};
pub use self::{
    desk::Worker,
    post::Post,
    posts::{Permit, Posts},
};
use super::{
    election::{Dependencies, Election, LeaseLost, Settings, SettingsError},
    hosts::Hosts,
};
use crate::{clock::Clock, labels::HOST_LEASE, metrics::Metrics, observable::Observable};

/// The participation of one host in sharing the work.
pub struct Sharing {
    api: Api<Lease>,
    settings: Settings,
    posts: Arc<Posts>,
    metrics: Arc<Metrics>,
    clock: Clock,
    election: Election,
}

impl Sharing {
    /// Prepares it; nothing happens before [`Sharing::work`]. `client` is as for [`Election::new`]. The fence in `surroundings` is that of all
    /// writes of the host, and that of the posts.
    ///
    /// # Errors
    /// [`SettingsError`] if the durations do not fit together.
    pub fn new(
        client: Client,
        settings: Settings,
        posts: Arc<Posts>,
        surroundings: Dependencies,
    ) -> Result<Self, SettingsError> {
        let (metrics, clock) = (surroundings.metrics.clone(), surroundings.clock.clone());
        let of_lead = Dependencies { fence: posts.lead().clone(), ..surroundings };
        let api = Api::namespaced(client.clone(), &settings.namespace);
        let election = Election::of_sharing(client, settings.clone(), of_lead)?;
        Ok(Self { api, settings, posts, metrics, clock, election })
    }

    /// Runs `work` until it ends after `stop`. Meanwhile this host takes part: `worker` stops what is to go to another one. In the end, the
    /// others may take all that it had.
    ///
    /// # Errors
    /// [`LeaseLost`]; `work` was dropped in that case.
    pub async fn work<'a, W>(
        self,
        stop: BoxFuture<'a, ()>,
        work: impl FnOnce(BoxFuture<'a, ()>) -> W,
        worker: Arc<dyn Worker>,
    ) -> Result<(), LeaseLost>
    where
        W: Future<Output = ()>,
    {
        let state = Arc::<Observable<_>>::default();
        let mut own = OwnLease {
            api: self.api.clone(),
            settings: self.settings.clone(),
            fence: self.posts.host.clone(),
            clock: self.clock.clone(),
            state: state.clone(),
            observed: None,
            told: Default::default(),
        };
        let desk = Desk {
            api: self.api.clone(),
            settings: self.settings.clone(),
            posts: self.posts.clone(),
            worker,
            metrics: self.metrics,
            clock: self.clock,
            state,
            hosts: Hosts::default(),
            leases: BTreeMap::new(),
            free_since: BTreeMap::new(),
            looked_at: None,
            leaving: BTreeSet::new(),
            last_logged: String::new(),
        };
        let ended = Arc::new(Observable::new(false));
        let until_ended = until(ended.clone()).boxed();
        let mut leading = self.election.lead(until_ended, |stop| stop).boxed();
        let lease = format!("{}/{}", self.settings.namespace, own.name());
        let outcome = {
            let part = take_part(&mut own, desk).boxed();
            tokio::select! {
                biased;
                () = work(stop) => Ok(()),
                why = part => Err(LeaseLost { lease, why }),
                led = &mut leading => led,
            }
        };
        self.posts.close_all();
        outcome?;
        own.end().await;
        ended.set(true);
        leading.await
    }
}

/// Waits until a value is true.
async fn until(value: Arc<Observable<bool>>) {
    value.wait_for(|value| *value).await;
}

/// Renews the Lease of this host, and takes and gives up posts, for as long as possible. Returns why that ended.
async fn take_part(own: &mut OwnLease, desk: Desk) -> String {
    until_shared(&own.api, &own.settings).await;
    let renewed = own.begin().await;
    tokio::select! {
        biased;
        why = own.renew(renewed) => why,
        why = desk.follow() => why,
    }
}

/// Waits while one host does all the work: it ends first.
async fn until_shared(api: &Api<Lease>, settings: &Settings) {
    let mut is_told = false;
    loop {
        let lead = api.get_opt(&settings.name).await;
        match lead {
            Ok(Some(lead)) if !lead.labels().contains_key(HOST_LEASE) => {
                let holder = lead.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
                if !std::mem::replace(&mut is_told, true) {
                    tracing::info!(lease = settings.name, "standing by: '{holder}' works for all plugins");
                }
            }
            Ok(_) => return,
            Err(error) => tracing::debug!("failed to read the Lease '{}': {error}", settings.name),
        }
        tokio::time::sleep(settings.retry_period).await;
    }
}
