//! What a caller may choose about a control plane. Plain values; nothing is checked or created here.

use crate::{Parts, Report, User, to_stderr};
use std::{path::PathBuf, sync::Arc};

/// How a control plane is to be.
#[derive(Clone)]
pub struct Options {
    /// Its own directory: data, keys, logs, kubeconfigs. Made if missing; one control plane per directory.
    pub dir: PathBuf,
    /// Which parts run.
    pub parts: Parts,
    /// Whether every write request is logged (see `ControlPlane::audit_log_path`): its arrival before anything else is
    /// done with it, its answer after its effect can be seen, and before it is sent.
    pub audit_log: bool,
    /// More arguments for kube-apiserver, after our own.
    pub api_args: Vec<String>,
    /// The controllers that kube-controller-manager runs; none for those that it runs by default. The one that makes
    /// service accounts is needed.
    pub controllers: Option<&'static [&'static str]>,
    /// Users besides [`ADMIN`](crate::ADMIN) and [`RESTRICTED`](crate::RESTRICTED), each with a kubeconfig.
    pub users: Vec<User>,
    /// Where progress messages go; standard error unless said otherwise.
    pub report: Report,
}

impl Options {
    /// `parts` in `dir`, with no audit log, no more arguments and no more users.
    pub fn new(dir: impl Into<PathBuf>, parts: Parts) -> Self {
        Options {
            dir: dir.into(),
            parts,
            audit_log: false,
            api_args: Vec::new(),
            controllers: None,
            users: Vec::new(),
            report: Arc::new(to_stderr),
        }
    }

    /// Logs every write request.
    pub fn audit_log(mut self) -> Self {
        self.audit_log = true;
        self
    }

    /// Sends progress messages to `report`.
    pub fn report(mut self, report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.report = Arc::new(report);
        self
    }

    /// Adds a user.
    pub fn user(mut self, name: &str, groups: &[&str]) -> Self {
        self.users.push(User::new(name, groups));
        self
    }

    /// Runs these controllers and no others.
    pub fn controllers(mut self, names: &'static [&'static str]) -> Self {
        self.controllers = Some(names);
        self
    }

    /// Adds one argument for kube-apiserver.
    pub fn api_arg(mut self, argument: impl Into<String>) -> Self {
        self.api_args.push(argument.into());
        self
    }
}
