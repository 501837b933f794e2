//! Manifests that exist: reads them from files, and takes those that can be children of a namespaced object. What is left out is told. It
//! changes nothing of them but what a cluster has added.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use pilothouse_wit::KindRef;
use serde_json::Value;

use crate::yaml::{self, YamlError, list_items};

/// What a cluster writes into metadata.
const WRITTEN: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Says who manages an object. With a composition, that is the host.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Annotations that tools keep their notes in.
const KEPT_BY_TOOLS: &[&str] =
    &["kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"];

/// Manifests of one version of an application.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Manifests {
    /// What can be children, in the order in which it is given.
    pub(crate) children: Vec<Value>,
    /// The namespace that they are in, if they say one.
    pub(crate) namespace: Option<String>,
    /// What was left out, and why.
    pub(crate) left_out: Vec<String>,
}

/// Why manifests cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    /// A file or a folder cannot be read, or is no YAML.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// A document is no object of Kubernetes.
    #[error("'{}': document {number} is no object of Kubernetes: it has no {field}", path.display())]
    NoObject {
        /// The file.
        path: PathBuf,
        /// Which document, from 1 on.
        number: usize,
        /// What it lacks.
        field: &'static str,
    },
    /// A folder is for kustomize.
    #[error(
        "'{folder}' is for kustomize; render it with `kubectl kustomize {folder} >all.yaml`, and give --from-yaml all.yaml",
        folder = .0.display()
    )]
    Kustomize(PathBuf),
    /// There is nothing to make children of.
    #[error("there is nothing in '{}' that can be a child of a namespaced object{left_out}", path.display())]
    Nothing {
        /// The file or the folder.
        path: PathBuf,
        /// What there is instead.
        left_out: LeftOut,
    },
}

/// What was left out of manifests, for people.
#[derive(Debug)]
pub struct LeftOut(Vec<String>);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str(": it has no files *.yaml, *.yml or *.json with objects in them"),
            all => write!(f, ": {}", all.join("; ")),
        }
    }
}

/// Reads the manifests of a file or of a folder: of each of its folders, if it has no files of its own. Each set has the name of its
/// file or folder.
///
/// # Errors
/// [`ManifestsError`] says what to do.
pub(crate) fn read(path: &Path) -> Result<Vec<(String, Manifests)>, ManifestsError> {
    let of_one = |path: &Path, files: Vec<PathBuf>| -> Result<(String, Manifests), ManifestsError> {
        let mut documents = Vec::new();
        for file in files {
            documents.extend(parse(&file, &yaml::read(&file)?)?);
        }
        let found = Manifests::of(documents);
        if found.children.is_empty() {
            return Err(ManifestsError::Nothing { path: path.to_owned(), left_out: LeftOut(found.left_out) });
        }
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok((name, found))
    };
    if !path.is_dir() {
        return Ok(vec![of_one(path, vec![path.to_owned()])?]);
    }
    let (files, folders) = entries(path)?;
    if !files.is_empty() || folders.is_empty() {
        return Ok(vec![of_one(path, files)?]);
    }
    folders.iter().map(|folder| of_one(folder, entries(folder)?.0)).collect()
}

/// The files with manifests and the folders of a folder, in the order of their names.
fn entries(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), ManifestsError> {
    let unreadable = |source| YamlError::Unreadable { path: folder.to_owned(), source };
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if ["kustomization.yaml", "kustomization.yml", "Kustomization"].contains(&name.as_str()) {
            return Err(ManifestsError::Kustomize(folder.to_owned()));
        }
        if name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            folders.push(path);
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json") {
            files.push(path);
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

/// The objects in a text; `file` is where it is from.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Vec<Value>, ManifestsError> {
    let documents = yaml::documents(file, text)?;
    let mut found = Vec::new();
    for (place, document) in documents.into_iter().enumerate().filter(|(_, document)| !document.is_null()) {
        for object in list_items(document) {
            let lacks = ["apiVersion", "kind", "metadata"].into_iter().find(|field| object[*field].is_null());
            if let Some(field) = lacks {
                return Err(ManifestsError::NoObject { path: file.to_owned(), number: place + 1, field });
            }
            found.push(object);
        }
    }
    Ok(found)
}

impl Manifests {
    /// Those of objects that can be children.
    pub(crate) fn of(objects: Vec<Value>) -> Self {
        let mut found = Self::default();
        let namespace_of = |object: &Value| object["metadata"]["namespace"].as_str().map(str::to_owned);
        found.namespace = objects.iter().filter(|object| !is_cluster_scoped(object)).find_map(namespace_of);
        for object in objects {
            match found.why_not(&object) {
                Some(why) => found.left_out.push(format!("{} is left out: {why}", name(&object))),
                None => found.children.push(cleaned(object)),
            }
        }
        found
    }

