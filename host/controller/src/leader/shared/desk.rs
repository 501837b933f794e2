//! Takes, asks for and gives up posts, as the plan says (`plan.rs`). Looks at the hosts as often as they renew their Leases, and at the posts
//! only when something may have changed. Renews nothing, and stops no plugin itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::{
    FutureExt,
    future::BoxFuture,
    stream::{self, FuturesUnordered, StreamExt},
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
};
use tokio::time::Instant;

use super::{
    plan::{Table, Wish},
    post::Post,
    posts::{Claim, Elsewhere, Posts},
};
use crate::{
    clock::Clock,
    errors::chain,
    labels::{HOST_LEASE, PLUGIN, PLUGIN_LEASE, PLUGIN_OBJECT},
    leader::{
        election::{SETTLE, Settings},
        hosts::{HostState, Hosts, delete_exactly},
        lease::{self, ObservedLease},
        names,
    },
    metrics::Metrics,
    observable::Observable,
};

/// How often a host looks as long as something is about to change.
const SOON: Duration = Duration::from_millis(500);

/// From when on anybody takes a post that nobody has: one who could work at once, and one whose plugin is not ready.
const OVERDUE: Duration = Duration::from_secs(3);
const OVERDUE_UNREADY: Duration = Duration::from_secs(8);

/// From when on a Lease is deleted that nobody has.
const ABANDONED: Duration = Duration::from_secs(600);

/// How often the posts are looked at although nothing seems to have changed.
const ANYWAY: Duration = Duration::from_secs(60);

/// How many Leases are written at once.
const AT_ONCE: usize = 8;

/// Stops what this host does for a post.
pub trait Worker: Send + Sync {
    /// Resolves once no call and no write for the post is under way. The plugins stand by from then on.
    fn stand_by(self: Arc<Self>, post: Post) -> BoxFuture<'static, ()>;
}

/// Takes and gives up posts.
pub(super) struct Desk {
    pub(super) api: Api<Lease>,
    pub(super) settings: Settings,
    pub(super) posts: Arc<Posts>,
    pub(super) worker: Arc<dyn Worker>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: Clock,
    /// What this host says of itself.
    pub(super) state: Arc<Observable<HostState>>,
    pub(super) hosts: Hosts,
    /// The Leases of posts, as they were seen last.
    pub(super) leases: BTreeMap<String, Lease>,
    /// Since when nobody has them.
    pub(super) free_since: BTreeMap<String, Instant>,
    /// What was seen when the posts were looked at last, and when; none if they have to be looked at again.
    pub(super) looked_at: Option<(Signs, Instant)>,
    /// The posts that are to be given up.
    pub(super) leaving: BTreeSet<Post>,
    /// What was told of a failing look last.
    pub(super) last_logged: String,
}

/// What tells that the posts have to be looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Signs {
    hosts: BTreeMap<String, u64>,
    wishes: u64,
}

/// How a look ended.
enum Looked {
    /// Nothing is about to change.
    Settled,
    /// Something is.
    Unsettled,
    /// Another host does all the work. This one must not go on.
    TakenOver,
}

/// What this host wants, by the names of the Leases.
type Wanted = BTreeMap<String, (Post, Claim)>;

impl Desk {
    /// Follows hosts and posts, until another host does all the work.
    pub(super) async fn follow(mut self) -> String {
        let mut leaving = FuturesUnordered::new();
        loop {
            let wishes = self.posts.wishes.get();
            let period = match self.look().await {
                Ok(Looked::TakenOver) => return "another host works for all plugins".to_owned(),
                Ok(Looked::Settled) => self.settings.retry_period,
                Ok(Looked::Unsettled) => SOON.min(self.settings.retry_period),
                Err(error) => {
                    self.log(format!("cannot see who has which Lease, trying again: {}", chain(&error)));
                    self.settings.retry_period
                }
            };
            for post in self.leaving.iter().filter(|post| self.posts.is_ours(post)) {
                self.posts.give_up(post);
                leaving.push(left(self.worker.clone(), post.clone()));
            }
            let now = Instant::now();
            let end = self.hosts.next_end(&self.settings.identity, now);
            let due = end.map_or(now + period, |end| end.min(now + period));
            tokio::select! {
                biased;
                Some(post) = leaving.next(), if !leaving.is_empty() => self.leave(&post).await,
                () = self.posts.wishes.wait_for(|times| *times != wishes) => {}
                () = tokio::time::sleep_until(due) => {}
            }
        }
    }

