//! A composition of a chart of Helm: it is rendered once for each of its values with another value, and what differs then depends on that
//! value. So nothing has to be known of its templates. It runs Helm only through [`Renderer`].

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    draft::{Case, Draft, Resource, ids},
    fields::{Field, literal, read, set},
    manifests::{Manifests, name},
    names::{NAME, NAMESPACE},
    node::{Edit, Edits, Path, Span, Step, at, at_mut, in_words, leaves, within},
    single::{is_secret, notes},
};

/// Names that nothing in a chart is called by.
const RELEASE: &str = "zq7release";
const SPACE: &str = "zq7space";
const MARK: &str = "zq7value";
const KEY: &str = "zq7key";

/// The names in the cases.
const FIRST: &str = "first";
const DEFAULT: &str = "default";

/// As many notes of one sort are written out.
const MOST_NOTES: usize = 12;

/// Renders a chart.
pub(crate) trait Renderer {
    /// The objects for these values, a release and its namespace; or what is wrong.
    fn render(&self, values: &Value, release: &str, namespace: &str) -> Result<Vec<Value>, String>;
}

/// The composition of a chart with its own values.
///
/// # Errors
/// What the renderer says of the values as they are.
pub(crate) fn draft(renderer: &dyn Renderer, values: &Value) -> Result<Draft, String> {
    let learner = Learner { renderer };
    let (usual, left_out) = learner.render(values)?;
    let mut draft = Draft { notes: left_out.clone(), ..Draft::default() };
    // First all children that there can be: each switch that adds one is on.
    let leaves: Vec<(Path, Value)> = leaves(values).into_iter().map(|(path, value)| (path, value.clone())).collect();
    let (mut explored, mut rendered) = (values.clone(), (usual.clone(), left_out));
    for (path, value) in &leaves {
        let Value::Bool(it) = value else { continue };
        let flipped = with(&explored, path, Value::Bool(!it));
        let Ok(other) = learner.render(&flipped) else { continue };
        let (now, children) = (&rendered.0, &other.0);
        if now.keys().all(|key| children.contains_key(key)) && children.len() > now.len() {
            (explored, rendered) = (flipped, other);
        }
    }
    let (children, left_out) = rendered;
    draft.notes.extend(left_out);
    draft.notes.sort();
    draft.notes.dedup();
    let again = learner.render(&explored)?.0;
    let mut learned = Learned::new(&children, &again);
    for (path, _) in &leaves {
        learned.learn(&learner, &explored, path);
    }
    learned.learn_alternatives(&learner, &explored, &leaves)?;
    learned.finish(&mut draft);
    draft.notes.extend(learned.notes);
    let mut specs = [values, &explored].map(|_| Value::Object(Map::new()));
    for field in &learned.used {
        let of = |values: &Value| field.iter().try_fold(values, |value, name| value.get(name)).cloned();
        let default = of(values).unwrap_or_default();
        draft
            .fields
            .add(field.clone(), Field { description: String::new(), default: Some(default.clone()), like: default });
        for (spec, values) in specs.iter_mut().zip([values, &explored]) {
            of(values).into_iter().for_each(|value| set(spec, field, value));
        }
    }
    let [usual_spec, explored_spec] = specs;
    let order: Vec<_> = children.keys().collect();
    let given = |rendered: &Children| order.iter().filter_map(|key| rendered.get(*key).map(named_first)).collect();
    let of = |title: &str, spec: Value, children: Vec<Value>| Case {
        title: title.to_owned(),
        name: FIRST.to_owned(),
        namespace: DEFAULT.to_owned(),
        spec,
        children,
    };
    draft.cases.push(of(
        "an object with the values of the chart becomes what Helm renders of them",
        usual_spec.clone(),
        given(&usual),
    ));
    if explored_spec != usual_spec {
        draft.cases.push(of(
            "an object with all that there can be becomes what Helm renders",
            explored_spec,
            given(&children),
        ));
    }
    Ok(draft)
}

/// Children by kind and name.
type Children = BTreeMap<String, Value>;

