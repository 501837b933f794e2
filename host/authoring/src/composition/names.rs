//! The names in manifests that follow from the name of an object: those of its children, and where they are mentioned. It knows no values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::node::{Edits, Path, Span, Step, at_mut, leaves};

/// The expression for the object's name.
pub(crate) const NAME: &str = "schema.metadata.name";

/// The same before a name that has nothing of it.
const BEFORE: &str = "schema.metadata.name + '-'";

/// The expression for the object's namespace.
pub(crate) const NAMESPACE: &str = "schema.metadata.namespace";

/// Fields whose texts mention no child, whatever they say.
const OTHERS: &[&str] =
    &["image", "kind", "apiVersion", "command", "args", "imagePullPolicy", "type", "protocol", "path", "mountPath"];

/// Lists of what has names within a manifest.
const INNER: &[&str] = &["containers", "initContainers", "volumes", "ports", "volumeMounts", "volumeDevices", "env"];

/// How names follow from that of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// The name that an object has whose children are called as in the manifests.
    pub(crate) base: String,
    /// Names in the manifests, and what follows the object's name in theirs.
    rests: BTreeMap<String, String>,
    namespace: Option<String>,
}

impl Names {
    /// Those of manifests. The base is what all names begin with, up to a `-`; without that, the most frequent one. What has another
    /// name gets the object's before its own.
    pub(crate) fn of(children: &[Value], namespace: Option<&str>) -> Self {
        let names: Vec<&str> = children.iter().filter_map(|child| child["metadata"]["name"].as_str()).collect();
        let base = common(&names).unwrap_or_else(|| most_frequent(&names));
        let rest = |name: &&str| {
            let rest = match name.strip_prefix(&base) {
                Some(rest) if rest.is_empty() || rest.starts_with('-') => rest.to_owned(),
                _ => format!("-{name}"),
            };
            ((*name).to_owned(), rest)
        };
        Self { rests: names.iter().map(rest).collect(), base, namespace: namespace.map(str::to_owned) }
    }

    /// What follows the object's name in that of a child.
    pub(crate) fn rest(&self, child: &Value) -> &str {
        let name = child["metadata"]["name"].as_str().unwrap_or_default();
        self.rests.get(name).map_or("", String::as_str)
    }

    /// Where names stand in a child.
    pub(crate) fn edits(&self, child: &Value) -> Edits {
        let mut edits = Edits::default();
        for (path, value) in leaves(child) {
            let Some(text) = value.as_str().filter(|_| !is_other(&path)) else { continue };
            for mention in self.mentions(text) {
                // Where two overlap, the longer one came first.
                let (from, to) = (mention.from, mention.to);
                edits.span(path.clone(), Span { from, to, expression: mention.base.to_owned() });
            }
        }
        edits
    }

    /// The child as it is for an object with the base as its name: names that had nothing of the base have it before them.
    pub(crate) fn renamed(&self, child: &Value) -> Value {
        let mut renamed = child.clone();
        for (path, value) in leaves(child) {
            let Some(text) = value.as_str().filter(|_| !is_other(&path)) else { continue };
            let mut mentions = self.mentions(text);
            mentions.sort_by_key(|mention| std::cmp::Reverse(mention.from));
            let mut text = text.to_owned();
            for mention in mentions {
                if mention.is_added {
                    text.insert_str(mention.from, &format!("{}-", self.base));
                }
            }
            if let Some(place) = at_mut(&mut renamed, &path) {
                *place = Value::String(text);
            }
        }
        renamed
    }

    /// The names in a text: the whole of it, or the host in an address.
    fn mentions(&self, text: &str) -> Vec<Mention> {
        let mut found: Vec<Mention> = Vec::new();
        let mut names: Vec<_> = self.rests.iter().collect();
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for (name, rest) in names {
            for (from, _) in text.match_indices(name.as_str()) {
                let to = from + name.len();
                let is_taken = found.iter().any(|other| from < other.to && other.from < to);
                if is_taken || !is_host(text, from, to) {
                    continue;
                }
                let is_added = *rest == format!("-{name}") && !name.starts_with(&format!("{}-", self.base));
                let base_end = if is_added { from } else { from + self.base.len() };
                found.push(Mention { from, to: base_end, base: if is_added { BEFORE } else { NAME }, is_added });
                // The rest of the name is taken, too.
                found.push(Mention { from: base_end, to, base: "", is_added: false });
            }
        }
        found.retain(|mention| !mention.base.is_empty());
        let namespace = self.namespace.as_deref().unwrap_or_default();
        if !namespace.is_empty() && !found.is_empty() {
            let with_dot = format!(".{namespace}.svc");
            found.extend(text.match_indices(&with_dot).map(|(from, _)| Mention {
                from: from + 1,
                to: from + 1 + namespace.len(),
                base: NAMESPACE,
                is_added: false,
            }));
        }
        found
    }
}

