//! Random requests, made to be interesting: few names, managers with the same fields, old resource versions, wrong values. A seed
//! decides everything. Nothing is sent here.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::kinds::{Field, Kind};

/// The names of objects.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// The type of the body of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

/// The managers of fields.
const MANAGERS: [&str; 3] = ["one", "two", "three"];

/// One request. What depends on earlier answers is in it as a question to them.
#[derive(Clone, Debug)]
pub struct Step {
    /// The method.
    pub method: &'static str,
    /// The path and the query.
    pub uri: String,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body; null for none.
    pub body: Value,
    /// Which object the body begins as.
    pub begins_as: Beginning,
    /// The plural and the name of the object.
    pub object: (String, String),
}

impl Step {
    /// A request whose body is JSON.
    pub fn with(method: &'static str, uri: &str, body: Value) -> Self {
        Self {
            method,
            uri: uri.to_owned(),
            content_type: "application/json",
            body,
            begins_as: Beginning::Nothing,
            object: Default::default(),
        }
    }

    /// The same about an object, by its plural and its name.
    #[must_use]
    pub fn about(mut self, plural: &str, name: &str) -> Self {
        self.object = (plural.to_owned(), name.to_owned());
        self
    }
}

/// What a body begins as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// Nothing: it is as it says.
    Nothing,
    /// The object as it was answered last; the body says what changes.
    Last,
    /// The object as it was answered before that.
    Earlier,
}

/// Makes the requests of one script.
pub struct Writer<'k> {
    rng: Rng,
    kinds: Vec<&'k Kind>,
    namespace: String,
}

impl<'k> Writer<'k> {
    /// Requests in a namespace, to two or three kinds.
    pub fn new(seed: u64, kinds: &'k [Kind], namespace: &str) -> Self {
        let mut rng = Rng::with_seed(seed);
        let count = rng.usize(1..=3);
        let kinds = rng.choose_multiple(kinds.iter(), count);
        Self { rng, kinds, namespace: namespace.to_owned() }
    }

