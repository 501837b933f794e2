//! Which kind of workload serves a model: a StatefulSet of Pods, or a LeaderWorkerSet of groups of Pods on several nodes. Only one of them
//! exists: where the other one is still there, it goes first, for both need the same GPUs.

use crate::api::ModelDeployment;
use crate::group_names;
use crate::live::{Live, LiveGroups, LiveStatefulSet};
use llm_serving::child::Standing;
use llm_serving::clients::Clients;
use llm_serving::conditions::{AWAITING_REMOVAL, Obstacle};
use llm_serving::own_pods::Between;
use llm_serving::server::Server;
use llm_serving::surroundings::MissingKind;
use pilothouse_pods::name::{MAX_STATEFUL_SET, dns_label, hashed_dns_label};
use pilothouse_sdk::{Error, Kind, Request};
use serde_json::{Value, json};

/// How the name of a LeaderWorkerSet ends.
const GROUPS: &str = "-mn";

/// The longest part of it before that: the set makes a StatefulSet for each group, whose name has a dash and the group's number more.
const MAX_BEFORE_GROUPS: usize = MAX_STATEFUL_SET - 6 - GROUPS.len();

/// The workload that serves, as the cluster has it.
#[derive(Debug)]
pub struct Placement {
    /// What is there of it.
    pub live: Live,
    /// What there is under its name.
    pub standing: Standing,
    /// What else there is, which has to go before it can come.
    pub other: Option<Other>,
    /// What of somebody else's has a name that it needs.
    pub taken: Option<Obstacle>,
    /// Its kind, if the cluster does not have it.
    pub missing: Option<MissingKind>,
}

/// The workload of the other kind.
#[derive(Debug)]
pub struct Other {
    /// What is there of it.
    pub live: Live,
    /// Its kind.
    kind: WorkloadKind,
}

/// A kind of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// A StatefulSet of Pods.
    StatefulSet,
    /// A LeaderWorkerSet of groups of Pods.
    LeaderWorkerSet,
}

impl WorkloadKind {
    /// The one of a server.
    pub fn of(server: &Server<'_>) -> Self {
        if server.is_multi_node() { Self::LeaderWorkerSet } else { Self::StatefulSet }
    }

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::StatefulSet => Self::LeaderWorkerSet,
            Self::LeaderWorkerSet => Self::StatefulSet,
        }
    }

    /// Its API version and kind.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::StatefulSet => (LiveStatefulSet::API_VERSION, LiveStatefulSet::KIND),
            Self::LeaderWorkerSet => (LiveGroups::API_VERSION, LiveGroups::KIND),
        }
    }

    /// The name of such a workload of an object.
    pub fn name(self, workload: &str) -> String {
        match self {
            Self::StatefulSet => workload.to_owned(),
            Self::LeaderWorkerSet => groups_name(workload),
        }
    }

    /// What stands between such a workload and its Pods.
    pub fn between(self, workload: &str) -> Between {
        match self {
            Self::StatefulSet => Between::Nothing,
            Self::LeaderWorkerSet => Between::StatefulSets(groups_name(workload)),
        }
    }

    /// Which of its Pods clients talk to.
    pub fn clients(self) -> Clients {
        match self {
            Self::StatefulSet => Clients::All,
            Self::LeaderWorkerSet => Clients::Leaders,
        }
    }

    fn look(self, request: &Request<ModelDeployment>, workload: &str) -> Result<(Option<Live>, Standing), Error> {
        let name = self.name(workload);
        Ok(match self {
            Self::StatefulSet => {
                let standing = Standing::of::<LiveStatefulSet>(request, &name);
                (request.child::<LiveStatefulSet>(&name)?.map(Live::from), standing)
            }
            Self::LeaderWorkerSet => {
                let standing = Standing::of::<LiveGroups>(request, &name);
                (request.child::<LiveGroups>(&name)?.map(Live::from), standing)
            }
        })
    }
}

impl Placement {
    /// The workload that runs: the other one as long as it is there.
    pub fn running(&self) -> &Live {
        self.other.as_ref().map_or(&self.live, |other| &other.live)
    }

    /// The kind of the workload that runs, for a server.
    pub fn running_kind(&self, server: &Server<'_>) -> WorkloadKind {
        self.other.as_ref().map_or_else(|| WorkloadKind::of(server), |other| other.kind)
    }

