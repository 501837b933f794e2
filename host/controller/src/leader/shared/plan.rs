//! Who has which post next: what a host takes, what it asks others for, and what it gives them. Every host decides for itself, from what all
//! of them see. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
};

/// Who has what. Posts are named by their Leases, hosts by their identities.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// The hosts that are alive, with the number of posts that each could have.
    pub(super) hosts: BTreeMap<String, usize>,
    /// The posts, with the hosts that have them.
    pub(super) posts: BTreeMap<String, Option<String>>,
}

/// How a free post is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// By the host that has the fewest.
    Ordinary,
    /// By any host: nobody has taken it for a while.
    Overdue,
}

impl Table {
    /// How many posts each host has.
    fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts: BTreeMap<_, _> = self.hosts.keys().map(|host| (host.as_str(), 0)).collect();
        for host in self.posts.values().flatten() {
            *counts.entry(host).or_default() += 1;
        }
        counts
    }

    fn is_free(&self, post: &str) -> bool {
        self.posts.get(post).is_none_or(Option::is_none)
    }

    /// The free ones of these that a host takes. Free posts go to the hosts with the fewest, one by one in their order, so that hosts that
    /// see the same take different ones.
    pub(super) fn takes<'a>(&'a self, me: &'a str, wanted: &BTreeMap<String, Wish>) -> Vec<String> {
        let mut counts = self.counts();
        let mut takes = Vec::new();
        for (post, wish) in wanted.iter().filter(|(post, _)| self.is_free(post)) {
            let has_room = |host: &&String| counts.get(host.as_str()) < self.hosts.get(host.as_str());
            let fewest = self.hosts.keys().filter(has_room).min_by_key(|host| counts.get(host.as_str()));
            let next = fewest.filter(|_| *wish == Wish::Ordinary).map_or(me, String::as_str);
            if next == me {
                takes.push(post.clone());
            }
            *counts.entry(next).or_default() += 1;
        }
        takes
    }

    /// The posts of hosts with more that a host asks for, of those that it could have at once.
    pub(super) fn asks<'a>(&'a self, me: &'a str, ready: &BTreeSet<String>) -> Vec<String> {
        let mut counts = self.counts();
        let holder = |post: &String| self.posts.get(post).and_then(Option::as_deref).filter(|holder| *holder != me);
        let mut open: BTreeMap<&str, BTreeSet<(u64, &str)>> = BTreeMap::new();
        for post in ready {
            if let Some(holder) = holder(post) {
                // Two hosts that come at once should ask for different ones.
                open.entry(holder).or_default().insert((hash(me, post), post));
            }
        }
        let mut asks = Vec::new();
        loop {
            let own = counts.get(me).copied().unwrap_or_default();
            let count = |holder: &str| counts.get(holder).copied().unwrap_or_default();
            let most = open
                .iter()
                .filter(|(_, posts)| !posts.is_empty())
                .map(|(holder, _)| *holder)
                .max_by_key(|it| count(it));
            let Some(most) = most.filter(|most| count(most) >= own + 2) else { return asks };
            asks.extend(open.get_mut(most).and_then(BTreeSet::pop_first).map(|(_, post)| post.to_owned()));
            *counts.entry(most).or_default() -= 1;
            *counts.entry(me).or_default() += 1;
        }
    }

    /// The posts that a host gives up for hosts that ask for them and have fewer.
    pub(super) fn gives<'a>(&'a self, me: &'a str, asked: &'a BTreeMap<String, Vec<String>>) -> Vec<String> {
        let mut counts = self.counts();
        let mut left: BTreeSet<_> =
            self.posts.iter().filter(|(_, holder)| holder.as_deref() == Some(me)).map(|(post, _)| post).collect();
        let mut gives = Vec::new();
        loop {
            let own = counts.get(me).copied().unwrap_or_default();
            let wish = |host: &String| asked.get(host)?.iter().find(|post| left.contains(post));
            let count = |host: &str| counts.get(host).copied().unwrap_or_default();
            let asking = asked.keys().filter(|host| self.hosts.contains_key(*host) && own >= count(host) + 2);
            let next = asking.filter_map(|host| Some((host, wish(host)?))).min_by_key(|(host, _)| count(host));
            let Some((host, post)) = next else { return gives };
            left.remove(post);
            gives.push(post.clone());
            *counts.entry(me).or_default() -= 1;
            *counts.entry(host).or_default() += 1;
        }
    }
}

