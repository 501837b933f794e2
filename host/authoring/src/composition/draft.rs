//! A composition in the making: its children, the fields of its spec, and the cases that show that it makes what was given. It writes no
//! file.

use serde_json::{Value, json};

use super::fields::Fields;

/// What a composition is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    /// The children.
    pub(crate) resources: Vec<Resource>,
    /// The fields of the spec.
    pub(crate) fields: Fields,
    /// What becomes of which objects. The first is the sample object.
    pub(crate) cases: Vec<Case>,
    /// What its author should know.
    pub(crate) notes: Vec<String>,
}

/// A child.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// Its name in expressions.
    pub(crate) id: String,
    /// The manifest with expressions.
    pub(crate) template: Value,
    /// Expressions that are all true where there is such a child.
    pub(crate) include_when: Vec<String>,
}

/// An object, and the children that are given for it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// What it shows.
    pub(crate) title: String,
    /// The object's name.
    pub(crate) name: String,
    /// The object's namespace.
    pub(crate) namespace: String,
    /// Its spec.
    pub(crate) spec: Value,
    /// The children, in the order of the resources.
    pub(crate) children: Vec<Value>,
}

impl Draft {
    /// The resources, as a composition has them.
    pub(crate) fn resources(&self) -> Value {
        let of = |resource: &Resource| {
            let mut made = json!({"id": resource.id, "template": resource.template});
            if !resource.include_when.is_empty() {
                let conditions = resource.include_when.iter().map(|condition| format!("${{{condition}}}"));
                made["includeWhen"] = conditions.collect();
            }
            made
        };
        self.resources.iter().map(of).collect()
    }
}

/// A name for each child: its kind, and what is its own of its name where that is not enough.
pub(crate) fn ids(children: &[(&Value, &str)]) -> Vec<String> {
    let kind = |child: &Value| lower_camel(child["kind"].as_str().unwrap_or_default());
    let mut found: Vec<String> = Vec::new();
    for (child, rest) in children {
        let kind_of_it = kind(child);
        let is_only = children.iter().filter(|(other, _)| kind(other) == kind_of_it).count() == 1;
        let wished = if is_only { kind_of_it } else { lower_camel(&format!("{kind_of_it}-{rest}")) };
        let (mut id, mut number) = (wished.clone(), 2u32);
        while found.contains(&id) || ["schema", "each", "in", "namespace"].contains(&id.as_str()) {
            id = format!("{wished}{number}");
            number += 1;
        }
        found.push(id);
    }
    found
}

/// As a field of a spec, such as `myShop` of `my-shop`.
pub(crate) fn lower_camel(name: &str) -> String {
    let mut made = String::new();
    for word in name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        let mut letters = word.chars();
        let first = letters.next();
        match made.is_empty() {
            true => made.extend(first.map(|first| first.to_ascii_lowercase())),
            false => made.extend(first.map(|first| first.to_ascii_uppercase())),
        }
        made.extend(letters);
    }
    if made.starts_with(|first: char| first.is_ascii_digit()) { format!("v{made}") } else { made }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_called_by_its_kind_and_by_its_name_where_there_are_more() {
        let (deployment, map) = (json!({"kind": "Deployment"}), json!({"kind": "ConfigMap"}));
        let children = [(&deployment, "-web"), (&deployment, "-my-worker"), (&map, ""), (&deployment, "-web")];
        assert_eq!(ids(&children), ["deploymentWeb", "deploymentMyWorker", "configMap", "deploymentWeb2"]);
        assert_eq!(lower_camel("3-scale"), "v3Scale");
    }
}
