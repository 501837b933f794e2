//! A composition of several sets of manifests of one application, such as those for tests and for production: what differs becomes fields,
//! with the values of the first set as defaults. It renders nothing.

use serde_json::{Map, Value};

use super::{
    draft::{Case, Draft, Resource, ids, lower_camel},
    fields::{Field, read, set},
    manifests::Manifests,
    names::Names,
    node::{Path, Step, at, within},
    single::{is_secret, notes},
};

/// Fields whose own fields have names of people's choice: a field of the spec has all names from these on.
const OPEN: &[&str] = &["resources", "env", "annotations", "labels", "data", "nodeSelector"];

/// One set, with the names in it as expressions and as they are.
struct Set {
    title: String,
    names: Names,
    namespace: String,
    /// As they are for an object with the base as its name.
    children: Vec<Value>,
    /// With expressions for names, so that sets can be compared.
    templates: Vec<Value>,
    rests: Vec<String>,
}

/// What differs, and how it is called so far.
struct Difference {
    resource: usize,
    name: Vec<String>,
    values: Vec<Option<Value>>,
    path: Path,
}

/// The composition. There is at least one set.
pub(crate) fn draft(sets: &[(String, Manifests)]) -> Draft {
    let sets: Vec<_> = sets.iter().map(|(title, manifests)| (Set::new(title, manifests), manifests)).collect();
    let mut draft = Draft::default();
    for note in sets.iter().flat_map(|(_, manifests)| &manifests.left_out) {
        if !draft.notes.contains(note) {
            draft.notes.push(note.clone());
        }
    }
    let mut sets: Vec<Set> = sets.into_iter().map(|(set, _)| set).collect();
    // Children by kind and by what is their own of their names; first those of the first set.
    let mut keys: Vec<(String, String)> = Vec::new();
    for set in &sets {
        for key in (0..set.children.len()).map(|place| set.key(place)) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    let places: Vec<Vec<Option<usize>>> =
        keys.iter().map(|key| sets.iter().map(|set| set.find(key)).collect()).collect();
    let mut differences = Vec::new();
    let mut templates = Vec::new();
    for (resource, places) in places.iter().enumerate() {
        let of_set = |(set, place): (&Set, &Option<usize>)| place.and_then(|place| set.templates.get(place).cloned());
        let versions: Vec<_> = sets.iter().zip(places).filter_map(of_set).collect();
        let mut comparison = Comparison { found: Vec::new(), path: Vec::new() };
        comparison.compare(&versions.iter().map(Some).collect::<Vec<_>>());
        for path in comparison.found {
            let values =
                sets.iter().zip(places).map(|(set, place)| Some(at(set.children.get((*place)?)?, &path)?.clone()));
            differences.push(Difference { resource, name: wished(&versions, &path), values: values.collect(), path });
        }
        templates.push(versions.into_iter().next().unwrap_or_default());
    }
    let shown: Vec<_> = keys.iter().zip(&templates).map(|((_, rest), template)| (template, rest.as_str())).collect();
    let ids = ids(&shown);
    keep_secrets(&mut draft, &mut differences, (&mut sets, &places));
    name_all(&mut differences, &keys, sets.first().map_or("", |set| &set.names.base));
    let mut specs = vec![Value::Object(Map::new()); sets.len()];
    let mut include: Vec<Vec<String>> = vec![Vec::new(); keys.len()];
    for (resource, places) in places.iter().enumerate() {
        if places.iter().all(Option::is_some) {
            continue;
        }
        let field = vec![format!("{}Enabled", ids.get(resource).map_or("", String::as_str))];
        let values: Vec<_> = places.iter().map(|place| Value::Bool(place.is_some())).collect();
        let description = "Whether there is such a child.".to_owned();
        draft
            .fields
            .add(field.clone(), Field { description, default: values.first().cloned(), like: Value::Bool(true) });
        specs.iter_mut().zip(&values).for_each(|(spec, value)| set(spec, &field, value.clone()));
        if let Some(conditions) = include.get_mut(resource) {
            conditions.push(read(&field, false));
        }
    }
    for difference in &differences {
        let Difference { resource, name, values, path } = difference;
        if is_mentioning(at(templates.get(*resource).unwrap_or(&Value::Null), path)) {
            draft.notes.push(format!(
                "spec.{} has names in it that do not follow the object's name: an object with another name says others",
                name.join(".")
            ));
        }
        // A set without the child says nothing about its fields.
        let is_child_there =
            |place: usize| places.get(*resource).and_then(|places| places.get(place)).is_some_and(Option::is_some);
        let is_always = values.iter().enumerate().all(|(place, value)| value.is_some() || !is_child_there(place));
        let first = values.iter().flatten().next().cloned().unwrap_or_default();
        let default = is_always.then(|| first.clone());
        draft.fields.add(name.clone(), Field { description: String::new(), default, like: first });
        for (place, (spec, value)) in specs.iter_mut().zip(values).enumerate() {
            let value = value
                .clone()
                .or_else(|| if is_child_there(place) { None } else { values.iter().flatten().next().cloned() });
            value.into_iter().for_each(|value| set(spec, name, value));
        }
        if let Some(template) = templates.get_mut(*resource) {
            replace(template, path, &format!("${{{}}}", read(name, !is_always)));
        }
    }
    for (place, set) in sets.iter().enumerate() {
        let children = places.iter().filter_map(|places| set.children.get((*places.get(place)?)?).cloned());
        draft.cases.push(Case {
            title: format!("an object with the values of {} becomes what its manifests say", set.title),
            name: set.names.base.clone(),
            namespace: set.namespace.clone(),
            spec: specs.get(place).cloned().unwrap_or_default(),
            children: children.collect(),
        });
    }
    for ((id, template), include_when) in ids.into_iter().zip(templates).zip(include) {
        draft.notes.extend(notes(&template, &template));
        draft.resources.push(Resource { id, template, include_when });
    }
    draft
}

/// What looks like a secret becomes no field: it stays as the first set has it, in the template and in all cases.
fn keep_secrets(
    draft: &mut Draft,
    differences: &mut Vec<Difference>,
    (sets, places): (&mut [Set], &[Vec<Option<usize>>]),
) {
    differences.retain(|difference| {
        let Difference { resource, name, values, path } = difference;
        if !name.iter().any(|name| is_secret(name)) && !values.iter().flatten().any(has_secret) {
            return true;
        }
        let what = format!(
            "{} differs and looks like a secret, so it is no field; the composition has that of the first",
            name.join(".")
        );
        draft.notes.push(what);
        let of_resource = places.get(*resource).map_or(&[][..], Vec::as_slice);
        let first =
            of_resource.iter().zip(values).find(|(place, _)| place.is_some()).and_then(|(_, value)| value.clone());
        for (set, place) in sets.iter_mut().zip(of_resource) {
            let child = place.and_then(|place| set.children.get_mut(place));
            child.into_iter().for_each(|child| put(child, path, first.clone()));
        }
        false
    });
}

/// Whether there is a variable in it whose value looks like a secret.
fn has_secret(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(has_secret),
        Value::Object(fields) => {
            let is_named = fields.get("name").and_then(Value::as_str).is_some_and(is_secret);
            (is_named && fields.get("value").is_some_and(Value::is_string)) || fields.values().any(has_secret)
        }
        _ => false,
    }
}