    /// Looks who is there and who has what, and takes what is this host's turn.
    async fn look(&mut self) -> kube::Result<Looked> {
        self.hosts.look(&self.api, &self.settings.name).await?;
        if !self.hosts.is_shared() {
            return self.look_who_leads().await;
        }
        let (now, me) = (Instant::now(), self.settings.identity.clone());
        let mut alive = self.hosts.alive();
        self.metrics.election.hosts(alive.len());
        if !alive.contains_key(&me) || !self.posts.host.is_open() {
            return Ok(Looked::Unsettled);
        }
        let signs = Signs {
            hosts: alive.iter().map(|(host, state)| (host.clone(), state.changes)).collect(),
            wishes: self.posts.wishes.get(),
        };
        let is_known = |(known, at): &(Signs, Instant)| *known == signs && now < *at + ANYWAY;
        if !self.looked_at.as_ref().is_some_and(is_known) {
            self.read_posts().await?;
            if self.has_unknown_holder(&alive) {
                // It may have come in between. A host creates its own Lease first: whoever has none in a newer list is not alive.
                self.hosts.look(&self.api, &self.settings.name).await?;
                alive = self.hosts.alive();
                if !self.hosts.is_shared() || !alive.contains_key(&me) {
                    return Ok(Looked::Unsettled);
                }
            }
        }
        let wanted = self.wanted();
        let mut table = self.table(&alive, &wanted);
        self.keep(&table, &wanted).await;
        let wishes = self.wishes(&table, &wanted, now);
        let takes = table.takes(&me, &wishes);
        self.take(&takes, &wanted, &mut table).await;
        let is_free = |name: &String| table.posts.get(name).is_none_or(Option::is_none);
        let has_free = wanted.keys().any(is_free);
        let ready: BTreeSet<_> =
            wanted.iter().filter(|(_, (_, claim))| claim.is_ready).map(|(name, _)| name.clone()).collect();
        let asks = if has_free { Vec::new() } else { table.asks(&me, &ready) };
        // One step after the other: who is about to have more is not to be seen before everything is in somebody's hands.
        if !has_free && self.leaving.is_empty() {
            let asked = alive.iter().filter(|(host, _)| **host != me);
            let asked = asked.map(|(host, state)| (host.clone(), state.asks_for.clone())).collect();
            let gives = table.gives(&me, &asked);
            self.leaving.extend(gives.iter().filter_map(|name| Some(wanted.get(name)?.0.clone())));
        }
        self.tell(ready.len(), asks.clone());
        self.bury_abandoned(&table, &wanted, now).await?;
        let is_settled = !has_free && asks.is_empty() && self.leaving.is_empty();
        self.looked_at = is_settled.then_some((signs, now));
        Ok(if is_settled { Looked::Settled } else { Looked::Unsettled })
    }

    /// No host says that the work is shared. Either none leads yet, or one does all of it.
    async fn look_who_leads(&mut self) -> kube::Result<Looked> {
        let lead = self.api.get_opt(&self.settings.name).await?;
        let is_of_one = lead.is_some_and(|lead| !lead.labels().contains_key(HOST_LEASE));
        self.looked_at = None;
        Ok(if is_of_one { Looked::TakenOver } else { Looked::Unsettled })
    }

    async fn read_posts(&mut self) -> kube::Result<()> {
        let selected = format!("{PLUGIN_LEASE}={}", names::label(&self.settings.name));
        let listed = self.api.list(&ListParams::default().labels(&selected)).await?;
        self.leases = listed.items.into_iter().map(|lease| (lease.name_any(), lease)).collect();
        Ok(())
    }

    fn has_unknown_holder(&self, alive: &BTreeMap<String, HostState>) -> bool {
        self.leases.values().map(holder).any(|holder| !holder.is_empty() && !alive.contains_key(holder))
    }

    fn wanted(&self) -> Wanted {
        let wanted = self.posts.wanted().into_iter();
        wanted.map(|(post, claim)| (post.lease(&self.settings.name), (post, claim))).collect()
    }

