//! The children of one resource: which there shall be, what they are, and how far they are.

use pilothouse_sdk::raw::KindRef;
use pilothouse_sdk::{Handling, ImmutablePolicy, Options, RemovalPolicy};
use serde_json::{Value, json};

use super::live::Live;
use super::state::{ReadsOthers, Round, State, Unresolved};
use crate::config::{HandlingConfig, OnImmutable, OnRemoval};
use crate::parts::{Node, Resource};
use crate::template::Compiled;

/// The most children of one resource.
const MOST_CHILDREN: usize = 500;

/// A child that shall exist.
#[derive(Debug)]
pub struct Desired {
    /// It.
    pub object: Value,
    /// How the host treats it.
    pub options: Options,
}

/// What becomes of a resource.
#[derive(Debug)]
pub struct Made {
    /// What is known of it for those that read it.
    pub state: State,
    /// Whether it is there, and as its `readyWhen` says.
    pub is_ready: bool,
    /// Its children.
    pub desired: Vec<Desired>,
    /// What it waits for.
    pub waits: Vec<String>,
    /// What is wrong with it.
    pub wrong: Vec<String>,
    /// What of its `readyWhen` is not true.
    pub unready: Vec<String>,
    /// Its kind, if children of it stay whose names are not known.
    pub unnamed: Option<KindRef>,
}

impl Made {
    fn of(state: State) -> Self {
        let (waits, wrong) = match &state {
            State::Waits(why) => (vec![why.clone()], Vec::new()),
            State::Wrong(why) => (Vec::new(), vec![why.clone()]),
            _ => (Vec::new(), Vec::new()),
        };
        Self { state, is_ready: false, desired: Vec::new(), waits, wrong, unready: Vec::new(), unnamed: None }
    }

    fn unresolved(why: Unresolved) -> Self {
        Self::of(match why {
            Unresolved::Waits(why) => State::Waits(why),
            Unresolved::Excluded => State::Excluded,
            Unresolved::Wrong(why) => State::Wrong(why),
        })
    }
}

/// Makes the children of a resource.
pub fn make(round: &Round<'_>, place: usize, resource: &Resource) -> Made {
    // What shall not be there takes those along that read it.
    let reads = round.composition.reads.get(place).into_iter().flatten();
    if reads.copied().any(|read| round.state(read) == Some(&State::Excluded)) {
        return Made::of(State::Excluded);
    }
    let stays = |made: Made| Made { unnamed: Some(resource.kind.clone()), ..made };
    match is_included(round, resource) {
        Ok(true) => {}
        Ok(false) => return Made::of(State::Excluded),
        Err(Unresolved::Excluded) => return Made::of(State::Excluded),
        Err(why) => return stays(Made::unresolved(why)),
    }
    let instances = match instances(round, resource) {
        Ok(instances) => instances,
        Err(why) => return stays(Made::unresolved(why)),
    };
    let mut made = Making { round, place, resource, waits_for: waits_for(round, place) }.children(&instances);
    if made.wrong.is_empty() && made.waits.is_empty() {
        made.is_ready = made.unready.is_empty();
    }
    made
}

fn is_included(round: &Round<'_>, resource: &Resource) -> Result<bool, Unresolved> {
    let values = round.values();
    for (place, expression) in resource.include_when.iter().enumerate() {
        let path = resource.path.field("includeWhen").element(place);
        let is_true =
            expression.boolean(&path, &values).map_err(|why| round.unresolved(&why, of_others(round, expression)))?;
        if !is_true {
            return Ok(false);
        }
    }
    Ok(true)
}

fn of_others(round: &Round<'_>, expression: &Compiled) -> ReadsOthers {
    let names = expression.references().into_iter().map(|reference| reference.name);
    let places = names.filter_map(|name| round.composition.place(&name));
    let mut nodes = places.filter_map(|place| round.composition.nodes.get(place));
    match nodes.any(|node| !matches!(node, Node::Variable { .. }) || round.reads_others(node) == ReadsOthers::Yes) {
        true => ReadsOthers::Yes,
        false => ReadsOthers::No,
    }
}

/// The values of the iterators, for each child. One without any where there is no `forEach`.
fn instances(round: &Round<'_>, resource: &Resource) -> Result<Vec<Vec<Value>>, Unresolved> {
    let values = round.values();
    let mut instances = vec![Vec::new()];
    for (place, (name, list)) in resource.for_each.iter().enumerate() {
        let path = resource.path.field("forEach").element(place).field(name);
        let found = list.value(&path, &values).map_err(|why| round.unresolved(&why, of_others(round, list)))?;
        let elements = match found {
            Some(Value::Array(elements)) => elements,
            None => Vec::new(),
            Some(other) => {
                let found = crate::template::type_of(Some(&other));
                return Err(Unresolved::Wrong(format!("{path}: `{}`: it must be a list, not {found}", list.text)));
            }
        };
        if instances.len().saturating_mul(elements.len()) > MOST_CHILDREN {
            return Err(Unresolved::Wrong(format!("{path}: it makes more than {MOST_CHILDREN} children")));
        }
        let with = |instance: &Vec<Value>, element: &Value| instance.iter().chain([element]).cloned().collect();
        instances = instances.iter().flat_map(|it| elements.iter().map(move |element| with(it, element))).collect();
    }
    Ok(instances)
}

/// The first resource that it reads and that is not ready; none if all are.
fn waits_for(round: &Round<'_>, place: usize) -> Option<String> {
    let unready = round.resources_read(place).into_iter().find(|read| !round.is_ready(*read))?;
    round.composition.names.get(unready).cloned()
}