/// Whether there is an expression in a part of a template.
fn is_mentioning(part: Option<&Value>) -> bool {
    match part {
        Some(Value::String(text)) => text.replace("$${", "").contains("${"),
        Some(Value::Array(elements)) => elements.iter().any(|element| is_mentioning(Some(element))),
        Some(Value::Object(fields)) => fields.values().any(|value| is_mentioning(Some(value))),
        _ => false,
    }
}

impl Set {
    fn new(title: &str, manifests: &Manifests) -> Self {
        let names = Names::of(&manifests.children, manifests.namespace.as_deref());
        let templates = manifests.children.iter().map(|child| names.edits(child).template(child));
        Self {
            title: title.to_owned(),
            namespace: manifests.namespace.clone().unwrap_or_else(|| "default".to_owned()),
            children: manifests.children.iter().map(|child| names.renamed(child)).collect(),
            templates: templates.collect(),
            rests: manifests.children.iter().map(|child| names.rest(child).to_owned()).collect(),
            names,
        }
    }

    fn key(&self, place: usize) -> (String, String) {
        let kind = self.children.get(place).map(|child| format!("{} {}", child["apiVersion"], child["kind"]));
        (kind.unwrap_or_default(), self.rests.get(place).cloned().unwrap_or_default())
    }

    fn find(&self, key: &(String, String)) -> Option<usize> {
        (0..self.children.len()).find(|place| self.key(*place) == *key)
    }
}