fn hash(host: &str, post: &str) -> u64 {
    // `DefaultHasher::new` has fixed keys.
    let mut hasher = DefaultHasher::new();
    (host, post).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts that all want all posts, and act one after the other until nothing changes any more. Returns how often a post went from one
    /// to another.
    fn settle(table: &mut Table) -> usize {
        let (mut moves, mut rounds) = (0, 0);
        loop {
            rounds += 1;
            assert!(rounds < 100, "it does not settle: {:?}", table.counts());
            let before = table.posts.clone();
            let hosts: Vec<_> = table.hosts.keys().cloned().collect();
            let all: BTreeMap<_, _> = table.posts.keys().map(|post| (post.clone(), Wish::Ordinary)).collect();
            let seen = table.clone();
            for host in &hosts {
                for post in seen.takes(host, &all) {
                    assert!(table.is_free(&post), "two hosts that see the same take {post}");
                    table.posts.insert(post, Some(host.clone()));
                }
            }
            let names = all.into_keys().collect();
            let seen = table.clone();
            let asked: BTreeMap<_, _> = hosts.iter().map(|host| (host.clone(), seen.asks(host, &names))).collect();
            if seen.posts.values().all(Option::is_some) {
                for host in &hosts {
                    for post in seen.gives(host, &asked) {
                        assert_eq!(table.posts.insert(post, None), Some(Some(host.clone())), "it gives what it has");
                        moves += 1;
                    }
                }
            }
            if table.posts == before {
                return moves;
            }
        }
    }

    fn table(hosts: &[&str], posts: usize) -> Table {
        let hosts = hosts.iter().map(|host| ((*host).to_owned(), posts)).collect();
        Table { hosts, posts: (0..posts).map(|post| (format!("post-{post:03}"), None)).collect() }
    }

    fn spread(table: &Table) -> (usize, usize) {
        let counts = table.counts();
        (counts.values().min().copied().unwrap_or_default(), counts.values().max().copied().unwrap_or_default())
    }

    #[test]
    fn counts_even_out_with_as_few_moves_as_that_takes() {
        let mut table = table(&["a", "b", "c"], 100);
        assert_eq!(settle(&mut table), 0, "what is free moves nobody");
        assert_eq!(spread(&table), (33, 34));
        table.hosts.insert("d".to_owned(), 100);
        assert_eq!(settle(&mut table), 25, "the new one gets its share, and nothing else moves");
        assert_eq!(spread(&table), (25, 25));
        assert_eq!(settle(&mut table), 0, "what is even stays");
        table.hosts.remove("a");
        table.posts.values_mut().filter(|holder| holder.as_deref() == Some("a")).for_each(|holder| *holder = None);
        assert_eq!(settle(&mut table), 0);
        assert_eq!(spread(&table), (33, 34));
    }

    #[test]
    fn two_hosts_that_come_at_once_get_their_shares() {
        let mut table = table(&["a"], 100);
        settle(&mut table);
        table.hosts.extend(["b", "c"].map(|host| (host.to_owned(), 100)));
        let moves = settle(&mut table);
        assert_eq!(spread(&table), (33, 34));
        assert!((66..=67).contains(&moves), "{moves}");
    }

    #[test]
    fn a_host_that_is_not_ready_gets_nothing_and_what_is_overdue_goes_to_anybody() {
        let mut table = table(&["a", "b"], 4);
        table.hosts.insert("a".to_owned(), 0);
        let wanted = |wish| table.posts.keys().map(|post| (post.clone(), wish)).collect::<BTreeMap<_, _>>();
        assert!(table.takes("a", &wanted(Wish::Ordinary)).is_empty());
        assert_eq!(table.takes("b", &wanted(Wish::Ordinary)).len(), 4);
        assert_eq!(table.takes("a", &wanted(Wish::Overdue)).len(), 4);
    }

    #[test]
    fn nobody_gives_to_one_that_would_have_more_or_is_not_alive() {
        let mut table = table(&["a", "b"], 3);
        for (post, host) in [("post-000", "a"), ("post-001", "a"), ("post-002", "b")] {
            table.posts.insert(post.to_owned(), Some(host.to_owned()));
        }
        let asks = |host: &str| BTreeMap::from([(host.to_owned(), vec!["post-000".to_owned(), "post-002".to_owned()])]);
        assert!(table.gives("a", &asks("b")).is_empty(), "two and one are even");
        assert!(table.gives("a", &asks("c")).is_empty(), "it is not there");
        table.hosts.insert("c".to_owned(), 3);
        assert_eq!(table.gives("a", &asks("c")), ["post-000"], "only what it has");
    }
}
