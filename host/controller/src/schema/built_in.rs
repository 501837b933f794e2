//! The built-in table of the core kinds: their keyed lists, sets and atomic maps. Used without an API server (`pilothouse
//! render`) or if the API server serves no OpenAPI. The table leaves out most atomic lists, which are the default, and everything
//! below them. A test compares it with a real API server.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::Value;

use super::{Edge, Flags, List, Node, Schema, build::Builder};

/// The value of a field.
enum FieldType {
    /// An object of a type.
    Object(&'static str),
    /// An atomic object of a type.
    AtomicObject(&'static str),
    /// A list of objects of a type, with its keys. `protocol=TCP` is a key with a default.
    Keyed(&'static str, &'static [&'static str]),
    /// A set of scalars.
    Set,
    /// An atomic list.
    List,
    /// A scalar that is no quantity, although fields with this name often are.
    Scalar,
    /// A map of scalars.
    Map,
    /// An atomic map of scalars.
    AtomicMap,
}

use FieldType::{AtomicMap, AtomicObject, Keyed, List as AtomicList, Map, Object, Scalar, Set};

/// The name of a type and its known fields. A tuple, so that the table below stays readable.
type Type = (&'static str, &'static [(&'static str, FieldType)]);

/// The kinds: API version, kind, and the name of the type.
const KINDS: [(&str, &str, &str); 14] = [
    ("v1", "ConfigMap", "Data"),
    ("v1", "Pod", "Pod"),
    ("v1", "PodTemplate", "PodTemplate"),
    ("v1", "ReplicationController", "ReplicationController"),
    ("v1", "Secret", "Data"),
    ("v1", "Service", "Service"),
    ("v1", "ServiceAccount", "ServiceAccount"),
    ("apps/v1", "DaemonSet", "Workload"),
    ("apps/v1", "Deployment", "Workload"),
    ("apps/v1", "ReplicaSet", "Workload"),
    ("apps/v1", "StatefulSet", "Workload"),
    ("batch/v1", "CronJob", "CronJob"),
    ("batch/v1", "Job", "Job"),
    ("networking.k8s.io/v1", "NetworkPolicy", "NetworkPolicy"),
];

/// The type of all other kinds.
const ANY: &str = "Any";

const TYPES: [Type; 28] = [
    (ANY, &[("metadata", Object("ObjectMeta"))]),
    (
        "ObjectMeta",
        &[("annotations", Map), ("finalizers", Set), ("labels", Map), ("ownerReferences", Keyed("", &["uid"]))],
    ),
    ("LabelSelector", &[("matchExpressions", AtomicList), ("matchLabels", Map)]),
    ("Status", &[("conditions", Keyed("", &["type"]))]),
    ("Pod", &[("metadata", Object("ObjectMeta")), ("spec", Object("PodSpec")), ("status", Object("Status"))]),
    ("PodTemplate", &[("metadata", Object("ObjectMeta")), ("template", Object("PodTemplateSpec"))]),
    ("PodTemplateSpec", &[("metadata", Object("ObjectMeta")), ("spec", Object("PodSpec"))]),
    (
        "PodSpec",
        &[
            ("containers", Keyed("Container", &["name"])),
            ("ephemeralContainers", Keyed("Container", &["name"])),
            ("hostAliases", Keyed("", &["ip"])),
            ("imagePullSecrets", Keyed("", &["name"])),
            ("initContainers", Keyed("Container", &["name"])),
            ("nodeSelector", AtomicMap),
            ("resourceClaims", Keyed("", &["name"])),
            ("schedulingGates", Keyed("", &["name"])),
            ("topologySpreadConstraints", Keyed("TopologySpread", &["topologyKey", "whenUnsatisfiable"])),
            ("resources", Object("Resources")),
            ("volumes", Keyed("Volume", &["name"])),
        ],
    ),
    ("TopologySpread", &[("labelSelector", AtomicObject("LabelSelector"))]),
    ("Data", &[("data", Map), ("metadata", Object("ObjectMeta"))]),
    ("Volume", &[("ephemeral", Object("EphemeralVolume"))]),
    ("EphemeralVolume", &[("volumeClaimTemplate", Object("VolumeClaimTemplate"))]),
    ("VolumeClaimTemplate", &[("metadata", Object("ObjectMeta"))]),
    ("EnvVar", &[("value", Scalar)]),
    (
        "Container",
        &[
            ("env", Keyed("EnvVar", &["name"])),
            ("ports", Keyed("", &["containerPort", "protocol=TCP"])),
            ("resources", Object("Resources")),
            ("volumeDevices", Keyed("", &["devicePath"])),
            ("volumeMounts", Keyed("", &["mountPath"])),
        ],
    ),
    ("Resources", &[("claims", Keyed("", &["name"]))]),
    ("Workload", &[("metadata", Object("ObjectMeta")), ("spec", Object("WorkloadSpec")), ("status", Object("Status"))]),
    ("WorkloadSpec", &[("selector", AtomicObject("LabelSelector")), ("template", Object("PodTemplateSpec"))]),
    (
        "ReplicationController",
        &[
            ("metadata", Object("ObjectMeta")),
            ("spec", Object("ReplicationControllerSpec")),
            ("status", Object("Status")),
        ],
    ),
    ("ReplicationControllerSpec", &[("selector", AtomicMap), ("template", Object("PodTemplateSpec"))]),
    ("Job", &[("metadata", Object("ObjectMeta")), ("spec", Object("WorkloadSpec"))]),
    ("CronJob", &[("metadata", Object("ObjectMeta")), ("spec", Object("CronJobSpec"))]),
    ("CronJobSpec", &[("jobTemplate", Object("Job"))]),
    ("Service", &[("metadata", Object("ObjectMeta")), ("spec", Object("ServiceSpec")), ("status", Object("Status"))]),
    ("ServiceSpec", &[("ports", Keyed("", &["port", "protocol=TCP"])), ("selector", AtomicMap)]),
    ("ServiceAccount", &[("metadata", Object("ObjectMeta")), ("secrets", Keyed("", &["name"]))]),
    ("NetworkPolicy", &[("metadata", Object("ObjectMeta")), ("spec", Object("NetworkPolicySpec"))]),
    (
        "NetworkPolicySpec",
        &[
            ("egress", AtomicList),
            ("ingress", AtomicList),
            ("podSelector", AtomicObject("LabelSelector")),
            ("policyTypes", AtomicList),
        ],
    ),
];

/// The schemas of [`KINDS`] in the same order, and the one of all other kinds.
struct Table {
    kinds: Vec<Schema>,
    other: Schema,
}

impl Schema {
    /// The built-in schema of a kind. For kinds that are not in the table it knows the metadata only.
    pub fn built_in(api_version: &str, kind: &str) -> &'static Self {
        static TABLE: LazyLock<Table> = LazyLock::new(Table::new);
        let place = KINDS.iter().position(|(version, name, _)| (*version, *name) == (api_version, kind));
        place.and_then(|place| TABLE.kinds.get(place)).unwrap_or(&TABLE.other)
    }

    /// Whether the table has a kind.
    pub fn is_built_in(api_version: &str, kind: &str) -> bool {
        Self::built_in_kinds().any(|known| known == (api_version, kind))
    }

    /// The kinds of the table: API version and kind.
    pub fn built_in_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
        KINDS.iter().map(|(api_version, kind, _)| (*api_version, *kind))
    }
}

impl Table {
    fn new() -> Self {
        let mut builder = Builder::new();
        // All types get their node first, because they refer to each other in any order.
        let types: BTreeMap<_, _> = TYPES.iter().map(|(name, _)| (*name, builder.reserve())).collect();
        for (name, fields) in &TYPES {
            let fields =
                fields.iter().map(|(field, field_type)| (*field, place(&mut builder, &types, field_type))).collect();
            let node = Node::Object { fields: builder.fields(fields), others: Some(Edge::UNKNOWN) };
            builder.fill(of_type(&types, name).node, node);
        }
        let arena = Arc::new(builder.finish());
        let schema =
            |name| Schema { arena: arena.clone(), root: of_type(&types, name), goes_through_types: name != ANY };
        Self { kinds: KINDS.iter().map(|(_, _, name)| schema(*name)).collect(), other: schema(ANY) }
    }
}

fn of_type(types: &BTreeMap<&str, u32>, name: &str) -> Edge {
    types.get(name).map_or(Edge::UNKNOWN, |node| Edge { node: *node, ..Edge::UNKNOWN })
}

fn place(builder: &mut Builder, types: &BTreeMap<&str, u32>, field_type: &FieldType) -> Edge {
    let flags = match field_type {
        AtomicObject(_) | AtomicMap => Flags::ATOMIC,
        _ => Flags::default(),
    };
    let list = |list| Node::List { items: Edge::UNKNOWN, list };
    let node = match field_type {
        Scalar => return Edge::SCALAR,
        Object(name) | AtomicObject(name) => return Edge { flags, ..of_type(types, name) },
        Keyed(name, keys) => {
            let keys = builder.keys(keys.iter().map(|key| key_and_default(key)));
            Node::List { items: of_type(types, name), list: List::Map(keys) }
        }
        Set => list(List::Set),
        AtomicList => list(List::Atomic),
        Map | AtomicMap => Node::Object { fields: builder.fields(Vec::new()), others: Some(Edge::SCALAR) },
    };
    Edge { node: builder.push(node), flags }
}

fn key_and_default(key: &str) -> (Box<str>, Value) {
    match key.split_once('=') {
        Some((name, default)) => (name.into(), default.into()),
        None => (key.into(), Value::Null),
    }
}
