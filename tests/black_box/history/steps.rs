//! The steps of random histories: changes of an object and its children by users and others. All values are valid, and the host
//! must undo every change of a child.

use std::fmt;

use fastrand::Rng;
use serde_json::{Value, json};

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// The object is applied with this spec.
    Spec(Value),
    /// An annotation of the object is set.
    Touch,
    /// An annotation of a child is set.
    TouchChild(Child),
    /// A child is changed by hand.
    Patch(Child, Value),
    /// A child is deleted by hand.
    DeleteChild(Child),
    /// The object is deleted, and created again when it is gone.
    Recreate,
    /// The history waits until the host has reported on the present generation of the object.
    Rest,
}

/// A child: its kind, and the suffix of its name after the name of the object.
#[derive(Clone, Copy, Debug)]
pub struct Child {
    /// Its kind.
    pub kind: &'static str,
    suffix: &'static str,
}

/// The steps in the life of one object.
#[derive(Clone)]
pub struct History {
    /// The object's kind.
    pub kind: &'static str,
    /// The object's name.
    pub name: String,
    /// Its first spec.
    pub first: Value,
    /// The steps after its creation.
    pub steps: Vec<Step>,
}

const CONFIG_MAPS: [Child; 2] = [Child { kind: "ConfigMap", suffix: "a" }, Child { kind: "ConfigMap", suffix: "b" }];
const SECRETS: [Child; 2] = [Child { kind: "Secret", suffix: "a" }, Child { kind: "Secret", suffix: "b" }];
const SERVICE: Child = Child { kind: "Service", suffix: "s" };
const ACCOUNT: Child = Child { kind: "ServiceAccount", suffix: "s" };
const SIX: [Child; 6] = [CONFIG_MAPS[0], CONFIG_MAPS[1], SECRETS[0], SECRETS[1], SERVICE, ACCOUNT];

const DEPLOYMENT: Child = Child { kind: "Deployment", suffix: "" };
const APP_SERVICE: Child = Child { kind: "Service", suffix: "" };

impl Child {
    /// Its name as a child of this object.
    pub fn name(self, of: &str) -> String {
        if self.suffix.is_empty() { of.to_owned() } else { format!("{of}-{}", self.suffix) }
    }
}

impl History {
    /// A history of an object of one of the kinds.
    pub fn random(rng: &mut Rng, name: String) -> Self {
        let kind = if rng.bool() { "Sextet" } else { "AppService" };
        let steps = (0..rng.usize(4..=8)).map(|_| step(rng, kind)).collect();
        Self { kind, first: spec(rng, kind), name, steps }
    }

    /// The last spec.
    pub fn last(&self) -> &Value {
        let mut specs =
            self.steps.iter().filter_map(|step| if let Step::Spec(spec) = step { Some(spec) } else { None });
        specs.next_back().unwrap_or(&self.first)
    }

    /// The object with this spec.
    pub fn object(&self, name: &str, spec: &Value) -> Value {
        let group = if self.kind == "Sextet" { "test.pilothouse.dev/v1" } else { "apps.example.com/v1" };
        json!({"apiVersion": group, "kind": self.kind, "metadata": {"name": name}, "spec": spec})
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {} {}", self.kind, self.name, self.first)?;
        self.steps.iter().try_for_each(|step| match step {
            Step::Spec(spec) => writeln!(f, "  Spec {spec}"),
            Step::Patch(child, patch) => writeln!(f, "  Patch {child:?} {patch}"),
            step => writeln!(f, "  {step:?}"),
        })
    }
}

fn step(rng: &mut Rng, kind: &str) -> Step {
    match rng.u8(0..20) {
        0..6 => Step::Spec(spec(rng, kind)),
        6..11 if kind == "Sextet" => patch_of_sextet(rng),
        6..11 => patch_of_app(rng),
        11..14 => Step::DeleteChild(child(rng, kind)),
        14 => Step::Touch,
        15 => Step::TouchChild(child(rng, kind)),
        16 => Step::Recreate,
        _ => Step::Rest,
    }
}

