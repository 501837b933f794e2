//! One host's connection to the API server, and whether the host is alive. What a dead host sends goes nowhere, and it hears nothing.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use pilothouse_controller::observable::Observable;

use crate::host_id::HostId;

/// A connection. Clones share it.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Whose it is.
    pub id: HostId,
    dead: Arc<AtomicBool>,
    partitioned: Arc<Observable<bool>>,
}

impl Connection {
    /// A connection of a host that starts.
    pub fn new(id: HostId) -> Self {
        Self { id, dead: Arc::default(), partitioned: Arc::default() }
    }

    /// The host dies.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    /// Whether the host is alive.
    pub fn is_alive(&self) -> bool {
        !self.dead.load(Ordering::Relaxed)
    }

    /// Cuts the host off from the API server, or connects it again.
    pub fn partition(&self, cut_off: bool) {
        self.partitioned.set(cut_off);
    }

    /// Whether the host is cut off.
    pub fn is_partitioned(&self) -> bool {
        self.partitioned.get()
    }

    /// Waits until the host is connected. Never ends for a dead host.
    pub async fn until_connected(&self) {
        self.partitioned.wait_for(|cut_off| !cut_off).await;
        if !self.is_alive() {
            std::future::pending::<()>().await;
        }
    }
}