/// A place in a text that follows from the object's metadata.
struct Mention {
    from: usize,
    to: usize,
    base: &'static str,
    /// Whether the manifests do not have it there.
    is_added: bool,
}

/// Whether a part of a text stands where a name or the host of an address does.
fn is_host(text: &str, from: usize, to: usize) -> bool {
    let before = text.get(..from).unwrap_or_default();
    let after = text.get(to..).unwrap_or_default();
    let begins = before.is_empty() || before.ends_with("//") || before.ends_with('@') || before.ends_with(',');
    let is_scheme = after.starts_with("://");
    let ends = after.is_empty() || after.starts_with([':', '/', ',']) || after.starts_with(".svc") || is_domain(after);
    begins && ends && !is_scheme
}

/// `.NAMESPACE.svc` and what may follow.
fn is_domain(after: &str) -> bool {
    let mut labels = after.split('.').skip(1);
    labels.next().is_some() && labels.next().is_some_and(|label| label.split([':', '/']).next() == Some("svc"))
}

fn is_other(path: &Path) -> bool {
    let field = path.iter().rev().find_map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        Step::Element(_) => None,
    });
    if field.is_some_and(|name| OTHERS.contains(&name)) {
        return true;
    }
    // containers[0].name: the name of something in the manifest itself.
    match path.as_slice() {
        [.., Step::Field(list), Step::Element(_), Step::Field(name)] => {
            (name == "name" || name == "mountPath") && INNER.contains(&list.as_str())
        }
        _ => false,
    }
}

/// What all names begin with, up to the end of one of them or a `-`.
fn common(names: &[&str]) -> Option<String> {
    let first = names.iter().min_by_key(|name| name.len())?;
    let ends = first.match_indices('-').map(|(at, _)| at).chain([first.len()]);
    let is_common = |prefix: &str| {
        names.iter().all(|name| name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
    };
    let prefixes: Vec<_> = ends.filter_map(|end| first.get(..end)).filter(|prefix| is_common(prefix)).collect();
    prefixes.last().map(|prefix| (*prefix).to_owned())
}

/// The most frequent name; of several, the first.
fn most_frequent(names: &[&str]) -> String {
    let count = |name: &str| names.iter().filter(|other| **other == name).count();
    let most = names.iter().map(|name| count(name)).max().unwrap_or_default();
    names.iter().find(|name| count(name) == most).map(|name| (*name).to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(names: &[&str]) -> Names {
        let children: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        Names::of(&children, Some("prod"))
    }

    #[test]
    fn the_base_is_what_names_have_in_common() {
        for (given, base) in [
            (&["shop-web", "shop-worker"][..], "shop"),
            (&["shop", "shop-web"], "shop"),
            (&["my-shop-web", "my-shop-db"], "my-shop"),
            (&["web", "web", "redis"], "web"),
            (&["webshop", "web"], "webshop"),
            (&["web"], "web"),
        ] {
            assert_eq!(names(given).base, base, "{given:?}");
        }
    }

    #[test]
    fn names_are_found_where_they_are_mentioned() {
        let names = names(&["web", "web", "web-config", "redis"]);
        let child = json!({
            "kind": "web",
            "metadata": {"name": "web-config", "labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "web", "image": "web", "env": [{"name": "URL", "value": "redis://redis:6379/web"}]}],
                "host": "web.prod.svc.cluster.local", "other": "webs", "text": "the web", "ref": {"name": "redis"}, "price": "${web}",
            },
        });
        let expected = json!({
            "kind": "web",
            "metadata": {"name": "${schema.metadata.name}-config", "labels": {"app": "${schema.metadata.name}"}},
            "spec": {
                "containers": [{
                    "name": "web", "image": "web", "env": [{"name": "URL", "value": "redis://${schema.metadata.name}redis:6379/web"}],
                }],
                "host": "${schema.metadata.name}.${schema.metadata.namespace}.svc.cluster.local", "other": "webs", "text": "the web",
                "ref": {"name": "${schema.metadata.name}redis"}, "price": "$${web}",
            },
        });
        let template = names.edits(&child).template(&child);
        let with_dash = expected.to_string().replace("name}redis", "name + '-'}redis");
        assert_eq!(template.to_string(), with_dash);
        let renamed = names.renamed(&child);
        assert_eq!(
            (&renamed["spec"]["ref"]["name"], &renamed["metadata"]["name"]),
            (&json!("web-redis"), &json!("web-config"))
        );
        assert_eq!(renamed["spec"]["containers"][0]["env"][0]["value"], "redis://web-redis:6379/web");
        assert_eq!((names.rest(&child), names.base.as_str()), ("-config", "web"));
    }
}