struct Learner<'r> {
    renderer: &'r dyn Renderer,
}

impl Learner<'_> {
    fn render(&self, values: &Value) -> Result<(Children, Vec<String>), String> {
        let found = Manifests::of(self.renderer.render(values, RELEASE, SPACE)?);
        let plain = |note: String| note.replace(RELEASE, "NAME").replace(SPACE, "NAMESPACE");
        let children = found.children.into_iter().map(|child| (key(&child), child)).collect();
        Ok((children, found.left_out.into_iter().map(plain).collect()))
    }
}

fn key(child: &Value) -> String {
    format!("{} {}", child["apiVersion"], name(child))
}

/// What becomes of a part of a child as a whole, with all that is in it.
#[derive(Default)]
struct Part {
    /// The expression without which it is not there.
    condition: Option<String>,
    /// Expressions of objects whose fields it gets.
    merged: Vec<String>,
}

/// What is known of a chart so far.
struct Learned<'c> {
    children: &'c Children,
    edits: BTreeMap<String, Edits>,
    /// Parts that are there only if an expression is true, and objects that get the fields of values.
    parts: BTreeMap<(String, Path), Part>,
    include: BTreeMap<String, Vec<String>>,
    /// Parts that come where a switch is the other way: the switch, the child, and the part.
    alternatives: Vec<(Path, String, Path)>,
    /// Places that are others each time.
    random: Vec<(String, Path)>,
    /// The fields of the spec.
    used: Vec<Vec<String>>,
    notes: Vec<String>,
    unexplained: Vec<String>,
    failed: Vec<String>,
}