    /// Whether the workload may be there. One that is there stays, whoever has got its names since: its Pods may have found each other.
    pub fn may_come(&self) -> bool {
        self.other.is_none() && (self.taken.is_none() || self.standing == Standing::Ours)
    }

    /// Why the workload is not there yet, if another one has to go first, or somebody else has a name that it needs.
    pub fn waits(&self, server: &Server<'_>) -> Option<Obstacle> {
        if self.may_come() {
            return None;
        }
        let Some(other) = self.other.as_ref().map(|other| other.kind) else { return self.taken.clone() };
        let described = |kind: WorkloadKind| format!("{} '{}'", kind.names().1, kind.name(server.workload()));
        let message = format!(
            "the {} goes before the {} comes, for both need the same GPUs; if it stays, see its finalizers and its Pods",
            described(other),
            described(other.other())
        );
        Some(Obstacle { reason: AWAITING_REMOVAL, message })
    }
}

/// The name of an object's workload on one node, and of what belongs to it. It is none that the controller of LeaderWorkerSets gives the
/// StatefulSets of another object's groups: that one tries for ever to make them of what has the name, and says nothing of it.
pub fn workload_name(object: &str) -> String {
    let make = if is_like_groups(object) { hashed_dns_label } else { dns_label };
    make(object, MAX_STATEFUL_SET)
}

/// Whether a name is like that of a LeaderWorkerSet, or of the workers of one of its groups.
fn is_like_groups(name: &str) -> bool {
    let before_number = name.trim_end_matches(|c: char| c.is_ascii_digit());
    before_number.strip_suffix('-').unwrap_or(name).ends_with(GROUPS)
}

/// The name of an object's LeaderWorkerSet. It is not that of the object: under its own name it makes a StatefulSet and a Service.
pub fn groups_name(workload: &str) -> String {
    format!("{}{GROUPS}", dns_label(workload, MAX_BEFORE_GROUPS))
}

/// What an autoscaler scales.
pub fn scale_target(server: &Server<'_>) -> Value {
    let kind = WorkloadKind::of(server);
    let (api_version, name) = kind.names();
    json!({ "apiVersion": api_version, "kind": name, "name": kind.name(server.workload()) })
}

/// The workload that serves.
///
/// # Errors
/// A lookup fails, or an object cannot be read.
pub fn look(request: &Request<ModelDeployment>, server: &Server<'_>) -> Result<Placement, Error> {
    let kind = WorkloadKind::of(server);
    let (live, standing) = kind.look(request, server.workload())?;
    let (other, _) = kind.other().look(request, server.workload())?;
    Ok(Placement {
        live: live.unwrap_or_default(),
        standing,
        other: other.map(|live| Other { live, kind: kind.other() }),
        taken: match kind {
            WorkloadKind::StatefulSet => None,
            WorkloadKind::LeaderWorkerSet => group_names::taken(&kind.name(server.workload()))?,
        },
        missing: missing(server)?,
    })
}

/// The workload that runs of an object of which no server can be made.
///
/// # Errors
/// An object cannot be read.
pub fn running(request: &Request<ModelDeployment>, workload: &str) -> Result<Live, Error> {
    let (stateful_set, _) = WorkloadKind::StatefulSet.look(request, workload)?;
    let (groups, _) = WorkloadKind::LeaderWorkerSet.look(request, workload)?;
    Ok(stateful_set.or(groups).unwrap_or_default())
}

/// The kind LeaderWorkerSet, if a server needs it and the cluster does not have it.
fn missing(server: &Server<'_>) -> Result<Option<MissingKind>, Error> {
    if !server.is_multi_node() {
        return Ok(None);
    }
    MissingKind::of::<LiveGroups>("tensorParallelSize", &groups_name(server.workload()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_workload_has_the_name_of_the_groups_of_another_one() {
        let long = "a".repeat(80);
        for name in ["chat", "chat-mn", "chat-mn-0", "a.b", long.as_str(), &long[..45], &long[..43]] {
            let groups = groups_name(&workload_name(name));
            assert!(groups.len() <= MAX_STATEFUL_SET - 6 && groups.ends_with(GROUPS), "{groups}");
            for taken in [groups.clone(), format!("{groups}-0"), format!("{groups}-12")] {
                assert_ne!(workload_name(&taken), taken);
            }
        }
        for name in ["chat", "mn", "chat-mn-x", "chat-0", "mn-0", "chat-mn0", "chatmn"] {
            assert_eq!(workload_name(name), name);
        }
    }
}
