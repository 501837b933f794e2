//! Draws histories from seeds. The same seed always leads to the same history.

use std::collections::BTreeMap;

use fastrand::Rng;

use serde_json::{Value, json};

use super::{
    from_schema,
    step::{ChildRef, Edit, History, Hosts, Patched, Propagation, Step, Timed},
};
use crate::{
    api_server::Denial,
    fault::{Fault, RequestClass, WatchTrouble},
    kinds::{self, WidgetVersions},
    plugin::{
        app::{self, App},
        scope::{Place, Scope},
        spec::{ChildKind, ChildSpec, Spec},
        version::Version,
    },
};

/// How many steps a history has.
pub const STEPS: usize = 30;

/// The names of the objects.
const OBJECTS: [&str; 2] = ["red", "blue"];

/// What the names of children end with.
const CHILDREN: [&str; 3] = ["a", "b", "c"];

/// The plurals of the kinds that are watched.
const PLURALS: [&str; 7] = ["simulateds", "configmaps", "secrets", "services", "deployments", "jobs", "widgets"];

/// The versions of the plugin that histories begin with.
const VERSIONS: [Version; 8] = [
    Version::First,
    Version::First,
    Version::First,
    Version::WithoutSecrets,
    Version::Finalizing,
    Version::Plain,
    Version::Ordered,
    Version::Ordered,
];

/// By how many seconds the clock of a host may be ahead.
const AHEAD: [i32; 6] = [0, 0, 7, 3_600, -3_600, 40_000_000];

/// The history of a seed.
pub fn history(seed: u64) -> History {
    let mut rng = Rng::with_seed(seed);
    // Three hosts cost what three histories of one do.
    let hosts = match rng.u8(0..32) {
        0..6 => Hosts::Elected,
        6 => Hosts::Sharing,
        _ => Hosts::Single,
    };
    let scope = if rng.u8(0..5) == 0 { Scope::Cluster } else { Scope::Namespaced };
    let mood = if rng.u8(0..6) == 0 { Mood::Ordinary } else { Mood::Eventful };
    let version = one_of(&mut rng, &VERSIONS);
    let latency = one_of(&mut rng, &[0, 1, 5, 50]);
    let lag = one_of(&mut rng, &[0, 5, 50, 2_000]);
    let ahead = [one_of(&mut rng, &AHEAD), one_of(&mut rng, &AHEAD)];
    // Hosts that share the work need some to share.
    let apps = rng.u8(0..5) == 0 || hosts == Hosts::Sharing;
    let far = far(seed, hosts);
    let mut drawing = Drawing { rng, hosts, scope, apps, specs: BTreeMap::new(), focus: None };
    let mut steps = vec![Timed { after: 500, step: drawing.apply() }];
    steps.extend((1..STEPS).map(|_| {
        let after = pause(&mut drawing.rng);
        let step = match mood {
            Mood::Ordinary => drawing.ordinary_step(),
            Mood::Eventful => drawing.step(),
        };
        Timed { after, step }
    }));
    History { seed, hosts, ahead, scope, version, apps, latency, far, lag, steps }
}

/// In half of the histories whose hosts share the work, one of them is far from the API server. With random numbers of its own, so that
/// all other histories stay what they are.
fn far(seed: u64, hosts: Hosts) -> Option<usize> {
    let mut rng = Rng::with_seed(seed.rotate_left(32));
    (hosts == Hosts::Sharing && rng.bool()).then(|| host(&mut rng, hosts))
}

/// What kind of steps a history has.
#[derive(Clone, Copy)]
enum Mood {
    /// Those of users alone.
    Ordinary,
    /// All.
    Eventful,
}

fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(0..choices.len())]
}

/// Most steps come so close to each other that they meet what the one before began.
fn pause(rng: &mut Rng) -> u32 {
    match rng.u8(0..20) {
        0..8 => rng.u32(0..5),
        8..14 => rng.u32(5..100),
        14..19 => rng.u32(100..3_000),
        _ => rng.u32(3_000..20_000),
    }
}

