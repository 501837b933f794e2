//! Which posts this host wants, has, or gives up: what the host and the sharing of the work tell each other. Makes no request and decides
//! nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::post::Post;
use crate::{client::fence::Fence, observable::Observable};

/// Whose turn it is to do what a post is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    /// Another host's, or nobody's.
    #[default]
    NotOurs,
    /// This host's.
    Ours,
    /// This host's for the last writes.
    GivingUp,
}

/// One post.
#[derive(Debug)]
struct Entry {
    turn: Arc<Observable<Turn>>,
    fence: Fence,
    /// The plugins of this host that want it, with what is to be known of them.
    plugins: BTreeMap<String, Wanted>,
}

#[derive(Clone, Debug, Default)]
struct Wanted {
    said_by: Option<Arc<str>>,
    is_ready: bool,
}

/// What this host wants a post for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// The plugin.
    pub(super) plugin: String,
    /// The `Plugin` that says it; none if none does.
    pub(super) said_by: Option<Arc<str>>,
    /// Whether it could work at once.
    pub(super) is_ready: bool,
}

/// A post that another host has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elsewhere {
    /// The `Plugin` that it works for.
    pub(super) said_by: Option<String>,
}

/// A post with the fence of what is written for it.
#[derive(Clone, Debug)]
pub struct Permit {
    /// The post.
    pub post: Post,
    /// Open while this host has the post.
    pub fence: Fence,
}

/// The posts, as this host knows them.
#[derive(Debug)]
pub struct Posts {
    /// The name of the Lease of the host that leads.
    lease: String,
    /// Open while this host may hold any.
    pub(super) host: Fence,
    /// Open while this host leads: for what is no plugin's.
    pub(super) lead: Fence,
    entries: Mutex<BTreeMap<Post, Entry>>,
    /// By the names of their Leases.
    elsewhere: Mutex<Option<BTreeMap<String, Elsewhere>>>,
    /// How often what this host wants has changed.
    pub(super) wishes: Observable<u64>,
}

impl Posts {
    /// Without any. `host` is the fence of all writes of this host, `lease` the name of the Lease of the host that leads.
    pub fn new(host: Fence, lease: &str) -> Arc<Self> {
        let lead = Fence::closed();
        let (entries, elsewhere, wishes) = (Mutex::default(), Mutex::default(), Observable::new(0));
        Arc::new(Self { lease: lease.to_owned(), host, lead, entries, elsewhere, wishes })
    }

    /// The fence of the host that leads.
    pub fn lead(&self) -> &Fence {
        &self.lead
    }

    /// The fence of the writes for a post.
    pub fn permit(&self, post: &Post) -> Permit {
        self.entry(post, |entry| Permit { post: post.clone(), fence: entry.fence.clone() })
    }

    /// The name of the Lease of a post.
    pub fn lease(&self, post: &Post) -> String {
        post.lease(&self.lease)
    }

    /// A plugin of this host wants a post.
    pub fn want(&self, post: &Post, plugin: &str, said_by: Option<Arc<str>>) {
        let wanted = Wanted { said_by, is_ready: false };
        self.entry(post, |entry| entry.plugins.insert(plugin.to_owned(), wanted));
        self.wishes.update(|times| *times += 1);
    }

    /// A plugin could work at once.
    pub fn is_ready(&self, post: &Post, plugin: &str) {
        self.entry(post, |entry| entry.plugins.entry(plugin.to_owned()).or_default().is_ready = true);
        self.wishes.update(|times| *times += 1);
    }

    /// A plugin of this host wants a post no more. It goes once nothing of it is under way.
    pub fn forgo(&self, post: &Post, plugin: &str) {
        self.entry(post, |entry| entry.plugins.remove(plugin));
        self.wishes.update(|times| *times += 1);
    }

    /// Whether any plugin of this host wants a post.
    pub fn is_wanted(&self, post: &Post) -> bool {
        self.entry(post, |entry| !entry.plugins.is_empty())
    }

    /// Waits until this host has a post.
    pub async fn until_ours(&self, post: &Post) {
        let (turn, fence) = self.entry(post, |entry| (entry.turn.clone(), entry.fence.clone()));
        while !(turn.get() == Turn::Ours && fence.is_open()) {
            turn.wait_for(|turn| *turn == Turn::Ours).await;
            fence.until_open().await;
        }
    }

    /// Whether this host has a post, and does not give it up.
    pub fn is_ours(&self, post: &Post) -> bool {
        self.entry(post, |entry| entry.turn.get() == Turn::Ours && entry.fence.is_open())
    }

    /// Whether this host leads, and nobody has a post.
    pub fn leads_without(&self, post: &Post) -> bool {
        let lease = self.lease(post);
        self.leads_and(|elsewhere| !elsewhere.contains_key(&lease))
    }

    /// Whether this host leads, and nobody works for a `Plugin`.
    pub fn leads_without_said_by(&self, plugin: &str) -> bool {
        self.leads_and(|elsewhere| !elsewhere.values().any(|it| it.said_by.as_deref() == Some(plugin)))
    }