    /// The next request.
    pub fn next_step(&mut self) -> Step {
        let index = self.rng.usize(0..self.kinds.len());
        let kind = self.kinds[index];
        let name = NAMES[self.rng.usize(0..NAMES.len())];
        match self.rng.u32(0..100) {
            0..18 => self.create(kind, name),
            18..46 => self.apply(kind, name),
            46..58 => self.replace(kind, name),
            58..68 => self.merge(kind, name),
            68..73 => self.steps(kind, name),
            73..84 => self.delete(kind, name),
            84..87 => self.scale(kind, name),
            87..89 => self.delete_all(kind),
            89..95 => self.list(kind),
            _ => self.get(kind, name),
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.u32(0..100) < percent
    }

    fn step(&self, method: &'static str, kind: &Kind, name: &str) -> Step {
        let path = kind.path(&self.namespace);
        let uri = if name.is_empty() { path } else { format!("{path}/{name}") };
        let object = (kind.plural.clone(), name.to_owned());
        Step { method, uri, content_type: "application/json", body: Value::Null, begins_as: Beginning::Nothing, object }
    }

    /// Ends a write: of the status or of the rest, with options.
    fn finish(&mut self, mut step: Step, of_status: bool) -> Step {
        if of_status {
            step.uri += "/status";
        }
        step.uri += &self.options(&step);
        step
    }

    /// Options that all writes have.
    fn options(&mut self, step: &Step) -> String {
        let is_apply = step.content_type == APPLY;
        let mut options = Vec::new();
        if is_apply || self.chance(60) {
            options.push(format!("fieldManager={}", MANAGERS[self.rng.usize(0..MANAGERS.len())]));
        }
        if self.chance(8) {
            options.push("dryRun=All".to_owned());
        }
        match self.rng.u32(0..10) {
            0 => options.push("fieldValidation=Strict".to_owned()),
            1 => options.push("fieldValidation=Ignore".to_owned()),
            _ => {}
        }
        if is_apply && self.chance(50) {
            options.push("force=true".to_owned());
        }
        if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) }
    }

    fn identity(kind: &Kind, name: &str) -> Value {
        json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}})
    }

    /// Puts some of the fields of a kind into an object.
    fn fill(&mut self, object: &mut Value, fields: &[&Field], weight: u32) {
        for field in fields {
            if self.rng.u32(0..100) * 100 < field.percent * weight {
                let value = field.values[self.rng.usize(0..field.values.len())].clone();
                put(object, &field.pointer, value);
            }
        }
    }

    fn object(&mut self, kind: &Kind, name: &str, is_partial: bool) -> Value {
        let mut object = Self::identity(kind, name);
        if !is_partial {
            merge(&mut object, &kind.base);
        }
        let fields: Vec<_> = kind.fields_of(false).collect();
        self.fill(&mut object, &fields, 100);
        self.replace_names(&mut object);
        object
    }

    fn status(&mut self, kind: &Kind, name: &str) -> Value {
        let mut object = Self::identity(kind, name);
        let fields: Vec<_> = kind.fields_of(true).collect();
        self.fill(&mut object, &fields, 100);
        object
    }

    fn replace_names(&self, object: &mut Value) {
        match object {
            Value::String(text) if text == "$namespace" => *text = self.namespace.clone(),
            Value::Array(list) => list.iter_mut().for_each(|value| self.replace_names(value)),
            Value::Object(map) => map.values_mut().for_each(|value| self.replace_names(value)),
            _ => {}
        }
    }

    /// Says which state of the object the request is about.
    fn guard(&mut self, kind: &Kind, name: &str, object: &mut Value) {
        let place = format!("{}/{name}", kind.plural);
        match self.rng.u32(0..40) {
            0 | 1 => put(object, "/metadata/resourceVersion", json!(format!("$version:{place}"))),
            2 => put(object, "/metadata/resourceVersion", json!(format!("$earlier-version:{place}"))),
            3 => put(object, "/metadata/resourceVersion", json!("1")),
            4 => put(object, "/metadata/resourceVersion", json!("0")),
            5 | 6 => put(object, "/metadata/uid", json!(format!("$uid:{place}"))),
            7 => put(object, "/metadata/uid", json!(format!("$earlier-uid:{place}"))),
            _ => {}
        }
    }

    fn create(&mut self, kind: &Kind, name: &str) -> Step {
        let mut step = self.step("POST", kind, "");
        step.object.1 = name.to_owned();
        step.body = self.object(kind, name, false);
        if self.chance(3) {
            put(&mut step.body, "/metadata/generateName", json!("gen-"));
            if self.chance(50)
                && let Some(metadata) = step.body["metadata"].as_object_mut()
            {
                metadata.remove("name");
            }
        }
        self.guard(kind, name, &mut step.body);
        step.uri += &self.options(&step);
        step
    }

    fn has_status(kind: &Kind) -> bool {
        kind.fields_of(true).next().is_some()
    }

    fn apply(&mut self, kind: &Kind, name: &str) -> Step {
        let of_status = Self::has_status(kind) && self.chance(25);
        let mut step = self.step("PATCH", kind, name);
        step.content_type = APPLY;
        let is_partial = self.chance(20);
        step.body = if of_status { self.status(kind, name) } else { self.object(kind, name, is_partial) };
        // Null in the metadata of a custom resource is kept until the next write, which is a change then.
        if let Some(metadata) = step.body["metadata"].as_object_mut() {
            metadata.retain(|_, value| !value.is_null());
        }
        self.guard(kind, name, &mut step.body);
        self.finish(step, of_status)
    }

    fn replace(&mut self, kind: &Kind, name: &str) -> Step {
        let of_status = Self::has_status(kind) && self.chance(30);
        let mut step = self.step("PUT", kind, name);
        if self.chance(75) {
            // What was read, with a few changes.
            step.begins_as = if self.chance(85) { Beginning::Last } else { Beginning::Earlier };
            let fields: Vec<_> = kind.fields_of(of_status).collect();
            step.body = json!({});
            self.fill(&mut step.body, &fields, if of_status { 100 } else { 30 });
            self.replace_names(&mut step.body);
            if self.chance(10) {
                put(&mut step.body, "/metadata/resourceVersion", Value::Null);
            }
            if self.chance(3) {
                put(&mut step.body, "/metadata/managedFields", json!([{}]));
            }
        } else {
            step.body = self.object(kind, name, false);
            self.guard(kind, name, &mut step.body);
        }
        self.finish(step, of_status)
    }

    fn merge(&mut self, kind: &Kind, name: &str) -> Step {
        let of_status = Self::has_status(kind) && self.chance(30);
        let mut step = self.step("PATCH", kind, name);
        step.content_type = "application/merge-patch+json";
        step.body = json!({});
        let fields: Vec<_> = kind.fields_of(of_status).collect();
        self.fill(&mut step.body, &fields, 50);
        let count = self.rng.usize(0..=2);
        for _ in 0..count {
            let field = fields[self.rng.usize(0..fields.len())];
            put(&mut step.body, &field.pointer, Value::Null);
        }
        self.replace_names(&mut step.body);
        self.guard(kind, name, &mut step.body);
        self.finish(step, of_status)
    }

    fn steps(&mut self, kind: &Kind, name: &str) -> Step {
        let mut step = self.step("PATCH", kind, name);
        step.content_type = "application/json-patch+json";
        let fields: Vec<_> = kind.fields_of(false).collect();
        let count = self.rng.usize(1..=3);
        let steps = (0..count).map(|_| {
            let field = fields[self.rng.usize(0..fields.len())];
            let value = field.values[self.rng.usize(0..field.values.len())].clone();
            match self.rng.u32(0..4) {
                0 => json!({"op": "remove", "path": field.pointer}),
                1 => json!({"op": "replace", "path": field.pointer, "value": value}),
                2 => json!({"op": "test", "path": field.pointer, "value": value}),
                _ => json!({"op": "add", "path": field.pointer, "value": value}),
            }
        });
        step.body = Value::Array(steps.collect());
        let mut body = step.body.take();
        self.replace_names(&mut body);
        step.body = body;
        step.uri += &self.options(&step);
        step
    }

    fn scale(&mut self, kind: &Kind, name: &str) -> Step {
        if !["deployments", "statefulsets", "widgets"].contains(&&*kind.plural) {
            return self.get(kind, name);
        }
        let method = if self.chance(70) { "PATCH" } else { "GET" };
        let mut step = self.step(method, kind, name);
        step.uri += "/scale";
        if step.method == "PATCH" {
            step.content_type = "application/merge-patch+json";
            step.body = json!({"spec": {"replicas": self.rng.i32(0..5)}});
            step.uri += &self.options(&step);
        }
        step
    }

    fn delete(&mut self, kind: &Kind, name: &str) -> Step {
        let mut step = self.step("DELETE", kind, name);
        let place = format!("{}/{name}", kind.plural);
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if let 0..3 = self.rng.u32(0..6) {
            let policies = ["Background", "Background", "Foreground", "Orphan", "Bogus"];
            options["propagationPolicy"] = policies[self.rng.usize(0..policies.len())].into();
        }
        match self.rng.u32(0..12) {
            0..3 => put(&mut options, "/preconditions/uid", json!(format!("$uid:{place}"))),
            3 => put(&mut options, "/preconditions/uid", json!(format!("$earlier-uid:{place}"))),
            4 => put(&mut options, "/preconditions/resourceVersion", json!(format!("$version:{place}"))),
            5 => put(&mut options, "/preconditions/resourceVersion", json!(format!("$earlier-version:{place}"))),
            _ => {}
        }
        if self.chance(12) {
            options["gracePeriodSeconds"] = [0, 1, 30][self.rng.usize(0..3)].into();
        }
        // (With a policy a dry run of the real server may answer with an object that never was.)
        if options["propagationPolicy"].is_null() && self.chance(10) {
            options["dryRun"] = json!(["All"]);
        }
        if self.chance(90) {
            step.body = options;
        }
        step
    }

    fn delete_all(&mut self, kind: &Kind) -> Step {
        let mut step = self.step("DELETE", kind, "");
        step.uri += "?labelSelector=app%3Da";
        step
    }

    fn list(&mut self, kind: &Kind) -> Step {
        let mut step = self.step("GET", kind, "");
        let mut options = Vec::new();
        match self.rng.u32(0..10) {
            0 => options.push("labelSelector=app%3Da"),
            1 => options.push("labelSelector=app%20in%20(a,b),!x.y%2Fz"),
            2 => options.push("labelSelector=app!%3Da"),
            3 => options.push("fieldSelector=metadata.name%3Da"),
            4 => options.push("labelSelector=app"),
            5 => options.push("fieldSelector=spec.bogus%3Da"),
            _ => {}
        }
        match self.rng.u32(0..10) {
            0 => options.push("limit=1"),
            1 => options.push("limit=2"),
            2 => options.push("resourceVersion=0"),
            _ => {}
        }
        if !options.is_empty() {
            step.uri = format!("{}?{}", step.uri, options.join("&"));
        }
        step
    }

    fn get(&mut self, kind: &Kind, name: &str) -> Step {
        let mut step = self.step("GET", kind, name);
        if Self::has_status(kind) && self.chance(20) {
            step.uri += "/status";
        }
        step
    }
}

/// Puts a value at a pointer, making the objects on the way.
pub fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    let steps: Vec<_> = pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    for step in steps {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[step.as_str()];
    }
    *place = value;
}

/// Puts the fields of one object into another.
pub fn merge(target: &mut Value, source: &Value) {
    match source {
        Value::Object(source) => {
            if !target.is_object() {
                *target = Value::Object(Map::new());
            }
            for (name, value) in source {
                merge(&mut target[name.as_str()], value);
            }
        }
        other => *target = other.clone(),
    }
}