/// A history that is being drawn. What was touched last is touched again more often than anything else: most defects need several
/// who meet at one place.
struct Drawing {
    rng: Rng,
    hosts: Hosts,
    scope: Scope,
    /// Whether there is the reference plugin.
    apps: bool,
    /// The latest spec of each object.
    specs: BTreeMap<String, Spec>,
    /// The child that was touched last.
    focus: Option<ChildRef>,
}

impl Drawing {
    fn step(&mut self) -> Step {
        match self.rng.u8(0..100) {
            0..49 => self.ordinary_step(),
            49..56 => self.touch_child(),
            56..61 => self.administer(),
            61..67 => self.change_cluster(),
            67..69 => {
                let (refuses, kinds) = (self.rng.bool(), ChildKind::all(self.scope));
                let denial = one_of(&mut self.rng, &Denial::ALL);
                Step::Admission { kind: one_of(&mut self.rng, kinds), refuses, denial }
            }
            69..82 => {
                let (rng, hosts) = (&mut self.rng, self.hosts);
                Step::Request { class: class(rng, hosts), skip: rng.u16(0..3), fault: fault(rng) }
            }
            82..89 => {
                let rng = &mut self.rng;
                let kind = (rng.u8(0..3) > 0).then(|| one_of(rng, &PLURALS).to_owned());
                Step::Watches { kind, trouble: trouble(rng) }
            }
            _ => self.disturb_host(),
        }
    }

    /// What users do every day.
    fn ordinary_step(&mut self) -> Step {
        if self.apps && self.rng.u8(0..5) == 0 {
            return self.app_step();
        }
        match self.rng.u8(0..50) {
            0..22 => self.apply(),
            22..25 => Step::Touch { object: object(&mut self.rng) },
            25..30 => self.delete(),
            30..40 => self.edit_child(),
            40..44 => Step::Followed { value: (self.rng.u8(0..3) > 0).then(|| self.rng.u8(0..4)) },
            44..49 => self.patch(),
            _ => Step::Rest,
        }
    }

    /// What users do with the reference plugin.
    fn app_step(&mut self) -> Step {
        let rng = &mut self.rng;
        match rng.u8(0..10) {
            0..5 => Step::App { app: Some(App { replicas: rng.u8(1..5), image: rng.u8(0..3) }) },
            5 => Step::App { app: None },
            _ => {
                let kind = one_of(rng, &[ChildKind::Deployment, ChildKind::Deployment, ChildKind::Service]);
                let (object, name, place) = (app::OBJECT.to_owned(), String::new(), Place::Home);
                self.edit(ChildRef { object, kind, name, place })
            }
        }
    }

    /// What administrators do with the plugin.
    fn administer(&mut self) -> Step {
        match self.rng.u8(0..5) {
            0 => Step::RemovePlugin,
            _ => Step::Swap { version: one_of(&mut self.rng, &Version::ALL) },
        }
    }

    /// What administrators do with kinds and namespaces.
    fn change_cluster(&mut self) -> Step {
        match self.rng.u8(0..6) {
            0 => Step::RemoveCrd,
            1 => Step::InstallCrd,
            2 | 3 => Step::WidgetVersions { versions: one_of(&mut self.rng, &WidgetVersions::ALL) },
            4 => Step::DeleteNamespace { place: place(&mut self.rng, self.scope) },
            _ => Step::CreateNamespace { place: place(&mut self.rng, self.scope) },
        }
    }

    fn disturb_host(&mut self) -> Step {
        let hosts = self.hosts;
        let host = host(&mut self.rng, hosts);
        match self.rng.u8(0..11) {
            0 => Step::Compact,
            1..4 => Step::Crash { host, back_after: one_of(&mut self.rng, &[1, 100, 5_000]) },
            4 => Step::Restart { host },
            5 | 6 => Step::Partition { host, lasts: one_of(&mut self.rng, &[10, 1_000, 20_000]) },
            7 => Step::Pause { lasts: one_of(&mut self.rng, &[100, 11_000, 30_000]) },
            _ => Step::MoveConnection { host, behind: one_of(&mut self.rng, &[0, 0, 100, 1_000, 10_000]) },
        }
    }