    /// As long as this host has not seen who has what, somebody may.
    fn leads_and(&self, is_nowhere: impl FnOnce(&BTreeMap<String, Elsewhere>) -> bool) -> bool {
        let is_nowhere = self.lock_elsewhere().as_ref().is_some_and(is_nowhere);
        is_nowhere && self.lead.is_open() && self.host.is_open()
    }

    /// This host has a post from now on.
    pub(super) fn begin(&self, post: &Post) {
        self.entry(post, |entry| {
            entry.fence.open_within();
            entry.turn.set(Turn::Ours);
        });
    }

    /// This host begins nothing more for a post. What is under way may be written.
    pub(super) fn give_up(&self, post: &Post) {
        self.entry(post, |entry| entry.turn.set(Turn::GivingUp));
    }

    /// This host writes nothing more for a post.
    pub(super) fn close(&self, post: &Post) {
        self.entry(post, |entry| {
            entry.fence.close();
            entry.turn.set(Turn::NotOurs);
        });
    }

    /// This host writes nothing more.
    pub(super) fn close_all(&self) {
        self.host.close();
        let held: Vec<_> = self.held().into_iter().collect();
        held.iter().for_each(|post| self.close(post));
    }

    /// The posts that other hosts have, by the names of their Leases.
    pub(super) fn set_elsewhere(&self, elsewhere: BTreeMap<String, Elsewhere>) {
        *self.lock_elsewhere() = Some(elsewhere);
    }

    /// The posts that this host has, with those that it gives up.
    pub(super) fn held(&self) -> BTreeSet<Post> {
        let entries = self.lock();
        entries.iter().filter(|(_, entry)| entry.turn.get() != Turn::NotOurs).map(|(post, _)| post.clone()).collect()
    }

    /// What this host wants posts for. Of two plugins that want one, it is for the one that is ready.
    pub(super) fn wanted(&self) -> BTreeMap<Post, Claim> {
        let entries = self.lock();
        let claim = |entry: &Entry| {
            let (plugin, wanted) = entry.plugins.iter().max_by_key(|(_, wanted)| wanted.is_ready)?;
            let Wanted { said_by, is_ready } = wanted.clone();
            Some(Claim { plugin: plugin.clone(), said_by, is_ready })
        };
        entries.iter().filter_map(|(post, entry)| Some((post.clone(), claim(entry)?))).collect()
    }

    /// The entry of a post. It stays: the fence is in the hands of clients.
    fn entry<T>(&self, post: &Post, read: impl FnOnce(&mut Entry) -> T) -> T {
        let mut entries = self.lock();
        let new = || Entry { turn: Arc::default(), fence: self.host.within(), plugins: BTreeMap::new() };
        read(entries.entry(post.clone()).or_insert_with(new))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Post, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_elsewhere(&self) -> MutexGuard<'_, Option<BTreeMap<String, Elsewhere>>> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    fn post() -> Post {
        Post::of_kind("Web", "example.com")
    }

    fn posts() -> Arc<Posts> {
        let host = Fence::closed();
        host.open_until(Instant::now() + Duration::from_secs(10));
        Posts::new(host, "pilothouse")
    }

    #[tokio::test]
    async fn a_post_that_is_given_up_begins_nothing_and_lets_the_last_writes_through() {
        let (posts, post) = (posts(), post());
        let fence = posts.permit(&post).fence;
        assert!(!fence.is_open() && !posts.is_ours(&post));
        posts.begin(&post);
        posts.until_ours(&post).await;
        assert!(fence.is_open() && posts.is_ours(&post));
        posts.give_up(&post);
        assert!(fence.is_open() && !posts.is_ours(&post) && posts.held().contains(&post));
        posts.close(&post);
        assert!(!fence.is_open() && posts.held().is_empty());
        posts.begin(&post);
        assert!(fence.is_open(), "clients keep the fence that they have");
        posts.close_all();
        assert!(!fence.is_open() && posts.held().is_empty());
    }

    #[test]
    fn the_host_that_leads_is_there_for_what_nobody_has() {
        let (posts, post) = (posts(), post());
        assert!(!posts.leads_without(&post), "it does not lead");
        posts.lead.open_within();
        assert!(!posts.leads_without(&post), "it has not looked yet");
        posts.set_elsewhere(BTreeMap::new());
        assert!(posts.leads_without(&post) && posts.leads_without_said_by("web"));
        let other = Elsewhere { said_by: Some("web".to_owned()) };
        posts.set_elsewhere([(posts.lease(&post), other)].into());
        assert!(!posts.leads_without(&post) && !posts.leads_without_said_by("web"));
        assert!(posts.leads_without(&Post::of_decorator("web")) && posts.leads_without_said_by("other"));
    }

    #[tokio::test]
    async fn a_post_is_wanted_as_long_as_some_plugin_wants_it() {
        let (posts, post) = (posts(), post());
        posts.want(&post, "gone", None);
        posts.want(&post, "new", Some("new".into()));
        posts.is_ready(&post, "new");
        let claim = Claim { plugin: "new".to_owned(), said_by: Some("new".into()), is_ready: true };
        assert_eq!(posts.wanted().get(&post), Some(&claim));
        posts.forgo(&post, "new");
        assert_eq!(posts.wanted().get(&post).map(|claim| claim.plugin.as_str()), Some("gone"));
        posts.forgo(&post, "gone");
        assert!(posts.wanted().is_empty());
    }
}
