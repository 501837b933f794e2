//! Draws histories from seeds. The same seed always leads to the same history.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::step::{ChildRef, Edit, History, Hosts, Propagation, Step, Timed};
use crate::{
    fault::{Fault, RequestClass, WatchTrouble},
    plugin::{
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
const PLURALS: [&str; 6] = ["simulateds", "configmaps", "secrets", "services", "deployments", "widgets"];

/// The history of a seed.
pub fn history(seed: u64) -> History {
    let mut rng = Rng::with_seed(seed);
    let hosts = if rng.u8(0..5) == 0 { Hosts::Elected } else { Hosts::Single };
    let version = one_of(&mut rng, &[Version::First, Version::First, Version::WithoutSecrets, Version::Finalizing]);
    let latency = one_of(&mut rng, &[0, 1, 5, 50]);
    let lag = one_of(&mut rng, &[0, 5, 50, 2_000]);
    let mut drawing = Drawing { rng, hosts, specs: BTreeMap::new(), focus: None };
    let mut steps = vec![Timed { after: 500, step: drawing.apply() }];
    steps.extend((1..STEPS).map(|_| Timed { after: pause(&mut drawing.rng), step: drawing.step() }));
    History { seed, hosts, version, latency, lag, steps }
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
    /// The latest spec of each object.
    specs: BTreeMap<String, Spec>,
    /// The child that was touched last.
    focus: Option<ChildRef>,
}

impl Drawing {
    fn step(&mut self) -> Step {
        let hosts = self.hosts;
        match self.rng.u8(0..100) {
            0..24 => self.apply(),
            24..27 => Step::Touch { object: object(&mut self.rng) },
            27..33 => self.delete(),
            33..54 => self.touch_child(),
            54..59 => Step::Followed { value: (self.rng.u8(0..3) > 0).then(|| self.rng.u8(0..4)) },
            59..63 => Step::Swap { version: one_of(&mut self.rng, &Version::ALL) },
            63 => Step::RemovePlugin,
            64 => Step::RemoveCrd,
            65 => Step::InstallCrd,
            66 => Step::Pause { lasts: one_of(&mut self.rng, &[100, 11_000, 30_000]) },
            67..69 => {
                let refuses = self.rng.bool();
                Step::Admission { kind: one_of(&mut self.rng, &ChildKind::ALL), refuses }
            }
            69..82 => {
                let rng = &mut self.rng;
                Step::Request { class: class(rng, hosts), skip: rng.u16(0..3), fault: fault(rng) }
            }
            82..90 => {
                let rng = &mut self.rng;
                let kind = (rng.u8(0..3) > 0).then(|| one_of(rng, &PLURALS).to_owned());
                Step::Watches { kind, trouble: trouble(rng) }
            }
            90..92 => Step::Compact,
            92..95 => {
                let back_after = one_of(&mut self.rng, &[1, 100, 5_000]);
                Step::Crash { host: host(&mut self.rng, hosts), back_after }
            }
            95 => Step::Restart { host: host(&mut self.rng, hosts) },
            96..98 => {
                let lasts = one_of(&mut self.rng, &[10, 1_000, 20_000]);
                Step::Partition { host: host(&mut self.rng, hosts), lasts }
            }
            _ => Step::Rest,
        }
    }

    fn delete(&mut self) -> Step {
        use Propagation::{Background, Foreground, Orphan};
        let object = object(&mut self.rng);
        Step::Delete { object, propagation: one_of(&mut self.rng, &[Background, Background, Foreground, Orphan]) }
    }

    fn touch_child(&mut self) -> Step {
        let child = self.child();
        match self.rng.u8(0..21) {
            0..8 => {
                let edits = [Edit::Value, Edit::Remove, Edit::ForeignLabel, Edit::PluginLabel, Edit::Owner];
                Step::EditChild { child, edit: one_of(&mut self.rng, &edits) }
            }
            8..14 => Step::DeleteChild { child },
            14..16 => Step::CopyChild { child },
            16..19 => Step::OccupyName { child },
            _ => Step::Adopt { child },
        }
    }

    /// Mostly the child of before, or one that there shall be.
    fn child(&mut self) -> ChildRef {
        if let Some(focus) = self.focus.clone().filter(|_| self.rng.bool()) {
            return focus;
        }
        let object = object(&mut self.rng);
        let wanted = self.specs.get(&object).map(|spec| spec.children.clone()).unwrap_or_default();
        let (kind, name) = match self.rng.choice(&wanted) {
            Some(wanted) if self.rng.u8(0..4) > 0 => (wanted.kind, wanted.name.clone()),
            _ => (kind(&mut self.rng), one_of(&mut self.rng, &CHILDREN).to_owned()),
        };
        let child = ChildRef { object, kind, name };
        self.focus = Some(child.clone());
        child
    }

    /// Another spec, or the latest one with a small change.
    fn apply(&mut self) -> Step {
        let object = object(&mut self.rng);
        let latest = self.specs.get(&object).cloned().filter(|_| self.rng.bool());
        let spec = match latest {
            Some(latest) => self.changed(latest),
            None => spec(&mut self.rng),
        };
        self.specs.insert(object.clone(), spec.clone());
        Step::Apply { object, spec }
    }

    fn changed(&mut self, mut spec: Spec) -> Spec {
        let index = self.rng.usize(0..spec.children.len().max(1));
        match spec.children.get_mut(index) {
            Some(child) if self.rng.bool() => child.value = self.rng.u8(0..8),
            Some(_) => drop(spec.children.remove(index)),
            None => return self::spec(&mut self.rng),
        }
        spec
    }
}

fn host(rng: &mut Rng, hosts: Hosts) -> usize {
    match hosts {
        Hosts::Single => 0,
        Hosts::Elected => rng.usize(0..2),
    }
}

fn object(rng: &mut Rng) -> String {
    one_of(rng, &[OBJECTS[0], OBJECTS[0], OBJECTS[1]]).to_owned()
}

fn kind(rng: &mut Rng) -> ChildKind {
    use ChildKind::{ConfigMap, Deployment, Secret, Service, Widget};
    one_of(rng, &[ConfigMap, ConfigMap, ConfigMap, Secret, Service, Deployment, Widget])
}

fn spec(rng: &mut Rng) -> Spec {
    let mut children: Vec<ChildSpec> = Vec::new();
    for _ in 0..rng.usize(0..4) {
        let (kind, name) = (kind(rng), one_of(rng, &CHILDREN).to_owned());
        if children.iter().all(|child| (child.kind, &child.name) != (kind, &name)) {
            let (value, extra, keep) = (rng.u8(0..8), rng.u8(0..3) == 0, rng.u8(0..10) == 0);
            children.push(ChildSpec { kind, name, value, extra, keep });
        }
    }
    Spec {
        children,
        follows: (rng.u8(0..4) == 0).then(|| "followed".to_owned()),
        awaits: rng.u8(0..4) == 0,
        requeue_after: None,
    }
}

fn class(rng: &mut Rng, hosts: Hosts) -> RequestClass {
    use RequestClass::{Apply, Delete, Discovery, Event, Get, Lease, List, Status, Watch, Write};
    let rare = [Event, Discovery, List, if hosts == Hosts::Elected { Lease } else { Watch }];
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