    /// Who has what. Whoever is not alive has nothing.
    fn table(&mut self, alive: &BTreeMap<String, HostState>, wanted: &Wanted) -> Table {
        let holder = |lease: &Lease| Some(holder(lease).to_owned()).filter(|holder| alive.contains_key(holder));
        let mut posts: BTreeMap<_, _> = self.leases.iter().map(|(name, lease)| (name.clone(), holder(lease))).collect();
        let is_elsewhere = |name: &String| {
            posts.get(name).is_some_and(|it| it.as_ref().is_some_and(|it| *it != self.settings.identity))
        };
        let elsewhere = self.leases.iter().filter(|(name, _)| is_elsewhere(name));
        let of = |lease: &Lease| Elsewhere { said_by: lease.annotations().get(PLUGIN_OBJECT).cloned() };
        self.posts.set_elsewhere(elsewhere.map(|(name, lease)| (name.clone(), of(lease))).collect());
        for name in wanted.keys() {
            posts.entry(name.clone()).or_default();
        }
        Table { hosts: alive.iter().map(|(host, state)| (host.clone(), state.ready)).collect(), posts }
    }

    /// Has this host work for what the Leases say that it has, and for nothing else.
    async fn keep(&mut self, table: &Table, wanted: &Wanted) {
        let me = &self.settings.identity;
        let is_mine = |name: &String| table.posts.get(name).is_some_and(|holder| holder.as_ref() == Some(me));
        let held = self.posts.held();
        for post in held.iter().filter(|post| !self.leaving.contains(*post)) {
            let name = post.lease(&self.settings.name);
            if !is_mine(&name) {
                tracing::error!(lease = name, "somebody else has taken the Lease, so this host works for it no more");
                // Before anything else: the other one may write already.
                self.posts.close(post);
                self.metrics.election.stopped_leading(&name);
                self.worker.clone().stand_by(post.clone()).await;
            }
        }
        // The answer to a write of the Lease was lost.
        for (name, (post, _)) in wanted.iter().filter(|(name, _)| is_mine(name)) {
            if !held.contains(post) {
                self.begin(name, post);
            }
        }
        self.leaving.extend(held.into_iter().filter(|post| !wanted.contains_key(&post.lease(&self.settings.name))));
    }

    /// How this host wants what nobody has.
    fn wishes(&mut self, table: &Table, wanted: &Wanted, now: Instant) -> BTreeMap<String, Wish> {
        let free = table.posts.iter().filter(|(_, holder)| holder.is_none()).map(|(name, _)| name.clone());
        let free: BTreeSet<_> = free.collect();
        self.free_since.retain(|name, _| free.contains(name));
        for name in &free {
            self.free_since.entry(name.clone()).or_insert(now);
        }
        let wish = |(name, (_, claim)): (&String, &(Post, Claim))| {
            let free_for = now.duration_since(*self.free_since.get(name)?);
            let wish = match claim.is_ready {
                true if free_for < OVERDUE => Wish::Ordinary,
                false if free_for < OVERDUE_UNREADY => return None,
                _ => Wish::Overdue,
            };
            Some((name.clone(), wish))
        };
        wanted.iter().filter(|(_, (post, _))| !self.leaving.contains(post)).filter_map(wish).collect()
    }

    /// Takes posts, and has this host work for those that it got.
    async fn take(&mut self, takes: &[String], wanted: &Wanted, table: &mut Table) {
        let claims = takes.iter().filter_map(|name| Some((name, wanted.get(name)?)));
        let claims: Vec<_> = claims.map(|(name, (post, claim))| self.claim(name, post, claim).boxed()).collect();
        let taken: Vec<_> =
            stream::iter(claims).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
        if taken.iter().any(|(_, lease)| has_been_taken_before(lease)) {
            // So that the last writes of the host before it have reached the caches.
            tokio::time::sleep(SETTLE.min(self.settings.retry_period)).await;
        }
        for (post, lease) in taken {
            let name = lease.name_any();
            self.begin(&name, &post);
            table.posts.insert(name.clone(), Some(self.settings.identity.clone()));
            self.free_since.remove(&name);
            self.leases.insert(name, lease);
        }
    }