/// Making the children of one resource.
struct Making<'m> {
    round: &'m Round<'m>,
    place: usize,
    resource: &'m Resource,
    /// Which of those that it reads is not ready.
    waits_for: Option<String>,
}

impl Making<'_> {
    fn children(&self, instances: &[Vec<Value>]) -> Made {
        let mut made = Made::of(State::Absent);
        let mut values = Vec::new();
        for instance in instances {
            values.extend(self.child(instance, &mut made));
        }
        let name = self.round.composition.names.get(self.place).map(String::as_str).unwrap_or_default();
        let waits = || State::Waits(format!("`{name}` is not there yet"));
        made.state = match (self.resource.for_each.is_empty(), values.len() == instances.len()) {
            (_, false) => waits(),
            (true, true) => values.pop().map_or_else(waits, State::Known),
            (false, true) => State::Known(Value::Array(values)),
        };
        made
    }

    /// Adds one child. Returns it as it lives.
    fn child(&self, instance: &[Value], made: &mut Made) -> Option<Value> {
        let (round, resource) = (self.round, self.resource);
        let (path, mut values) = (resource.path.field("template"), round.values());
        values.extend(instance.iter().map(Some));
        let reads = round.composition.nodes.get(self.place).map_or(ReadsOthers::No, |node| round.reads_others(node));
        let object = match resource.template.value(&path, &values) {
            Ok(object) => object.unwrap_or_default(),
            Err(error) => {
                match round.unresolved(&error, reads) {
                    Unresolved::Wrong(why) => made.wrong.push(why),
                    Unresolved::Waits(why) => made.waits.push(why),
                    Unresolved::Excluded => {}
                }
                return self.unresolved(&values, made);
            }
        };
        if object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().is_empty() {
            made.wrong.push(format!("{}: the name is no text, or an empty one", path.field("metadata").field("name")));
            made.unnamed = Some(resource.kind.clone());
            return None;
        }
        let live = round.live.iter().find(|live| live.is(&object));
        // What lives is kept right whatever it was made after.
        if let (None, Some(other)) = (live, &self.waits_for) {
            made.waits.push(format!("{}: `{}` waits until `{other}` is ready", resource.path, resource.config.id));
            return None;
        }
        made.desired.push(Desired { object, options: self.options() });
        let live = live.filter(|live| !live.is_going())?;
        self.judge(live, made);
        Some(live.object.clone())
    }

    /// A child whose template has no value now: what lives of it stays as it is.
    fn unresolved(&self, values: &[Option<&Value>], made: &mut Made) -> Option<Value> {
        let (resource, path) = (self.resource, self.resource.path.field("template").field("metadata"));
        let metadata = resource.template.field("metadata");
        let text = |field: &str| metadata.and_then(|it| it.field(field)).map(|it| it.text(&path.field(field), values));
        let (Some(Ok(name)), namespace) = (text("name"), text("namespace").transpose()) else {
            made.unnamed = Some(resource.kind.clone());
            return None;
        };
        let mut named =
            json!({"apiVersion": resource.kind.api_version, "kind": resource.kind.kind, "metadata": {"name": name}});
        match namespace {
            Ok(Some(namespace)) => named["metadata"]["namespace"] = json!(namespace),
            Ok(None) => {}
            Err(_) => {
                made.unnamed = Some(resource.kind.clone());
                return None;
            }
        }
        let live = self.round.live.iter().find(|live| live.is(&named))?;
        let options = Options { handling: Handling::Keep, ..self.options() };
        made.desired.push(Desired { object: named, options });
        (!live.is_going()).then(|| live.object.clone())
    }

    /// Whether a child is as `readyWhen` says.
    fn judge(&self, live: &Live, made: &mut Made) {
        let (round, resource) = (self.round, self.resource);
        // It knows itself under its own name, one of several as `each`.
        let mut values = round.values();
        match resource.for_each.is_empty() {
            true => {
                if let Some(own) = values.get_mut(self.place + 1) {
                    *own = Some(&live.object);
                }
            }
            false => values.push(Some(&live.object)),
        }
        for (place, expression) in resource.ready_when.iter().enumerate() {
            let path = resource.path.field("readyWhen").element(place);
            let why = match expression.boolean(&path, &values) {
                Ok(true) => continue,
                Ok(false) => format!("{path}: `{}` is not true of `{}`", expression.text, resource.config.id),
                Err(error) => match round.unresolved(&error, of_others(round, expression)) {
                    Unresolved::Waits(why) => why,
                    Unresolved::Excluded => continue,
                    Unresolved::Wrong(why) => {
                        made.wrong.push(why);
                        continue;
                    }
                },
            };
            made.unready.push(why);
        }
    }

    fn options(&self) -> Options {
        let config = &self.resource.config;
        Options {
            handling: match config.handling {
                HandlingConfig::Apply => Handling::Apply,
                HandlingConfig::Create => Handling::Create,
            },
            on_immutable: match config.on_immutable {
                OnImmutable::Fail => ImmutablePolicy::Fail,
                OnImmutable::Recreate => ImmutablePolicy::Recreate,
            },
            on_removal: match config.on_removal {
                OnRemoval::Delete => RemovalPolicy::Delete,
                OnRemoval::Keep => RemovalPolicy::Keep,
            },
            unmanaged: config.unmanaged_fields.clone(),
            ..Options::default()
        }
    }
}