    /// Something that a schema allows, of an object or of a child that has one.
    fn patch(&mut self) -> Step {
        let patch = |field: &str, value: Value| json!({field: value});
        match self.rng.u8(0..5) {
            0..3 => {
                let spec = from_schema::draw(&mut self.rng, &kinds::object_spec(self.scope));
                Step::Patch { of: Patched::Object(object(&mut self.rng)), patch: patch("spec", spec) }
            }
            3 => {
                let mut status = from_schema::draw(&mut self.rng, &kinds::object_status());
                // Where the plugin says null, the value of somebody else stays if the host does not know the schema yet.
                status.as_object_mut().map(|status| status.remove("followed"));
                Step::Patch { of: Patched::Status(object(&mut self.rng)), patch: patch("status", status) }
            }
            _ => {
                let (version, child) = (one_of(&mut self.rng, &["v1", "v1", "v2"]), self.child());
                let kind = if child.kind == ChildKind::ClusterWidget { child.kind } else { ChildKind::Widget };
                let spec = from_schema::draw(&mut self.rng, &kinds::widget_spec(version));
                let of = Patched::Child(ChildRef { kind, ..child }, version.to_owned());
                Step::Patch { of, patch: patch("spec", spec) }
            }
        }
    }

    fn delete(&mut self) -> Step {
        use Propagation::{Background, Foreground, Orphan};
        let object = object(&mut self.rng);
        Step::Delete { object, propagation: one_of(&mut self.rng, &[Background, Background, Foreground, Orphan]) }
    }

    fn edit_child(&mut self) -> Step {
        let child = self.child();
        self.edit(child)
    }

    fn edit(&mut self, child: ChildRef) -> Step {
        match self.rng.u8(0..16) {
            0..8 => {
                let edits = [Edit::Value, Edit::Remove, Edit::ForeignLabel, Edit::PluginLabel, Edit::Owner];
                Step::EditChild { child, edit: one_of(&mut self.rng, &edits) }
            }
            8..14 => Step::DeleteChild { child },
            _ => Step::CopyChild { child },
        }
    }

    fn touch_child(&mut self) -> Step {
        match self.rng.u8(0..10) {
            0..5 => self.edit_child(),
            5..8 => Step::OccupyName { child: self.child() },
            _ => Step::Adopt { child: self.child() },
        }
    }

    /// Mostly the child of before, or one that there shall be.
    fn child(&mut self) -> ChildRef {
        if let Some(focus) = self.focus.clone().filter(|_| self.rng.bool()) {
            return focus;
        }
        let object = object(&mut self.rng);
        let wanted = self.specs.get(&object).map(|spec| spec.children.clone()).unwrap_or_default();
        let scope = self.scope;
        let (kind, name, place) = match self.rng.choice(&wanted) {
            Some(wanted) if self.rng.u8(0..4) > 0 => (wanted.kind, wanted.name.clone(), wanted.place),
            _ => {
                let rng = &mut self.rng;
                (kind(rng, scope), one_of(rng, &CHILDREN).to_owned(), place(rng, scope))
            }
        };
        let child = ChildRef { object, kind, name, place };
        self.focus = Some(child.clone());
        child
    }

    /// Another spec, or the latest one with a small change.
    fn apply(&mut self) -> Step {
        let object = object(&mut self.rng);
        let latest = self.specs.get(&object).cloned().filter(|_| self.rng.bool());
        let spec = match latest {
            Some(latest) => self.changed(latest),
            None => spec(&mut self.rng, self.scope),
        };
        self.specs.insert(object.clone(), spec.clone());
        Step::Apply { object, spec }
    }

    fn changed(&mut self, mut spec: Spec) -> Spec {
        let index = self.rng.usize(0..spec.children.len().max(1));
        let Some(child) = spec.children.get_mut(index) else { return self::spec(&mut self.rng, self.scope) };
        match self.rng.u8(0..6) {
            0..3 => child.value = self.rng.u8(0..8),
            // It moves to the other namespace, where the object has none.
            3 => {
                let mut moved = child.clone();
                moved.place = place(&mut self.rng, self.scope);
                spec.children.remove(index);
                add(&mut spec.children, moved);
            }
            _ => drop(spec.children.remove(index)),
        }
        spec
    }
}