    fn why_not(&self, object: &Value) -> Option<String> {
        let metadata = &object["metadata"];
        let kind = object["kind"].as_str().unwrap_or_default();
        if kind == "CustomResourceDefinition" {
            return Some("a CRD is installed beside the composition (`kubectl apply -f`)".to_owned());
        }
        if is_cluster_scoped(object) {
            return Some(
                "a namespaced object cannot own what is outside of namespaces; install it by itself".to_owned(),
            );
        }
        if let Some(hook) = metadata["annotations"]["helm.sh/hook"].as_str() {
            return Some(format!("it is a hook of Helm ({hook}), and a composition has no moments at which one runs"));
        }
        if metadata["name"].as_str().is_none_or(str::is_empty) {
            return Some("it has no metadata.name (generateName is for objects that are made once)".to_owned());
        }
        let namespace = metadata["namespace"].as_str();
        if namespace.is_some() && namespace != self.namespace.as_deref() {
            let namespace = namespace.unwrap_or_default();
            return Some(format!(
                "it is in the namespace {namespace}, and an object owns children in its own one only"
            ));
        }
        if kind == "Secret" && object["apiVersion"] == "v1" {
            return Some(
                "a composition and the spec of an object are no place for secret values; create it by itself, under the name that its users read"
                    .to_owned(),
            );
        }
        if has_expression_in_key(object) {
            return Some("a name of one of its fields has `${` in it, which a template cannot have".to_owned());
        }
        None
    }
}

fn has_expression_in_key(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(has_expression_in_key),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains("${") || has_expression_in_key(value)),
        _ => false,
    }
}

/// Kind and name.
pub(crate) fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

fn is_cluster_scoped(object: &Value) -> bool {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    KindRef::new(text("apiVersion"), text("kind")).is_known_cluster_scoped()
}

/// Without what a cluster and tools have written.
fn cleaned(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        WRITTEN.iter().for_each(|field| drop(metadata.remove(*field)));
        for (field, keys) in [("annotations", KEPT_BY_TOOLS), ("labels", &[MANAGED_BY])] {
            if let Some(entries) = metadata.get_mut(field).and_then(Value::as_object_mut) {
                keys.iter().for_each(|key| drop(entries.remove(*key)));
                if entries.is_empty() {
                    metadata.remove(field);
                }
            }
        }
    }
    without_null(object)
}

/// A null in a manifest says that there is no such field.
fn without_null(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name, without_null(value))).collect())
        }
        Value::Array(elements) => elements.into_iter().map(without_null).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, metadata: Value) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata})
    }

    #[test]
    fn what_no_object_of_a_namespace_can_own_is_left_out() {
        let found = Manifests::of(vec![
            object("v1", "Namespace", json!({"name": "shop"})),
            object(
                "apps/v1",
                "Deployment",
                json!({"name": "web", "namespace": "shop", "uid": "1", "labels": {MANAGED_BY: "Helm"}}),
            ),
            object("v1", "Service", json!({"name": "web", "annotations": {"a": "b", KEPT_BY_TOOLS[0]: "{}"}})),
            object("v1", "ConfigMap", json!({"name": "other", "namespace": "kube-system"})),
            object("rbac.authorization.k8s.io/v1", "ClusterRole", json!({"name": "web"})),
            object("batch/v1", "Job", json!({"name": "migrate", "annotations": {"helm.sh/hook": "pre-install"}})),
            object("v1", "Secret", json!({"name": "web"})),
            object("v1", "Pod", json!({"generateName": "web-"})),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd"}, "data": {"${a}": "b"}}),
        ]);
        let kept = [
            object("apps/v1", "Deployment", json!({"name": "web"})),
            object("v1", "Service", json!({"name": "web", "annotations": {"a": "b"}})),
        ];
        assert_eq!((found.children.as_slice(), found.namespace.as_deref()), (&kept[..], Some("shop")));
        let beginnings = [
            "Namespace shop is left out: a namespaced object cannot own",
            "ConfigMap other is left out: it is in the namespace kube-system",
            "ClusterRole web is left out: a namespaced object cannot own",
            "Job migrate is left out: it is a hook of Helm (pre-install)",
            "Secret web is left out: a composition and the spec of an object are no place for secret values",
            "Pod  is left out: it has no metadata.name",
            "ConfigMap odd is left out: a name of one of its fields has `${`",
        ];
        assert_eq!(found.left_out.len(), beginnings.len(), "{:#?}", found.left_out);
        for (said, expected) in found.left_out.iter().zip(beginnings) {
            assert!(said.starts_with(expected), "{said}");
        }
    }

    #[test]
    fn a_folder_is_one_set_or_one_for_each_of_its_folders() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        let text =
            "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]\n---\n---\n";
        for variant in ["dev", "prod"] {
            std::fs::create_dir(root.join(variant))?;
            std::fs::write(root.join(variant).join("all.yaml"), text)?;
        }
        let names = |found: Vec<(String, Manifests)>| found.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(read(root)?), ["dev", "prod"]);
        std::fs::write(root.join("b.json"), r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}"#)?;
        assert_eq!(read(root)?.len(), 1);
        assert_eq!(names(read(&root.join("dev/all.yaml"))?), ["all"]);
        let told = |path: &Path| read(path).err().map(|error| error.to_string()).unwrap_or_default();
        std::fs::write(root.join("dev/all.yaml"), "kind: Deployment\n")?;
        assert!(told(&root.join("dev")).ends_with("document 1 is no object of Kubernetes: it has no apiVersion"));
        std::fs::write(root.join("dev/all.yaml"), "a: [")?;
        assert!(told(&root.join("dev")).contains("is neither YAML nor JSON"));
        std::fs::write(root.join("dev/kustomization.yaml"), "")?;
        assert!(told(&root.join("dev")).contains("render it with `kubectl kustomize "));
        assert!(told(&root.join("nowhere")).starts_with("failed to read"));
        std::fs::create_dir(root.join("empty"))?;
        assert!(told(&root.join("empty")).contains("it has no files *.yaml"));
        Ok(())
    }
}
