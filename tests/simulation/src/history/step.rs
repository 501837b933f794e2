//! The steps of a history: what users, controllers, administrators, the network and the machines of the hosts do. Values only; they
//! are written to files and read from them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    api_server::Denial,
    fault::{Fault, RequestClass, WatchTrouble},
    kinds::WidgetVersions,
    plugin::{
        app::App,
        scope::{Place, Scope},
        spec::{ChildKind, Spec},
        version::Version,
    },
};

/// A child of an object, by its kind and what its name has after the object's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildRef {
    /// The name of the object.
    pub object: String,
    /// The kind of the child.
    pub kind: ChildKind,
    /// What its name has after the object's name and a hyphen; empty if it has the object's name.
    pub name: String,
    /// Its namespace, if the object has none.
    #[serde(default, skip_serializing_if = "Place::is_home")]
    pub place: Place,
}

/// What a patch is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Patched {
    /// The object with this name.
    Object(String),
    /// The status of the object with this name.
    Status(String),
    /// A child, through this version of its kind.
    Child(ChildRef, String),
}

/// What happens to what belongs to a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Propagation {
    /// It is deleted afterwards.
    Background,
    /// It is deleted before.
    Foreground,
    /// It stays, without an owner.
    Orphan,
}

/// A change of a child by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edit {
    /// A field that the plugin sets has another value.
    Value,
    /// A field that the plugin sets is removed.
    Remove,
    /// A label of somebody else is added.
    ForeignLabel,
    /// The label by which the host watches children is removed.
    PluginLabel,
    /// The owner reference is removed.
    Owner,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// A user creates an object, or gives it another spec.
    Apply {
        /// Its name.
        object: String,
        /// Its spec.
        spec: Spec,
    },
    /// A user sets an annotation of an object.
    Touch {
        /// Its name.
        object: String,
    },
    /// A user deletes an object.
    Delete {
        /// Its name.
        object: String,
        /// What happens to its children.
        propagation: Propagation,
    },
    /// Somebody changes a child.
    EditChild {
        /// The child.
        child: ChildRef,
        /// How.
        edit: Edit,
    },
    /// Somebody deletes a child.
    DeleteChild {
        /// The child.
        child: ChildRef,
    },
    /// Somebody copies a child, labels and annotations included, but not its owner.
    CopyChild {
        /// The child.
        child: ChildRef,
    },
    /// Somebody creates an object with the name of a child.
    OccupyName {
        /// The child.
        child: ChildRef,
    },
    /// A user lets an object adopt what has the name of a child.
    Adopt {
        /// The child.
        child: ChildRef,
    },
    /// Somebody patches something with what was drawn from its schema.
    Patch {
        /// What.
        of: Patched,
        /// The patch, as JSON merge patches are.
        patch: Value,
    },
    /// Somebody sets the value of the ConfigMap that objects follow, or deletes it.
    Followed {
        /// Its value; none to delete it.
        value: Option<u8>,
    },
    /// Somebody creates the object of the reference plugin, gives it another spec, or deletes it.
    App {
        /// What it asks for; none to delete it.
        app: Option<App>,
    },
    /// Another version of the plugin is loaded by all hosts.
    Swap {
        /// The version.
        version: Version,
    },
    /// The plugin is removed from all hosts. The end of the history loads it again.
    RemovePlugin,
    /// The CRD of the kind `Widget` is deleted, and with it all Widgets.
    RemoveCrd,
    /// The CRD of the kind `Widget` is created.
    InstallCrd,
    /// The kind `Widget` has other versions from now on.
    WidgetVersions {
        /// Which.
        versions: WidgetVersions,
    },
    /// A namespace is deleted with all that is in it.
    DeleteNamespace {
        /// Which.
        place: Place,
    },
    /// A namespace is created.
    CreateNamespace {
        /// Which.
        place: Place,
    },
    /// Admission refuses what hosts write of this kind, from now on or no more.
    Admission {
        /// The kind.
        kind: ChildKind,
        /// Whether it refuses.
        refuses: bool,
        /// How.
        #[serde(default)]
        denial: Denial,
    },
    /// A request that a host makes later meets a fault.
    Request {
        /// Which requests count.
        class: RequestClass,
        /// How many of them go through before.
        skip: u16,
        /// What happens.
        fault: Fault,
    },
    /// Something happens to watches.
    Watches {
        /// Those of this kind; of all kinds if none.
        kind: Option<String>,
        /// What.
        trouble: WatchTrouble,
    },
    /// The API server forgets what happened until now.
    Compact,
    /// A host dies, and another one comes up in its place.
    Crash {
        /// Which.
        host: usize,
        /// After how many milliseconds it is back.
        back_after: u32,
    },
    /// A host is stopped in the regular way, and another one comes up in its place.
    Restart {
        /// Which.
        host: usize,
    },
    /// A host's connection to the API server is cut: no request gets an answer.
    Partition {
        /// Which.
        host: usize,
        /// For how many milliseconds.
        lasts: u32,
    },
    /// A host's connection goes to another API server, whose watches are this far behind. What is not read from a cache is up to date.
    MoveConnection {
        /// Which host.
        host: usize,
        /// How many milliseconds behind.
        behind: u32,
    },
    /// Everything stands still, as if the machine was suspended. Then it goes on, and all clocks have gone on.
    Pause {
        /// For how many milliseconds.
        lasts: u32,
    },
    /// Nothing, and everybody is given time until nothing changes any more. The properties of rest must hold then.
    Rest,
}