impl<'c> Learned<'c> {
    fn new(children: &'c Children, again: &Children) -> Self {
        let mut edits = BTreeMap::new();
        let mut random = Vec::new();
        for (key, child) in children {
            let mut of_names = Edits::default();
            for (path, value) in leaves(child) {
                let Some(text) = value.as_str() else { continue };
                for (mark, expression) in [(RELEASE, NAME), (SPACE, NAMESPACE)] {
                    for (from, _) in text.match_indices(mark) {
                        of_names.span(
                            path.clone(),
                            Span { from, to: from + mark.len(), expression: expression.to_owned() },
                        );
                    }
                }
                if again.get(key).and_then(|child| at(child, &path)) != Some(value) {
                    random.push((key.clone(), path));
                }
            }
            edits.insert(key.clone(), of_names);
        }
        Self {
            children,
            edits,
            parts: BTreeMap::new(),
            include: BTreeMap::new(),
            alternatives: Vec::new(),
            random,
            used: Vec::new(),
            notes: Vec::new(),
            unexplained: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Renders with another value in one place, and keeps what depends on it.
    fn learn(&mut self, learner: &Learner<'_>, explored: &Value, path: &Path) {
        let Some(now) = at(explored, path) else { return };
        let shown = in_words(path);
        let last = path.iter().rev().find_map(|step| if let Step::Field(name) = step { Some(name) } else { None });
        if last.is_some_and(|name| is_secret(name)) && now.is_string() {
            self.notes.push(format!(
                "the value {shown} is no field, for it looks like a secret: let the chart use a Secret that exists"
            ));
            return;
        }
        let rendered = others(now).into_iter().find_map(|other| {
            learner.render(&with(explored, path, other.clone())).ok().map(|(children, _)| (other, children))
        });
        let Some((other, rendered)) = rendered else {
            if !now.is_null() {
                self.failed.push(shown);
            }
            return;
        };
        if !now.is_boolean() && self.children.keys().any(|key| !rendered.contains_key(key)) {
            self.notes.push(format!("the value {shown} is no field, for other children come with another one"));
            return;
        }
        let value = ValueOf { path, expression: expression(path), now, other: &other };
        let mut is_used = false;
        for (key, child) in self.children {
            match rendered.get(key) {
                None => {
                    self.include.entry(key.clone()).or_default().push(value.is_as_now());
                    is_used = true;
                }
                Some(changed) => is_used |= self.compare((key, child), changed, &value, &shown),
            }
        }
        if is_used {
            let field = field(path);
            // A list is a field as a whole, and so is what is around another field.
            if !self.used.contains(&field) {
                self.used.push(field);
            }
        }
    }

    /// Parts that come where a switch is the other way depend on values, too.
    fn learn_alternatives(
        &mut self,
        learner: &Learner<'_>,
        explored: &Value,
        leaves: &[(Path, Value)],
    ) -> Result<(), String> {
        let mut alternatives = std::mem::take(&mut self.alternatives);
        while let Some((switch, _, _)) = alternatives.first().cloned() {
            let (of_switch, others): (Vec<_>, Vec<_>) =
                alternatives.into_iter().partition(|(other, _, _)| *other == switch);
            alternatives = others;
            let is_on = at(explored, &switch) == Some(&Value::Bool(true));
            let flipped = with(explored, &switch, Value::Bool(!is_on));
            let (children, again) = (learner.render(&flipped)?.0, learner.render(&flipped)?.0);
            let mut learned = Learned::new(&children, &again);
            for (path, _) in leaves.iter().filter(|(_, value)| !value.is_boolean()) {
                learned.learn(learner, &flipped, path);
            }
            for field in &learned.used {
                if !self.used.contains(field) {
                    self.used.push(field.clone());
                }
            }
            let as_now = if is_on { expression(&switch) } else { format!("!{}", expression(&switch)) };
            for (_, key, path) in of_switch {
                let Some(child) = children.get(&key) else { continue };
                let Some(part) = at(child, &path) else { continue };
                let inner = cel_with(part, &mut path.clone(), &learned.edits_of(&key, child));
                if let Some(edits) = self.edits.get_mut(&key) {
                    edits.whole(path, format!("{as_now} ? optional.none() : optional.of({inner})"));
                }
            }
        }
        Ok(())
    }

    /// Keeps what differs in one child. Whether anything of it can be said by expressions.
    fn compare(&mut self, (key, child): (&String, &Value), changed: &Value, value: &ValueOf<'_>, shown: &str) -> bool {
        let mut differences = Vec::new();
        differ(child, changed, &mut Vec::new(), &mut differences);
        let mut is_used = false;
        for path in differences {
            if self.random.iter().any(|(of, place)| of == key && path.starts_with(place)) {
                continue;
            }
            let is_said = match (at(child, &path), at(changed, &path)) {
                (Some(_), None) if value.now.is_boolean() => {
                    let part = self.parts.entry((key.clone(), path.clone())).or_default();
                    part.condition.replace(value.is_as_now()).is_none()
                }
                (None, Some(after)) if value.is_added(&path, after) => {
                    let around = path.iter().take(path.len() - 1).cloned().collect();
                    self.parts.entry((key.clone(), around)).or_default().merged.push(value.expression.clone());
                    true
                }
                (None, Some(_)) if value.now.is_boolean() => {
                    self.alternatives.push((value.path.clone(), key.clone(), path.clone()));
                    true
                }
                (before, after) => self.keep(key, &path, (before, after), value),
            };
            match is_said {
                true => is_used = true,
                false => {
                    let place = in_words(&path).replace(&format!(".{KEY}"), "");
                    self.unexplained.push(format!("{shown}: {} {place}", plain_name(child)));
                }
            }
        }
        is_used
    }

    fn keep(
        &mut self,
        key: &str,
        path: &Path,
        versions: (Option<&Value>, Option<&Value>),
        value: &ValueOf<'_>,
    ) -> bool {
        let Some(edits) = self.edits.get_mut(key) else { return false };
        let mut whole = |expression: String| {
            let is_free = match edits.0.get(path) {
                None => true,
                Some(Edit::Spans(spans)) => spans.iter().all(|span| [NAME, NAMESPACE].contains(&&*span.expression)),
                Some(Edit::Whole(_)) => false,
            };
            if is_free {
                edits.whole(path.clone(), expression);
            }
            is_free
        };
        match versions {
            (Some(before), Some(after)) if before == value.now && after == value.other => {
                whole(value.expression.clone())
            }
            // An empty list or object that is left out.
            (before, Some(after)) if after == value.other && is_container(after) && before.is_none_or(is_empty) => {
                match before {
                    Some(_) => whole(value.expression.clone()),
                    None => whole(format!("{0}.size() > 0 ? optional.of({0}) : optional.none()", value.expression)),
                }
            }
            // A text or a number that stands for nothing, and is left out then.
            (None, Some(after)) if after == value.other && (*value.now == json!("") || *value.now == json!(0)) => {
                let nothing = cel(value.now);
                whole(format!("{0} == {nothing} ? optional.none() : optional.of({0})", value.expression))
            }
            (Some(Value::String(before)), Some(Value::String(after))) => {
                let Some((from, to)) = span(before, after, value) else {
                    // One of two texts, such as the name of what a switch has made.
                    let either = || format!("{} ? {} : {}", value.is_as_now(), cel_text(before), cel_text(after));
                    return value.now.is_boolean() && whole(either());
                };
                let replaced = before.get(from..to).unwrap_or_default();
                let text = text_of(value.now);
                let plain = match value.now {
                    Value::String(_) => value.expression.clone(),
                    _ => format!("string({})", value.expression),
                };
                let expression = match replaced == text {
                    true => plain,
                    // What stands there for this value alone, such as the version of the application for an empty tag.
                    false => format!("{} == {} ? {} : {plain}", value.expression, literal(&text), cel_text(replaced)),
                };
                edits.span(path.clone(), Span { from, to, expression })
            }
            (Some(before), Some(after)) if value.now.is_boolean() && !is_container(before) => {
                whole(format!("{} ? {} : {}", value.is_as_now(), cel(before), cel(after)))
            }
            _ => false,
        }
    }

    /// What stands in which places of a child, with its parts.
    fn edits_of(&self, key: &str, child: &Value) -> Edits {
        let mut edits = self.edits.get(key).cloned().unwrap_or_default();
        // Inner ones first, for outer ones have them in them.
        for ((_, path), Part { condition, merged }) in self.parts.iter().filter(|((of, _), _)| of == key).rev() {
            let Some(part) = at(child, path) else { continue };
            let inner = cel_with(part, &mut path.clone(), &edits);
            let inner = merged.iter().fold(inner, |inner, more| format!("{inner}.merge({more})"));
            edits.0.retain(|other, _| !other.starts_with(path));
            let whole = match condition {
                Some(condition) => format!("{condition} ? optional.of({inner}) : optional.none()"),
                None => inner,
            };
            edits.whole(path.clone(), whole);
        }
        edits
    }

    /// The resources, and what could not be said.
    fn finish(&mut self, draft: &mut Draft) {
        let named: Vec<_> = self
            .children
            .values()
            .map(|child| (child, child["metadata"]["name"].as_str().unwrap_or_default()))
            .collect();
        let rests: Vec<_> =
            named.iter().map(|(child, name)| (*child, name.strip_prefix(RELEASE).unwrap_or(name))).collect();
        for ((key, child), id) in self.children.iter().zip(ids(&rests)) {
            let edits = self.edits_of(key, child);
            let template = edits.template(child);
            draft.notes.extend(notes(&named_first(child), &template));
            draft.resources.push(Resource { id, template, include_when: self.include.remove(key).unwrap_or_default() });
        }
        self.note("stays as it is, though it depends on a value in a way that no expression says", |learned| {
            &learned.unexplained
        });
        self.note("is no field, for the chart refuses other values than its own", |learned| &learned.failed);
        if !self.random.is_empty() {
            let places: Vec<_> = self
                .random
                .iter()
                .map(|(key, path)| format!("{} {}", key.replace(RELEASE, "NAME"), in_words(path)))
                .collect();
            self.notes.push(format!(
                "each rendering has another value here, and the composition the one of the last: {}",
                places.join(", ")
            ));
        }
    }

    fn note(&mut self, what: &str, of: impl Fn(&Self) -> &Vec<String>) {
        let all = of(self).clone();
        let mut notes: Vec<_> = all.iter().take(MOST_NOTES).map(|place| format!("{place} {what}")).collect();
        if all.len() > MOST_NOTES {
            notes.push(format!("{} more: {what}", all.len() - MOST_NOTES));
        }
        self.notes.append(&mut notes);
    }
}

/// A value of a chart in three states.
struct ValueOf<'v> {
    path: &'v Path,
    expression: String,
    /// As it is in what is compared with.
    now: &'v Value,
    other: &'v Value,
}

impl ValueOf<'_> {
    /// Whether it adds a field in this place, to those that are there without it.
    fn is_added(&self, path: &Path, after: &Value) -> bool {
        let is_key = matches!(path.last(), Some(Step::Field(name)) if name == KEY);
        is_key && *after == json!(MARK) && self.now.as_object().is_some_and(Map::is_empty)
    }