/// Where versions of one child differ.
struct Comparison {
    found: Vec<Path>,
    path: Path,
}

impl Comparison {
    fn compare(&mut self, versions: &[Option<&Value>]) {
        let Some(first) = versions.first() else { return };
        if versions.iter().all(|version| version == first) {
            return;
        }
        let objects: Option<Vec<_>> = versions.iter().map(|version| version.and_then(Value::as_object)).collect();
        if let Some(objects) = objects {
            let mut names: Vec<_> = objects.iter().flat_map(|fields| fields.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let fields: Vec<_> = objects.iter().map(|fields| fields.get(name)).collect();
                self.within(Step::Field(name.clone()), &fields);
            }
            return;
        }
        let lists: Option<Vec<_>> = versions.iter().map(|version| version.and_then(Value::as_array)).collect();
        let names = |list: &[Value]| list.iter().map(|element| element["name"].clone()).collect::<Vec<_>>();
        match lists {
            Some(lists)
                if lists
                    .iter()
                    .all(|list| list.first().is_some_and(Value::is_object) && names(list) == names(lists[0])) =>
            {
                for place in 0..lists[0].len() {
                    let elements: Vec<_> = lists.iter().map(|list| list.get(place)).collect();
                    self.within(Step::Element(place), &elements);
                }
            }
            _ => self.found.push(self.path.clone()),
        }
    }

    fn within(&mut self, step: Step, versions: &[Option<&Value>]) {
        let mut path = std::mem::take(&mut self.path);
        within(&mut path, step, |path| {
            self.path = path.clone();
            self.compare(versions);
        });
        self.path = path;
    }
}

/// The names of a field: those from an open one on, else the last.
fn wished(versions: &[Value], path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for (length, step) in path.iter().enumerate() {
        match step {
            Step::Field(name) => names.push(name.clone()),
            Step::Element(_) => {
                // An element with a name is called by it; the container is said by the child.
                let element = versions.iter().find_map(|version| at(version, path.get(..=length)?)?["name"].as_str());
                let is_variable = names.last().is_some_and(|last| last == "env");
                names.extend(element.filter(|_| is_variable).map(str::to_owned));
            }
        }
    }
    if names.last().is_some_and(|last| last == "value") && names.iter().any(|name| name == "env") {
        names.pop();
    }
    let from = names.iter().position(|name| OPEN.contains(&name.as_str())).unwrap_or(names.len().saturating_sub(1));
    names.split_off(from)
}

/// Different fields have different names; the same values under one name are one field.
fn name_all(differences: &mut [Difference], keys: &[(String, String)], base: &str) {
    let mut resources: Vec<_> = differences.iter().map(|difference| difference.resource).collect();
    resources.dedup();
    let is_one = resources.len() < 2;
    for place in 0..differences.len() {
        let (before, rest) = differences.split_at_mut(place);
        let Some(own) = rest.first_mut() else { continue };
        let is_taken = |name: &[String]| {
            before.iter().any(|other| {
                (other.name.starts_with(name) || name.starts_with(&other.name))
                    && !(other.name == name && other.values == own.values)
            })
        };
        let key = keys.get(own.resource);
        let component =
            key.map(|(_, rest)| lower_camel(rest)).filter(|name| !name.is_empty()).unwrap_or_else(|| lower_camel(base));
        let kind = key.map(|(kind, _)| lower_camel(kind.rsplit(' ').next().unwrap_or_default())).unwrap_or_default();
        let plain = own.name.clone();
        let with = |prefix: &str| [vec![prefix.to_owned()], plain.clone()].concat();
        let mut candidates = vec![plain.clone()];
        if !is_one {
            candidates.push(with(&component));
        }
        candidates.push(with(&kind));
        candidates.extend((2..100).map(|number| with(&format!("{component}{number}"))));
        own.name = candidates.into_iter().find(|name| !is_taken(name)).unwrap_or(plain);
    }
}

/// Puts a value in a place, or takes it away there.
fn put(value: &mut Value, path: &[Step], new: Option<Value>) {
    match (path, new) {
        ([Step::Field(name)], None) => {
            value.as_object_mut().into_iter().for_each(|fields| drop(fields.remove(name)));
        }
        ([], Some(new)) => *value = new,
        ([Step::Field(name), rest @ ..], new) if value.is_object() => put(&mut value[name], rest, new),
        ([Step::Element(place), rest @ ..], new) => {
            value.get_mut(place).into_iter().for_each(|element| put(element, rest, new.clone()));
        }
        _ => {}
    }
}

