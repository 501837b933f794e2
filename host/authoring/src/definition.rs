//! An existing CustomResourceDefinition: finds in a file the kind that a new plugin shall reconcile, with its names and its schema. It asks
//! no cluster and changes no file.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    CustomKind,
    yaml::{self, YamlError, list_items},
};

/// One version of a kind, as a CRD says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The kind.
    pub kind: CustomKind,
    /// The name of the resource.
    pub plural: String,
    /// The name of one.
    pub singular: String,
    /// Short names, for kubectl.
    pub short_names: Vec<String>,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
    /// The schema of its objects.
    pub(crate) schema: Value,
    /// The file, as it is.
    pub(crate) text: String,
}

/// Why a file gives no kind.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// The file cannot be read, or is no YAML.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// There is no CRD in it.
    #[error(
        "there is no CustomResourceDefinition (apiextensions.k8s.io/v1) in '{}'; `kubectl get crd NAME -o yaml` writes one",
        .0.display()
    )]
    None(PathBuf),
    /// A CRD lacks what a CRD has.
    #[error("'{}': a CustomResourceDefinition has no {field}; `kubectl apply --dry-run=server -f` says what else is wrong with it", path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
    },
    /// There are several kinds in it.
    #[error("there are several kinds in '{}'; choose one with --kind: {kinds}", path.display())]
    Several {
        /// The file.
        path: PathBuf,
        /// Those in it.
        kinds: Kinds,
    },
    /// It has other kinds than the one that was asked for.
    #[error("there is no kind {asked} in '{}'; choose one of those in it with --kind: {kinds}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The kind that was asked for.
        asked: CustomKind,
        /// Those in it.
        kinds: Kinds,
    },
    /// Its objects have no spec.
    #[error(
        "the objects of {kind} have no `spec`, and the SDKs read what users want there; make the project with --kind instead, and put the CRD in place of its crd.yaml"
    )]
    NoSpec {
        /// The kind.
        kind: CustomKind,
    },
}

/// Kinds to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds(Vec<CustomKind>);

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join(", "))
    }
}

impl Definition {
    /// Reads the kind in a file with CRDs. `wanted` chooses one of several, or one of its versions; without it, that is the version that is
    /// stored.
    ///
    /// # Errors
    /// [`DefinitionError`] says what to do.
    pub fn read(path: &Path, wanted: Option<&CustomKind>) -> Result<Self, DefinitionError> {
        Self::find(path, yaml::read(path)?, wanted)
    }

    fn find(path: &Path, text: String, wanted: Option<&CustomKind>) -> Result<Self, DefinitionError> {
        let documents = yaml::documents(path, &text)?.into_iter();
        let mut found = Vec::new();
        for definition in documents.flat_map(list_items).filter(is_definition) {
            let of_it =
                versions(&definition).map_err(|field| DefinitionError::Incomplete { path: path.to_owned(), field })?;
            found.push(of_it);
        }
        let mut chosen = choose(path, found, wanted)?;
        let spec = chosen.schema.pointer("/properties/spec");
        if spec.is_none() && !is_free(&chosen.schema) {
            return Err(DefinitionError::NoSpec { kind: chosen.kind });
        }
        chosen.text = text;
        Ok(chosen)
    }

    /// The schema of the spec; an empty one where the CRD leaves it free.
    pub(crate) fn spec(&self) -> Value {
        self.schema.pointer("/properties/spec").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()))
    }
}