fn spec(rng: &mut Rng, kind: &str) -> Value {
    if kind == "AppService" {
        let image = format!("example.com/web:{}", rng.u8(1..4));
        return json!({"replicas": rng.u8(2..6), "image": image, "port": pick(rng, &[8080, 9000, 9001])});
    }
    let mut data = json!({"tempo": pick(rng, &["largo", "adagio", "presto"])});
    for key in ["key", "mode"] {
        if rng.bool() {
            data[key] = json!(pick(rng, &["minor", "major"]));
        }
    }
    // Never so many that a version without Secrets would return no child: the guard against mass deletion would hold the deletes
    // back.
    let left_out = rng.usize(0..3);
    let without = rng.choose_multiple(SIX, left_out);
    let without: Vec<_> = without.iter().map(|child| format!("{}/{}", child.kind, child.suffix)).collect();
    json!({
        "data": data, "secret": pick(rng, &["b25l", "dHdv", "dGhyZWU="]), "port": pick(rng, &[80, 81, 82]),
        "mount": rng.bool(), "without": without,
    })
}

fn patch_of_sextet(rng: &mut Rng) -> Step {
    let map = *pick(rng, &CONFIG_MAPS);
    let secret = *pick(rng, &SECRETS);
    let mount = rng.bool();
    let port =
        |port: u16, target: Value| json!({"name": "http", "port": port, "targetPort": target, "protocol": "TCP"});
    let (child, patch) = pick(
        rng,
        &[
            (map, json!({"data": {"tempo": "by hand"}})),
            (map, json!({"data": {"tempo": null}})),
            (map, json!({"data": null})),
            (map, json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "hand"}}})),
            (map, json!({"metadata": {"annotations": {"pilothouse.dev/applied": "by hand"}}})),
            (map, json!({"metadata": {"annotations": {"pilothouse.dev/applied": null}}})),
            (secret, json!({"data": {"secret": "eA=="}})),
            (secret, json!({"data": null})),
            (SERVICE, json!({"spec": {"ports": [port(9999, "http".into())]}})),
            (SERVICE, json!({"spec": {"ports": [port(80, 9999.into())]}})),
            (ACCOUNT, json!({"automountServiceAccountToken": mount})),
            (ACCOUNT, json!({"automountServiceAccountToken": null})),
        ],
    )
    .clone();
    Step::Patch(child, patch)
}

fn patch_of_app(rng: &mut Rng) -> Step {
    let template = |container: Value| json!({"spec": {"template": {"spec": {"containers": [container]}}}});
    let port = json!({"name": "http", "containerPort": 9999, "protocol": "TCP"});
    let port_of_service = json!({"name": "http", "port": 9999, "targetPort": "http", "protocol": "TCP"});
    let (child, patch) = pick(
        rng,
        &[
            (DEPLOYMENT, json!({"spec": {"replicas": 1}})),
            (DEPLOYMENT, template(json!({"name": "app", "image": "example.com/by-hand:1"}))),
            (DEPLOYMENT, template(json!({"name": "app", "image": "example.com/web:1", "ports": [port]}))),
            (DEPLOYMENT, json!({"metadata": {"labels": {"app.kubernetes.io/component": null}}})),
            (DEPLOYMENT, json!({"metadata": {"annotations": {"pilothouse.dev/applied": "by hand"}}})),
            (APP_SERVICE, json!({"spec": {"ports": [port_of_service]}})),
            (APP_SERVICE, json!({"spec": {"selector": {"app.kubernetes.io/component": "by-hand"}}})),
            (APP_SERVICE, json!({"spec": {"type": "NodePort"}})),
        ],
    )
    .clone();
    Step::Patch(child, patch)
}

fn child(rng: &mut Rng, kind: &str) -> Child {
    if kind == "Sextet" { *pick(rng, &SIX) } else { *pick(rng, &[DEPLOYMENT, APP_SERVICE]) }
}

/// A random element of a slice, which must not be empty.
fn pick<'a, T>(rng: &mut Rng, among: &'a [T]) -> &'a T {
    &among[rng.usize(0..among.len())]
}