impl Step {
    /// Whether it is what users do every day: nothing fails, and nobody is in the way of the hosts.
    pub fn is_ordinary(&self) -> bool {
        use Step::{App, Apply, CopyChild, Delete, DeleteChild, EditChild, Followed, Patch, Rest, Touch};
        matches!(
            self,
            Apply { .. }
                | Touch { .. }
                | Delete { .. }
                | EditChild { .. }
                | DeleteChild { .. }
                | CopyChild { .. }
                | Followed { .. }
                | App { .. }
                | Patch { .. }
                | Rest
        )
    }
}

/// A step and the time that passes before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timed {
    /// Milliseconds that pass before it.
    pub after: u32,
    /// What happens.
    pub step: Step,
}

/// The hosts of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hosts {
    /// One without an election.
    Single,
    /// Two, of which one leads.
    Elected,
    /// Three that share the work of the plugins.
    Sharing,
}

/// A whole history. Together with the code it decides everything that happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Decides delays and the random numbers of the hosts.
    pub seed: u64,
    /// The hosts.
    pub hosts: Hosts,
    /// By how many seconds the clock of each host is ahead.
    #[serde(default = "ahead")]
    pub ahead: [i32; 2],
    /// Where the objects live.
    #[serde(default)]
    pub scope: Scope,
    /// The first version of the plugin.
    pub version: Version,
    /// Whether the hosts have the reference plugin `app-service` as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apps: bool,
    /// How long a request and its answer take at most, in milliseconds each.
    pub latency: u32,
    /// The host that is far from the API server: its requests and their answers take up to [`FAR`] milliseconds longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<usize>,
    /// How much later a watch event arrives at most, in milliseconds.
    pub lag: u32,
    /// What happens.
    pub steps: Vec<Timed>,
}

/// How much longer a request of a host that is far away takes at most, and its answer, in milliseconds each. Long enough for another
/// host to start, and to take up work, between two requests of this one.
pub const FAR: u32 = 200;

/// How the clocks differ where a history does not say it.
fn ahead() -> [i32; 2] {
    [0, 3_600]
}

impl History {
    /// How long a request and its answer take at most, of whichever host, in milliseconds each.
    pub fn longest_latency(&self) -> u32 {
        self.latency + self.far.map_or(0, |_| FAR)
    }

    /// Whether nothing fails in it.
    pub fn is_ordinary(&self) -> bool {
        self.steps.iter().all(|timed| timed.step.is_ordinary())
    }
}
