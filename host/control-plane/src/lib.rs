//! A real local Kubernetes control plane for `pilothouse dev --local`, tests, benchmarks and the demo: etcd, kube-apiserver,
//! kube-controller-manager, kube-scheduler, and kwok in place of the nodes. No containers, no root, Linux only.
//! It is for one's own machine: a running host never asks for it, and it never guards anything worth stealing
//! (etcd listens without a password on the loopback interface).
//!
//! What a Pod does on the simulated node is told by its annotations: [`EXIT`], [`HOLD`], [`PENDING`], and,
//! once it is deleted, [`SIGTERM`], [`LINGER`], [`LOST`].
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use pilothouse_control_plane::{Assets, ControlPlane, Options, Parts, to_stderr};
//!
//! let assets = Assets::ensure(to_stderr).await?;
//! let cluster = ControlPlane::start(assets, Options::new("/tmp/cluster", Parts::Full)).await?;
//! println!("export KUBECONFIG={}", cluster.kubeconfig_path().display());
//! cluster.stop().await?;
//! # Ok(()) }
//! ```

mod arguments;
mod assets;
mod audit;
mod certificates;
mod control_plane;
mod detached;
mod guard;
mod kubeconfig;
mod layout;
mod leftovers;
mod node;
mod options;
mod part;
mod ports;
mod probe;
mod process;
mod report;
mod running;
pub mod signal;
mod stages;
mod state;
mod users;
mod versions;
mod wait;

pub use assets::Assets;
pub use control_plane::ControlPlane;
pub use detached::{PartStatus, Status, Up, down, status, up};
pub use node::NODE_NAME;
pub use options::Options;
pub use part::{Part, Parts};
pub use ports::{free_port, free_ports};
pub use report::{Report, silent, to_stderr};
pub use stages::{EXIT, HOLD, LINGER, LOST, PENDING, SIGTERM};
pub use users::{ADMIN, RESTRICTED, User};
pub use versions::{ETCD, KUBERNETES, KWOK, NEWER_KUBERNETES};