    /// The expression that a switch is as it is now.
    fn is_as_now(&self) -> String {
        if *self.now == Value::Bool(true) { self.expression.clone() } else { format!("!{}", self.expression) }
    }
}

/// Other values to try in the place of one.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Bool(it) => vec![Value::Bool(!it)],
        Value::Number(number) => match number.as_i64() {
            Some(number) => vec![json!(number.saturating_add(7313)), json!(number.saturating_add(1))],
            None => vec![json!(number.as_f64().unwrap_or_default() + 0.5)],
        },
        Value::String(_) => vec![json!(MARK)],
        Value::Array(_) => vec![json!([{(KEY): MARK}]), json!([MARK])],
        Value::Object(_) => vec![json!({(KEY): MARK})],
        Value::Null => Vec::new(),
    }
}

/// The names of the field for a value: those before the first place in a list.
fn field(path: &Path) -> Vec<String> {
    let names = path.iter().map_while(|step| match step {
        Step::Field(name) => Some(name.clone()),
        Step::Element(_) => None,
    });
    names.collect()
}

/// The expression that reads a value.
fn expression(path: &Path) -> String {
    let field = field(path);
    let rest = path.get(field.len()..).unwrap_or_default().iter().map(|step| match step {
        Step::Field(name) if super::fields::is_plain(name) => format!(".{name}"),
        Step::Field(name) => format!("[{}]", literal(name)),
        Step::Element(place) => format!("[{place}]"),
    });
    read(&field, false) + &rest.collect::<String>()
}