/// Adds a child that is not there yet. The same kind and name in two namespaces are two.
fn add(children: &mut Vec<ChildSpec>, new: ChildSpec) {
    if !children.iter().any(|child| child.is_same(&new)) {
        children.push(new);
    }
}

fn host(rng: &mut Rng, hosts: Hosts) -> usize {
    match hosts {
        Hosts::Single => 0,
        Hosts::Elected => rng.usize(0..2),
        Hosts::Sharing => rng.usize(0..3),
    }
}

fn object(rng: &mut Rng) -> String {
    one_of(rng, &[OBJECTS[0], OBJECTS[0], OBJECTS[1]]).to_owned()
}

fn kind(rng: &mut Rng, scope: Scope) -> ChildKind {
    use ChildKind::{ClusterWidget, ConfigMap, Deployment, Job, Secret, Service, Widget};
    match scope {
        Scope::Namespaced => one_of(rng, &[ConfigMap, ConfigMap, ConfigMap, Secret, Service, Deployment, Job, Widget]),
        Scope::Cluster => one_of(rng, &[ConfigMap, ConfigMap, Secret, Service, Deployment, Job, Widget, ClusterWidget]),
    }
}

fn place(rng: &mut Rng, scope: Scope) -> Place {
    match scope {
        Scope::Namespaced => Place::Home,
        Scope::Cluster => one_of(rng, &Place::ALL),
    }
}

fn spec(rng: &mut Rng, scope: Scope) -> Spec {
    let mut children: Vec<ChildSpec> = Vec::new();
    for _ in 0..rng.usize(0..4) {
        let (kind, name, place) = (kind(rng, scope), one_of(rng, &CHILDREN).to_owned(), place(rng, scope));
        let (value, extra, keep) = (rng.u8(0..8), rng.u8(0..3) == 0, rng.u8(0..10) == 0);
        let child = ChildSpec { kind, name, place, value, extra, keep };
        let twin = (scope == Scope::Cluster && rng.u8(0..4) == 0).then(|| ChildSpec {
            place: other(place),
            value: rng.u8(0..8),
            ..child.clone()
        });
        add(&mut children, child);
        twin.into_iter().for_each(|twin| add(&mut children, twin));
    }
    Spec {
        children,
        follows: (rng.u8(0..4) == 0).then(|| "followed".to_owned()),
        awaits: rng.u8(0..4) == 0,
        requeue_after: None,
    }
}

fn other(place: Place) -> Place {
    match place {
        Place::Home => Place::Away,
        Place::Away => Place::Home,
    }
}

fn class(rng: &mut Rng, hosts: Hosts) -> RequestClass {
    use RequestClass::{Apply, Delete, Discovery, Event, Get, Lease, List, Status, Watch, Write};
    let rare = [Event, Discovery, List, if hosts == Hosts::Single { Watch } else { Lease }];
    if rng.u8(0..5) == 0 { one_of(rng, &rare) } else { one_of(rng, &[Write, Write, Apply, Delete, Status, Get, Watch]) }
}

fn fault(rng: &mut Rng) -> Fault {
    let back = one_of(rng, &[1, 100, 3_000]);
    match rng.u8(0..20) {
        0..6 => Fault::Refused(one_of(rng, &[409, 422, 429, 500, 503, 504])),
        6..8 => Fault::Lost,
        8..11 => Fault::AnswerLost,
        11 => Fault::Silent,
        12 => Fault::AnswerSilent,
        13 => Fault::Late(rng.u32(1..3_000)),
        14..16 => Fault::AnswerLate(rng.u32(1..3_000)),
        16..18 => Fault::CrashBefore(back),
        _ => Fault::CrashAfter(back),
    }
}

fn trouble(rng: &mut Rng) -> WatchTrouble {
    match rng.u8(0..12) {
        0..4 => WatchTrouble::Cut,
        4 => WatchTrouble::Break,
        5..7 => WatchTrouble::Stall,
        7 => WatchTrouble::Expire,
        8..11 => WatchTrouble::Lag(one_of(rng, &[0, 50, 500, 5_000])),
        _ => WatchTrouble::Replay(rng.u16(1..20)),
    }
}