/// Whether a schema takes fields that it does not name.
pub(crate) fn is_free(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

/// A version, and whether objects are stored in it.
struct Version {
    definition: Definition,
    is_stored: bool,
}

fn choose(path: &Path, found: Vec<Vec<Version>>, wanted: Option<&CustomKind>) -> Result<Definition, DefinitionError> {
    let kinds = Kinds(found.iter().flatten().map(|version| version.definition.kind.clone()).collect());
    let path = path.to_owned();
    if kinds.0.is_empty() {
        return Err(DefinitionError::None(path));
    }
    if let Some(asked) = wanted {
        let named = found.into_iter().flatten().find(|version| version.definition.kind == *asked);
        let missing = || DefinitionError::Missing { path, asked: asked.clone(), kinds };
        return named.map(|version| version.definition).ok_or_else(missing);
    }
    let mut stored = found.into_iter().filter_map(|mut versions| {
        let place = versions.iter().position(|version| version.is_stored).unwrap_or_default();
        (!versions.is_empty()).then(|| versions.swap_remove(place).definition)
    });
    match (stored.next(), stored.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(DefinitionError::Several { path, kinds }),
    }
}

fn is_definition(document: &Value) -> bool {
    document["apiVersion"] == "apiextensions.k8s.io/v1" && document["kind"] == "CustomResourceDefinition"
}

/// The versions of a CRD that are served, or the field that is missing.
fn versions(definition: &Value) -> Result<Vec<Version>, &'static str> {
    let spec = &definition["spec"];
    let text = |pointer: &str, name: &'static str| spec.pointer(pointer).and_then(Value::as_str).ok_or(name);
    let (group, kind) = (text("/group", "spec.group")?, text("/names/kind", "spec.names.kind")?);
    let plural = text("/names/plural", "spec.names.plural")?;
    let singular = text("/names/singular", "").map_or_else(|_| kind.to_lowercase(), str::to_owned);
    let short_names = spec["names"]["shortNames"].as_array().into_iter().flatten();
    let short_names: Vec<_> = short_names.filter_map(Value::as_str).map(str::to_owned).collect();
    let mut found = Vec::new();
    for version in spec["versions"].as_array().ok_or("spec.versions")? {
        if version["served"] == false {
            continue;
        }
        let name = version["name"].as_str().ok_or("name in spec.versions")?;
        let schema = version.pointer("/schema/openAPIV3Schema").ok_or("schema.openAPIV3Schema in spec.versions")?;
        let kind = CustomKind { group: group.to_owned(), version: name.to_owned(), kind: kind.to_owned() };
        let definition = Definition {
            kind,
            plural: plural.to_owned(),
            singular: singular.clone(),
            short_names: short_names.clone(),
            is_namespaced: spec["scope"] != "Cluster",
            schema: schema.clone(),
            text: String::new(),
        };
        found.push(Version { definition, is_stored: version["storage"] == true });
    }
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// CRDs of other projects, and what is in them.
    pub(crate) const REAL: [(&str, &str, bool); 4] = [
        ("certificate.yaml", "cert-manager.io/v1/Certificate", true),
        ("scaledobject.yaml", "keda.sh/v1alpha1/ScaledObject", true),
        ("httproute.yaml", "gateway.networking.k8s.io/v1/HTTPRoute", true),
        ("gatewayclass.yaml", "gateway.networking.k8s.io/v1beta1/GatewayClass", false),
    ];

    /// One of them.
    pub(crate) fn real(file: &str) -> Result<Definition, DefinitionError> {
        Definition::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/crds").join(file), None)
    }

    fn crd(kind: &str, versions: &str) -> String {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {{group: example.com, scope: Namespaced, \
             names: {{kind: {kind}, plural: things}}, versions: [{versions}]}}\n"
        )
    }

    fn version(name: &str, rest: &str) -> String {
        format!("{{name: {name}, schema: {{openAPIV3Schema: {{properties: {{spec: {{type: object}}}}}}}}, {rest}}}")
    }

    fn told(text: &str, wanted: Option<&str>) -> String {
        let wanted = wanted.and_then(|kind| kind.parse().ok());
        match Definition::find(Path::new("crd.yaml"), text.to_owned(), wanted.as_ref()) {
            Ok(found) => format!("{} {}", found.kind, found.plural),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_kind_is_that_of_the_file() -> Result<(), Box<dyn std::error::Error>> {
        for (file, kind, is_namespaced) in REAL {
            let found = real(file)?;
            assert_eq!((found.kind.to_string().as_str(), found.is_namespaced), (kind, is_namespaced));
            assert!(found.text.contains("CustomResourceDefinition") && found.spec()["type"] == "object");
        }
        let certificate = real("certificate.yaml")?;
        assert_eq!((&*certificate.plural, &*certificate.singular), ("certificates", "certificate"));
        assert_eq!(certificate.short_names, ["cert", "certs"]);
        Ok(())
    }

    #[test]
    fn of_several_kinds_and_versions_one_is_chosen() {
        let one = crd("Thing", &[version("v1", "storage: true"), version("v2", "served: true")].join(","));
        let old = crd("Thing", &[version("v1", "served: false"), version("v2", "storage: true")].join(","));
        let two = format!("{one}---\n{}", crd("Other", &version("v1", "storage: true")));
        let list = format!("{{kind: List, apiVersion: v1, items: [{}]}}", serde_json::json!({}));
        for (text, wanted, expected) in [
            (&*one, None, "example.com/v1/Thing things"),
            (&one, Some("example.com/v2/Thing"), "example.com/v2/Thing things"),
            (&old, None, "example.com/v2/Thing things"),
            (&two, Some("example.com/v1/Other"), "example.com/v1/Other things"),
            (
                &two,
                None,
                "there are several kinds in 'crd.yaml'; choose one with --kind: example.com/v1/Thing, example.com/v2/Thing, example.com/v1/Other",
            ),
            (
                &old,
                Some("example.com/v1/Thing"),
                "there is no kind example.com/v1/Thing in 'crd.yaml'; choose one of those in it with --kind: example.com/v2/Thing",
            ),
            (
                &list,
                None,
                "there is no CustomResourceDefinition (apiextensions.k8s.io/v1) in 'crd.yaml'; `kubectl get crd NAME -o yaml` writes one",
            ),
        ] {
            assert_eq!(told(text, wanted), expected);
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let no_spec = crd("Thing", "{name: v1, schema: {openAPIV3Schema: {properties: {driver: {type: string}}}}}");
        let free = crd("Thing", "{name: v1, schema: {openAPIV3Schema: {x-kubernetes-preserve-unknown-fields: true}}}");
        for (text, expected) in [
            ("a: [", "'crd.yaml' is neither YAML nor JSON: "),
            ("", "there is no CustomResourceDefinition"),
            (&*crd("Thing", "{name: v1}"), "a CustomResourceDefinition has no schema.openAPIV3Schema in spec.versions"),
            (&crd("Thing", "{}").replace("group", "grope"), "a CustomResourceDefinition has no spec.group"),
            (&no_spec, "the objects of example.com/v1/Thing have no `spec`"),
            (&free, "example.com/v1/Thing things"),
        ] {
            assert!(told(text, None).contains(expected), "{}", told(text, None));
        }
        let nowhere = Definition::read(Path::new("/nowhere/crd.yaml"), None);
        assert!(nowhere.is_err_and(|error| error.to_string().starts_with("failed to read '/nowhere/crd.yaml': ")));
    }
}