fn with(values: &Value, path: &Path, value: Value) -> Value {
    let mut changed = values.clone();
    if let Some(place) = at_mut(&mut changed, path) {
        *place = value;
    }
    changed
}

/// The places in which two versions differ; of what only one has, where that begins.
fn differ(one: &Value, other: &Value, path: &mut Path, found: &mut Vec<Path>) {
    if one == other {
        return;
    }
    match (one, other) {
        (Value::Object(fields), Value::Object(others)) if !fields.is_empty() && !others.is_empty() => {
            let mut names: Vec<_> = fields.keys().chain(others.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                within(path, Step::Field(name.clone()), |path| match (fields.get(name), others.get(name)) {
                    (Some(one), Some(other)) => differ(one, other, path, found),
                    _ => found.push(path.clone()),
                });
            }
        }
        (Value::Array(elements), Value::Array(others)) if elements.len() == others.len() => {
            for (place, (one, other)) in elements.iter().zip(others).enumerate() {
                within(path, Step::Element(place), |path| differ(one, other, path, found));
            }
        }
        _ => found.push(path.clone()),
    }
}

/// The part of a text that follows from a value: that which is another one with another value.
fn span(before: &str, after: &str, value: &ValueOf<'_>) -> Option<(usize, usize)> {
    let (now, other) = (text_of(value.now), text_of(value.other));
    // A text is known by its mark, whatever stood there.
    if value.other.is_string() {
        let mut places = after.match_indices(&other);
        let (at, _) = places.next()?;
        if places.next().is_some() {
            return None;
        }
        let (head, tail) = (after.get(..at)?, after.get(at + other.len()..)?);
        let fits = before.starts_with(head) && before.ends_with(tail) && before.len() >= head.len() + tail.len();
        return fits.then(|| (head.len(), before.len() - tail.len()));
    }
    let at = |from: usize| {
        let changed = format!("{}{other}{}", before.get(..from)?, before.get(from + now.len()..)?);
        (changed == after).then_some((from, from + now.len()))
    };
    before.match_indices(&now).find_map(|(from, _)| at(from))
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn is_container(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

fn plain_name(child: &Value) -> String {
    name(child).replace(RELEASE, "NAME")
}

/// A child of the object of the cases.
fn named_first(child: &Value) -> Value {
    match child {
        Value::String(text) => Value::String(text.replace(RELEASE, FIRST).replace(SPACE, DEFAULT)),
        Value::Array(elements) => elements.iter().map(named_first).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), named_first(value))).collect())
        }
        other => other.clone(),
    }
}