/// Puts a text in a place, which need not be there in an object.
fn replace(value: &mut Value, path: &[Step], text: &str) {
    match path {
        [] => *value = Value::String(text.to_owned()),
        [Step::Field(name), rest @ ..] if value.is_object() => {
            if value[name].is_null() {
                value[name] = if rest.is_empty() { Value::Null } else { Value::Object(Map::new()) };
            }
            replace(&mut value[name], rest, text);
        }
        [Step::Element(place), rest @ ..] => {
            value.get_mut(place).into_iter().for_each(|element| replace(element, rest, text))
        }
        [Step::Field(_), ..] => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(name: &str, replicas: i32, image: &str, more: Vec<Value>) -> (String, Manifests) {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [
                {"name": "app", "image": image, "env": [{"name": "LEVEL", "value": if replicas > 1 { "warn" } else { "debug" }}]},
            ]}},
        }});
        (name.to_owned(), Manifests::of([vec![deployment], more].concat()))
    }

    #[test]
    fn what_differs_becomes_fields_with_the_values_of_the_first() {
        let budget =
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "prod-web"}});
        let draft = draft(&[set("dev-web", 1, "web:2", vec![]), set("prod-web", 3, "web:1", vec![budget])]);
        let first =
            json!({"replicas": 1, "image": "web:2", "env": {"LEVEL": "debug"}, "podDisruptionBudgetEnabled": false});
        let second =
            json!({"replicas": 3, "image": "web:1", "env": {"LEVEL": "warn"}, "podDisruptionBudgetEnabled": true});
        assert_eq!(draft.fields.defaults(), first);
        let specs: Vec<_> =
            draft.cases.iter().map(|case| (case.name.as_str(), &case.spec, case.children.len())).collect();
        assert_eq!(specs, [("dev-web", &first, 1), ("prod-web", &second, 2)]);
        let deployment = &draft.resources[0].template["spec"];
        assert_eq!(deployment["replicas"], "${schema.spec.replicas}");
        assert_eq!(deployment["selector"]["matchLabels"]["app"], "${schema.metadata.name}");
        assert_eq!(deployment["template"]["spec"]["containers"][0]["env"][0]["value"], "${schema.spec.env.LEVEL}");
        assert_eq!(draft.resources[1].include_when, ["schema.spec.podDisruptionBudgetEnabled"]);
    }

    #[test]
    fn what_looks_like_a_secret_becomes_no_field() {
        let of = |password: &str, level: &str| {
            let env = json!([{"name": "DB_PASSWORD", "value": password}, {"name": "LEVEL", "value": level}]);
            let pod = json!({"containers": [{"name": "app", "image": "a", "env": env}]});
            Manifests::of(vec![json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": pod})])
        };
        let draft = draft(&[("dev".to_owned(), of("one", "debug")), ("prod".to_owned(), of("two", "info"))]);
        assert_eq!(draft.fields.defaults(), json!({"env": {"LEVEL": "debug"}}));
        let password = |value: &Value| value["spec"]["containers"][0]["env"][0]["value"].clone();
        assert_eq!(
            (password(&draft.resources[0].template), password(&draft.cases[1].children[0])),
            (json!("one"), json!("one"))
        );
        assert!(draft.notes.iter().any(|note| note.starts_with("env.DB_PASSWORD differs and looks like a secret")));
    }

    #[test]
    fn what_only_some_have_is_a_field_that_may_be_missing() {
        let of = |spec: Value| {
            Manifests::of(vec![
                json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}),
            ])
        };
        let draft = draft(&[
            ("dev".to_owned(), of(json!({"type": "ClusterIP", "ports": [1]}))),
            ("prod".to_owned(), of(json!({"type": "ClusterIP", "ports": [1, 2], "clusterIP": "None"}))),
        ]);
        assert_eq!(draft.fields.defaults(), json!({"ports": [1]}));
        assert_eq!(draft.cases[1].spec, json!({"ports": [1, 2], "clusterIP": "None"}));
        let spec =
            json!({"type": "ClusterIP", "ports": "${schema.spec.ports}", "clusterIP": "${schema.spec.?clusterIP}"});
        assert_eq!(draft.resources[0].template["spec"], spec);
    }
}
