//! Looks at each change whether `Ready` is true of what is there. The property itself is in `properties/ready.rs`.

use std::{sync::Arc, time::Duration};

use tokio::{select, time::Instant};

use crate::{
    cluster::Cluster,
    plugin::{scope::Scope, version::Version},
    properties::{
        ready::{WrongSince, note, overdue},
        snapshot::Snapshot,
        writes::Writes,
    },
};

/// What is looked at.
pub(super) struct Watched {
    /// The cluster.
    pub(super) cluster: Arc<Cluster>,
    /// Gets to know the violation.
    pub(super) writes: Arc<Writes>,
    /// Where the objects live.
    pub(super) scope: Scope,
    /// How long a child may be wrong while its object is ready.
    pub(super) patience: Duration,
}

impl Watched {
    /// Looks until there is no version of the plugin to ask any more, or something is wrong for too long.
    pub(super) async fn look(self, version: impl Fn() -> Option<Version>) {
        let mut since = WrongSince::new();
        while let Some(version) = version() {
            let revision = self.cluster.judged().get();
            note(&mut since, &Snapshot::of(&self.cluster, self.scope), version);
            if let Some(violation) = overdue(&since, self.patience) {
                return self.writes.violated(violation);
            }
            let due = since.values().min().map(|first| *first + self.patience + Duration::from_millis(1));
            let until_due = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due.max(Instant::now())).await,
                    None => std::future::pending().await,
                }
            };
            select! {
                biased;
                () = self.cluster.judged().wait_for(|newest| *newest != revision) => {}
                () = until_due => {}
            }
        }
    }
}