/// A text as an expression, with the names of the release as those of the object.
fn cel_text(text: &str) -> String {
    let mut made = literal(text);
    for (mark, expression) in [(RELEASE, NAME), (SPACE, NAMESPACE)] {
        made = made.replace(mark, &format!("' + {expression} + '"));
    }
    let made = made.replace("'' + ", "");
    made.strip_suffix(" + ''").map_or(made.clone(), str::to_owned)
}

/// A value as an expression.
fn cel(value: &Value) -> String {
    cel_with(value, &mut Vec::new(), &Edits::default())
}

/// A value with expressions in places as one expression.
fn cel_with(value: &Value, path: &mut Path, edits: &Edits) -> String {
    match (edits.0.get(path), value) {
        (Some(Edit::Whole(expression)), _) => expression.clone(),
        (Some(Edit::Spans(spans)), Value::String(text)) => {
            let (mut parts, mut from) = (Vec::new(), 0);
            for span in spans {
                let before = text.get(from..span.from).unwrap_or_default();
                parts.extend((!before.is_empty()).then(|| literal(before)));
                parts.push(format!("({})", span.expression));
                from = span.to;
            }
            let after = text.get(from..).unwrap_or_default();
            parts.extend((!after.is_empty()).then(|| literal(after)));
            parts.join(" + ")
        }
        (_, Value::String(text)) => cel_text(text),
        (_, Value::Array(elements)) => {
            let of = |(place, element): (usize, &Value)| {
                within(path, Step::Element(place), |path| cel_with(element, path, edits))
            };
            format!("[{}]", elements.iter().enumerate().map(of).collect::<Vec<_>>().join(", "))
        }
        (_, Value::Object(fields)) => {
            let of = |(name, field): (&String, &Value)| {
                let value = within(path, Step::Field(name.clone()), |path| cel_with(field, path, edits));
                let is_optional = value.contains("optional.");
                format!("{}{}: {value}", if is_optional { "?" } else { "" }, literal(name))
            };
            format!("{{{}}}", fields.iter().map(of).collect::<Vec<_>>().join(", "))
        }
        (_, other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chart whose templates are a function.
    struct Chart<F>(F);

    impl<F: Fn(&Value, &str) -> Result<Vec<Value>, String>> Renderer for Chart<F> {
        fn render(&self, values: &Value, release: &str, namespace: &str) -> Result<Vec<Value>, String> {
            let mut objects = (self.0)(values, release)?;
            objects.iter_mut().for_each(|object| object["metadata"]["namespace"] = namespace.into());
            Ok(objects)
        }
    }

    fn web(values: &Value, release: &str) -> Result<Vec<Value>, String> {
        let name = match values["nameOverride"].as_str() {
            None | Some("") => format!("{release}-web"),
            Some(name) => name.to_owned(),
        };
        let tag = values["image"]["tag"].as_str().filter(|tag| !tag.is_empty()).unwrap_or("1.16");
        let port = values["port"].as_i64().filter(|port| *port < 5000).ok_or("port is too high")?;
        let mut pod = json!({"containers": [{
            "name": "web", "image": format!("{}:{tag}", values["image"]["repository"].as_str().unwrap_or_default()),
            "args": [format!("--port={port}")], "ports": [{"containerPort": port}],
        }]});
        if !is_empty(&values["nodeSelector"]) {
            pod["nodeSelector"] = values["nodeSelector"].clone();
        }
        let account = values["account"].as_bool().is_some_and(|it| it);
        pod["serviceAccountName"] = if account { name.as_str() } else { "default" }.into();
        let mut labels = json!({"app": name});
        for (label, value) in values["podLabels"].as_object().into_iter().flatten() {
            labels[label] = value.clone();
        }
        let mut deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"template": {"metadata": {"labels": labels}, "spec": pod}},
        });
        let mut objects = Vec::new();
        if values["autoscaling"]["enabled"] == true {
            objects.push(
                json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
                "spec": {"maxReplicas": values["autoscaling"]["max"]}}),
            );
        } else {
            deployment["spec"]["replicas"] = values["replicas"].clone();
        }
        objects.push(deployment);
        Ok(objects)
    }

    #[test]
    fn what_depends_on_a_value_is_found_by_changing_it() -> Result<(), String> {
        let values = json!({
            "image": {"repository": "nginx", "tag": ""}, "port": 80, "replicas": 2, "nodeSelector": {}, "unused": "x", "nameOverride": "",
            "podLabels": {}, "account": true,
            "autoscaling": {"enabled": false, "max": 10},
        });
        let draft = draft(&Chart(web), &values)?;
        let ids: Vec<_> = draft.resources.iter().map(|resource| resource.id.as_str()).collect();
        assert_eq!(ids, ["deployment", "horizontalPodAutoscaler"]);
        assert_eq!(draft.resources[1].include_when, ["schema.spec.autoscaling.enabled"]);
        assert_eq!(draft.resources[1].template["spec"]["maxReplicas"], "${schema.spec.autoscaling.max}");
        let template = &draft.resources[0].template;
        assert_eq!(template["metadata"]["name"], "${schema.metadata.name}-web");
        assert_eq!(
            template["spec"]["replicas"],
            "${schema.spec.autoscaling.enabled ? optional.none() : optional.of(schema.spec.replicas)}"
        );
        let container = &template["spec"]["template"]["spec"]["containers"][0];
        let image = "${schema.spec.image.repository}:${schema.spec.image.tag == '' ? '1.16' : schema.spec.image.tag}";
        assert_eq!(container["image"], image);
        assert_eq!(container["args"][0], "--port=${string(schema.spec.port)}");
        assert_eq!(container["ports"][0]["containerPort"], "${schema.spec.port}");
        let selector =
            "${schema.spec.nodeSelector.size() > 0 ? optional.of(schema.spec.nodeSelector) : optional.none()}";
        assert_eq!(template["spec"]["template"]["spec"]["nodeSelector"], selector);
        let pod = &template["spec"]["template"];
        assert_eq!(
            pod["metadata"]["labels"],
            "${{'app': (schema.metadata.name) + '-web'}.merge(schema.spec.podLabels)}"
        );
        let account = "${schema.spec.account ? schema.metadata.name + '-web' : 'default'}";
        assert_eq!(pod["spec"]["serviceAccountName"], account);
        let counts: Vec<_> = draft.cases.iter().map(|case| case.children.len()).collect();
        assert_eq!(counts, [1, 2]);
        assert_eq!(draft.cases[0].children[0]["metadata"]["name"], "first-web");
        assert_eq!(draft.cases[0].spec.get("unused"), None);
        assert_eq!(draft.notes, ["the value nameOverride is no field, for other children come with another one"]);
        Ok(())
    }

    #[test]
    fn a_value_that_only_a_switched_off_part_reads_is_found() {
        assert_eq!(
            cel(&json!({"a": ["it's", 1, true], "b": "x-zq7release"})),
            "{'a': ['it\\'s', 1, true], 'b': 'x-' + schema.metadata.name}"
        );
    }
}
