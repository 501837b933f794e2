//! From a configuration to a composition that is checked: all names are there, all expressions are in the language, and nothing reads itself in a
//! circle. What is wrong is told all at once, each with its place. Evaluates nothing.

mod checks;
mod order;

use pilothouse_sdk::raw::KindRef;
use serde_json::Value;

use self::checks::{check_conditions, check_head, check_kinds, check_status, check_template};
use crate::config::{ConditionConfig, Config, LookupConfig, MissingConfig, ResourceConfig, VariableConfig};
use crate::parts::{Composition, Condition, EACH, Lookup, Node, Resource, SCHEMA, Which};
use crate::problem::{Path, Problem, meant};
use crate::template::{Compiled, Compiler, Template};

/// Compiles and checks a configuration, JSON text.
///
/// # Errors
/// All that is wrong with it.
pub fn compile(config: &str) -> Result<Composition, Vec<Problem>> {
    let mut json = serde_json::Deserializer::from_str(config);
    let config: Config = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { Path::default() } else { Path::of(&path) };
        vec![Problem::at(&path, in_words(&error.into_inner()))]
    })?;
    let mut problems = Vec::new();
    let composition = Building { problems: &mut problems }.composition(config);
    if problems.is_empty() { Ok(composition) } else { Err(problems) }
}

/// A configuration on the way to a composition.
struct Building<'b> {
    problems: &'b mut Vec<Problem>,
}