    /// Tries to write this host into a Lease. None if another one was faster, or if that failed: the next look tries again.
    async fn claim(&self, name: &str, post: &Post, claim: &Claim) -> Option<(Post, Lease)> {
        let (me, now) = (&self.settings.identity, self.clock.now());
        let marked = |mut lease: Lease| {
            let labels = lease.metadata.labels.get_or_insert_default();
            labels.insert(PLUGIN_LEASE.to_owned(), names::label(&self.settings.name));
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(PLUGIN.to_owned(), claim.plugin.clone());
            match &claim.said_by {
                Some(said_by) => drop(annotations.insert(PLUGIN_OBJECT.to_owned(), said_by.to_string())),
                None => drop(annotations.remove(PLUGIN_OBJECT)),
            }
            lease
        };
        let parameters = PostParams::default();
        let written = match self.leases.get(name) {
            Some(known) => {
                let known = ObservedLease::observe(None, known.clone(), Instant::now());
                self.api.replace(name, &parameters, &marked(known.taken_by(me, now))).await
            }
            None => self.api.create(&parameters, &marked(lease::new_taken(name, me, now))).await,
        };
        match written {
            Ok(lease) => Some((post.clone(), lease)),
            Err(kube::Error::Api(status)) if [404, 409].contains(&status.code) => None,
            Err(error) => {
                tracing::warn!(lease = name, "failed to take the Lease: {}", chain(&error));
                None
            }
        }
    }

    /// This host works for a post from now on.
    fn begin(&self, name: &str, post: &Post) {
        tracing::info!(lease = name, "this host works for it from now on");
        self.posts.begin(post);
        self.metrics.election.started_leading(name);
        self.state.update(|state| state.changes += 1);
    }

    /// Nothing of a post is under way any more: another host may have it.
    async fn leave(&mut self, post: &Post) {
        // Before the Lease: nothing is written afterwards.
        self.posts.close(post);
        let name = post.lease(&self.settings.name);
        self.metrics.election.stopped_leading(&name);
        self.leaving.remove(post);
        let is_wanted = self.posts.is_wanted(post);
        let left = match self.leases.get(&name) {
            None => Ok(()),
            Some(lease) if is_wanted => self.release(&name, lease).await,
            Some(lease) => delete_exactly(&self.api, lease).await,
        };
        match left {
            Ok(()) => tracing::info!(lease = name, "this host works for it no more"),
            // If it is still this host's, the next look finds it.
            Err(error) => tracing::warn!(lease = name, "failed to give the Lease up: {}", chain(&error)),
        }
        if !is_wanted {
            self.metrics.election.forget_lease(&name);
        }
        self.looked_at = None;
        self.state.update(|state| state.changes += 1);
        if let Err(error) = self.read_posts().await {
            tracing::debug!("failed to look who has which Lease: {}", chain(&error));
        }
    }

    async fn release(&self, name: &str, lease: &Lease) -> kube::Result<()> {
        let known = ObservedLease::observe(None, lease.clone(), Instant::now());
        let released = known.given_up(self.clock.now());
        self.api.replace(name, &PostParams::default(), &released).await.map(drop)
    }

    /// Tells the others of this host.
    fn tell(&self, ready: usize, asks_for: Vec<String>) {
        let before = self.state.get();
        let state = HostState { ready, asks_for, changes: before.changes };
        self.state.set(state);
    }

    /// The host that leads deletes Leases that nobody has wanted for a long time.
    async fn bury_abandoned(&mut self, table: &Table, wanted: &Wanted, now: Instant) -> kube::Result<()> {
        if !self.posts.lead.is_open() {
            return Ok(());
        }
        let is_old = |name: &String| self.free_since.get(name).is_some_and(|since| now >= *since + ABANDONED);
        let is_abandoned = |name: &&String| is_old(name) && !wanted.contains_key(*name);
        for name in table.posts.keys().filter(is_abandoned) {
            if let Some(lease) = self.leases.get(name) {
                delete_exactly(&self.api, lease).await?;
            }
        }
        Ok(())
    }

    /// Logs unless it is the same as before.
    fn log(&mut self, message: String) {
        if message != self.last_logged {
            tracing::warn!("{message}");
            self.last_logged = message;
        }
    }
}

/// A post once it is left.
async fn left(worker: Arc<dyn Worker>, post: Post) -> Post {
    worker.stand_by(post.clone()).await;
    post
}

fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}

fn has_been_taken_before(lease: &Lease) -> bool {
    lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or_default() > 0
}
