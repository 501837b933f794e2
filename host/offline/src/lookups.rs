//! Answers a plugin's lookups from given objects, as far as its manifest lets it look. Permissions of an account and the namespaces of
//! a `Plugin` need a cluster and are not checked.

use std::sync::Arc;

use pilothouse_controller::projection::Projection;
use pilothouse_engine::{
    Answer, Lookup, Lookups, Query, Scope, Selector, Target,
    contract::{KindRef, LookupError},
};
use serde_json::{Value, json};

use crate::served::kind_of;

/// Given objects, and what the manifest declares.
pub(crate) struct GivenLookups {
    /// The namespace of the object being reconciled; empty if it is cluster-scoped.
    pub(crate) own_namespace: Arc<str>,
    /// The lookups of the manifest.
    pub(crate) declared: Vec<Lookup>,
    /// The objects of the cluster.
    pub(crate) objects: Vec<Value>,
}

impl GivenLookups {
    /// The namespace in which a query looks; none for all.
    fn namespace<'a>(&'a self, query: &'a Query, declared: &Lookup) -> Result<Option<&'a str>, LookupError> {
        let denied = |why: &str| Err(LookupError::Denied(format!("a lookup of {query} {why}")));
        let is_cluster_scoped = self.own_namespace.is_empty();
        match &query.scope {
            Scope::Namespace(namespace)
                if !is_cluster_scoped && **namespace != *self.own_namespace && !declared.all_namespaces =>
            {
                denied(
                    "is about another namespace, which needs `allNamespaces` in the `lookups` of the plugin's manifest",
                )
            }
            Scope::Namespace(namespace) => Ok(Some(namespace)),
            Scope::OwnNamespace | Scope::OwnNamespaceIfAny if !is_cluster_scoped => Ok(Some(&self.own_namespace)),
            Scope::OwnNamespaceIfAny => Ok(None),
            Scope::OwnNamespace => denied("is about the object's own namespace, and the object is cluster-scoped"),
            Scope::AllNamespaces if declared.all_namespaces => Ok(None),
            Scope::AllNamespaces => {
                denied("in all namespaces needs `allNamespaces` in the `lookups` of the plugin's manifest")
            }
        }
    }

    fn find(&self, query: &Query) -> Result<Vec<&Value>, LookupError> {
        let kind = &query.kind;
        let Some(declared) = self.declared.iter().find(|declared| declared.kind == *kind) else {
            return Err(LookupError::Denied(format!(
                "the plugin's manifest declares no lookup of {kind}; add it to the `lookups` there"
            )));
        };
        let namespace = if kind.is_known_cluster_scoped() { None } else { self.namespace(query, declared)? };
        // The cache of a cluster would not have the others.
        let confined =
            Selector::parse(&declared.label_selector).map_err(|error| LookupError::Denied(error.to_string()))?;
        let in_namespace =
            |object: &&Value| namespace.is_none_or(|wanted| namespace_of(object).is_none_or(|found| found == wanted));
        let of_kind = self.objects.iter().filter(|object| kind_of(object) == *kind).filter(in_namespace);
        let of_kind = of_kind.filter(|object| confined.matches(|key| label(object, key)));
        let mut found: Vec<_> = match &query.target {
            Target::Name(name) => of_kind.filter(|object| name_of(object) == Some(name)).take(1).collect(),
            Target::Labels(selector) => {
                let selector = Selector::parse(selector).map_err(|error| LookupError::Denied(error.to_string()))?;
                of_kind.filter(|object| selector.matches(|key| label(object, key))).collect()
            }
        };
        found.sort_by_key(|object| (namespace_of(object), name_of(object)));
        Ok(found)
    }
}

impl Lookups for GivenLookups {
    fn answer(&self, query: &Query, limit: usize) -> Result<Answer, LookupError> {
        let projection = (!query.fields.is_empty()).then(|| Projection::showing(&query.fields));
        let is_cut = self.declared.iter().any(|declared| declared.kind == query.kind && declared.metadata_only);
        let text = |object: &Value| {
            let whole = if is_cut { metadata_of(object).to_string() } else { object.to_string() };
            projection.as_ref().map_or_else(|| whole.clone(), |projection| projection.of(&whole.as_str().into()).text)
        };
        let objects: Vec<_> = self.find(query)?.into_iter().map(text).collect();
        if objects.iter().map(String::len).sum::<usize>() > limit {
            return Err(LookupError::TooLarge(format!(
                "a lookup of {query} finds more than the lookups of one call may; ask for fewer objects, or only for \
                 some of their fields"
            )));
        }
        Ok(Answer::of_texts(objects))
    }
}

/// Whether the manifest says nothing of a kind that is given to look up: the plugin will not see it.
pub(crate) fn undeclared(declared: &[Lookup], objects: &[Value]) -> Option<KindRef> {
    objects.iter().map(kind_of).find(|kind| declared.iter().all(|declared| declared.kind != *kind))
}

fn metadata_of(object: &Value) -> Value {
    json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": object["metadata"]})
}

fn name_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/name").and_then(Value::as_str)
}

fn namespace_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/namespace").and_then(Value::as_str)
}

fn label<'o>(object: &'o Value, key: &str) -> Option<&'o str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_finds_what_the_manifest_confines_it_to() -> Result<(), LookupError> {
        let kind = KindRef::new("v1", "Secret");
        let secret = |name: &str, shared: &str| {
            let metadata = json!({"name": name, "namespace": "ns", "labels": {"shared": shared}});
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"key": "eA=="}})
        };
        let (label_selector, metadata_only) = ("shared=yes".to_owned(), true);
        let lookups = GivenLookups {
            own_namespace: "ns".into(),
            declared: vec![Lookup { label_selector, metadata_only, ..kind.clone().into() }],
            objects: vec![secret("ours", "yes"), secret("theirs", "no")],
        };
        let found = |name: &str| lookups.answer(&Query::by_name(kind.clone(), Scope::OwnNamespace, name), 1 << 20);
        assert!(found("theirs")?.objects.is_empty());
        let ours = found("ours")?.objects.join("");
        assert!(ours.contains(r#""name":"ours""#) && !ours.contains("eA=="), "{ours}");
        Ok(())
    }
}