impl Building<'_> {
    fn composition(mut self, config: Config) -> Composition {
        let Config { name, version, kind, lookups, variables, resources, status, conditions } = config;
        check_head(&name, &kind, self.problems);
        let ids = self.ids(&lookups, &variables, &resources);
        let names: Vec<_> = std::iter::once(SCHEMA).chain(ids.iter().map(String::as_str)).collect();
        let mut nodes = Vec::new();
        for (place, lookup) in lookups.into_iter().enumerate() {
            nodes.push(Node::Lookup(self.lookup(&Path::of("lookups").element(place), lookup, &names)));
        }
        for (place, variable) in variables.into_iter().enumerate() {
            let path = Path::of("variables").element(place).field("value");
            let value = self.over(&names).template(&path, &variable.value);
            nodes.push(Node::Variable { path, value });
        }
        for (place, resource) in resources.into_iter().enumerate() {
            nodes.push(Node::Resource(self.resource(&Path::of("resources").element(place), resource, &names)));
        }
        check_kinds(&kind, &nodes, self.problems);
        check_status(&status, self.problems);
        check_conditions(&conditions, self.problems);
        let path = Path::of("status");
        let status =
            status.iter().map(|(field, value)| (field.clone(), self.over(&names).template(&path.field(field), value)));
        let status = status.collect();
        let conditions = conditions.into_iter().enumerate();
        let conditions = conditions.map(|(place, it)| self.condition(place, it, &names)).collect();
        let reads: Vec<_> = nodes.iter().map(|node| order::reads(node, &ids)).collect();
        let order = order::order(&ids, &reads, self.problems);
        let kind = KindRef { api_version: kind.api_version, kind: kind.kind };
        Composition { name, version, kind, names: ids, nodes, reads, order, status, conditions }
    }

    /// The names of all nodes, checked.
    fn ids(
        &mut self,
        lookups: &[LookupConfig],
        variables: &[VariableConfig],
        resources: &[ResourceConfig],
    ) -> Vec<String> {
        let of = |section: &str, ids: Vec<&String>| -> Vec<(Path, String)> {
            let ids = ids.into_iter().enumerate();
            ids.map(|(place, id)| (Path::of(section).element(place).field("id"), id.clone())).collect()
        };
        let mut all = of("lookups", lookups.iter().map(|it| &it.id).collect());
        all.extend(of("variables", variables.iter().map(|it| &it.id).collect()));
        all.extend(of("resources", resources.iter().map(|it| &it.id).collect()));
        for (place, (path, id)) in all.iter().enumerate() {
            if let Some(what) = checks::fault_of_name(id) {
                self.problems.push(Problem::at(path, what));
            }
            if let Some((other, _)) = all.iter().take(place).find(|(_, known)| known == id) {
                self.problems
                    .push(Problem::at(path, format!("`{id}` is the name at {other} already; take another one")));
            }
        }
        all.into_iter().map(|(_, id)| id).collect()
    }

    fn over<'o>(&'o mut self, names: &'o [&'o str]) -> Compiler<'o> {
        Compiler { names, problems: self.problems }
    }

    fn lookup(&mut self, path: &Path, config: LookupConfig, names: &[&str]) -> Lookup {
        let LookupConfig {
            id: _,
            api_version,
            kind,
            name,
            label_selector,
            namespace,
            all_namespaces,
            optional,
            missing,
        } = config;
        if all_namespaces && (label_selector.is_none() || namespace.is_some()) {
            let what = "allNamespaces goes with labelSelector, and not with namespace";
            self.problems.push(Problem::at(&path.field("allNamespaces"), what));
        }
        let which = match (name, label_selector) {
            (Some(name), None) => Which::Named(self.over(names).template(&path.field("name"), &name)),
            (None, Some(selector)) => {
                let selector = self.over(names).template(&path.field("labelSelector"), &selector);
                Which::Selected { selector, is_everywhere: all_namespaces }
            }
            _ => {
                let what = "it needs either `name`, for one object, or `labelSelector`, for a list of them";
                self.problems.push(Problem::at(path, what));
                Which::Named(Template::Plain(Value::Null))
            }
        };
        let namespace = namespace.map(|it| self.over(names).template(&path.field("namespace"), &it));
        let missing = missing.map(|MissingConfig { reason, message }| {
            let path = path.field("missing");
            self.problems.extend(checks::fault_of_reason(&reason).map(|it| Problem::at(&path.field("reason"), it)));
            (reason, self.over(names).template(&path.field("message"), &message))
        });
        let kind = KindRef { api_version, kind };
        Lookup { path: path.clone(), kind, which, namespace, is_optional: optional, missing }
    }

    fn resource(&mut self, path: &Path, config: ResourceConfig, names: &[&str]) -> Resource {
        let own = config.id.as_str();
        let mut for_each = Vec::new();
        for (place, iterator) in config.for_each.iter().enumerate() {
            let path = path.field("forEach").element(place);
            match (iterator.len(), iterator.iter().next()) {
                (1, Some((name, list))) => {
                    let taken = names.contains(&name.as_str()) || for_each.iter().any(|(known, _)| known == name);
                    let fault = match taken {
                        true => Some(format!("`{name}` is a name already; take another one")),
                        false => checks::fault_of_name(name),
                    };
                    self.problems.extend(fault.map(|what| Problem::at(&path, what)));
                    let list = self.over(names).expression(&path.field(name), list);
                    for_each.extend(list.map(|list| (name.clone(), list)));
                }
                _ => {
                    let what = "it must be one name with a list, such as {port: \"${schema.spec.ports}\"}";
                    self.problems.push(Problem::at(&path, what));
                }
            }
        }
        let iterators = config.for_each.iter().flat_map(|iterator| iterator.keys().map(String::as_str));
        let inside: Vec<_> = names.iter().copied().chain(iterators).collect();
        let template = self.over(&inside).template(&path.field("template"), &config.template);
        let kind = check_template(&path.field("template"), &template, self.problems);
        let include_when = self.expressions(&path.field("includeWhen"), &config.include_when, names);
        let of_each: Vec<_> = names.iter().copied().chain([EACH]).collect();
        let of_ready = if config.for_each.is_empty() { names } else { &of_each };
        let ready_when = self.expressions(&path.field("readyWhen"), &config.ready_when, of_ready);
        if include_when.iter().flat_map(Compiled::references).any(|reference| reference.name == own) {
            let what = format!("`{own}` cannot say by itself whether it is there; read something else");
            self.problems.push(Problem::at(&path.field("includeWhen"), what));
        }
        Resource { path: path.clone(), kind, template, ready_when, include_when, for_each, config }
    }

    fn expressions(&mut self, path: &Path, all: &[Value], names: &[&str]) -> Vec<Compiled> {
        let all = all.iter().enumerate();
        all.filter_map(|(place, it)| self.over(names).expression(&path.element(place), it)).collect()
    }

    fn condition(&mut self, place: usize, config: ConditionConfig, names: &[&str]) -> Condition {
        let path = Path::of("conditions").element(place);
        let ConditionConfig { condition_type, status, reason, message } = config;
        let mut over = self.over(names);
        let status = over.template(&path.field("status"), &status);
        let reason = over.template(&path.field("reason"), &reason);
        let message = message.map(|message| over.template(&path.field("message"), &message));
        Condition { path, condition_type, status, reason, message }
    }
}

/// What serde says, with the name that may have been meant.
fn in_words(error: &serde_json::Error) -> String {
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or(&said).to_owned();
    let mut names = said.split('`').skip(1).step_by(2);
    let written = names.next().filter(|_| said.starts_with("unknown field"));
    match written.and_then(|written| meant(written, names)) {
        Some(name) => format!("{said}; did you mean `{name}`?"),
        None => said,
    }
}
