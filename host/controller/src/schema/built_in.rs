//! What is known of the core kinds without asking: which of their lists and maps do not merge as others do. Stands in
//! where there is no API server, or where it does not tell. It leaves out whatever is an atomic list, and whatever comes
//! only below one. A test compares it with a real API server.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::Value;

use super::{Edge, List, Marks, Node, Schema, build::Builder};

/// What a field holds.
enum Holds {
    /// An object of a type.
    Object(&'static str),
    /// An object of a type that is one value.
    Whole(&'static str),
    /// A list of objects of a type, with its keys; `protocol=TCP` for one with a default.
    Keyed(&'static str, &'static [&'static str]),
    /// A set of scalars.
    Set,
    /// An atomic list.
    List,
    /// A scalar, and no quantity, though its name may say so.
    Scalar,
    /// A map of scalars.
    Map,
    /// A map of scalars that is one value.
    WholeMap,
}

use Holds::{Keyed, List as AtomicList, Map, Object, Scalar, Set, Whole, WholeMap};

/// A type and those of its fields that are known.
type Type = (&'static str, &'static [(&'static str, Holds)]);

/// The kinds and their types.
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

/// What all kinds have.
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
            ("nodeSelector", WholeMap),
            ("resourceClaims", Keyed("", &["name"])),
            ("schedulingGates", Keyed("", &["name"])),
            ("topologySpreadConstraints", Keyed("TopologySpread", &["topologyKey", "whenUnsatisfiable"])),
            ("resources", Object("Resources")),
            ("volumes", Keyed("Volume", &["name"])),
        ],
    ),
    ("TopologySpread", &[("labelSelector", Whole("LabelSelector"))]),
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
    ("WorkloadSpec", &[("selector", Whole("LabelSelector")), ("template", Object("PodTemplateSpec"))]),
    (
        "ReplicationController",
        &[
            ("metadata", Object("ObjectMeta")),
            ("spec", Object("ReplicationControllerSpec")),
            ("status", Object("Status")),
        ],
    ),
    ("ReplicationControllerSpec", &[("selector", WholeMap), ("template", Object("PodTemplateSpec"))]),
    ("Job", &[("metadata", Object("ObjectMeta")), ("spec", Object("WorkloadSpec"))]),
    ("CronJob", &[("metadata", Object("ObjectMeta")), ("spec", Object("CronJobSpec"))]),
    ("CronJobSpec", &[("jobTemplate", Object("Job"))]),
    ("Service", &[("metadata", Object("ObjectMeta")), ("spec", Object("ServiceSpec")), ("status", Object("Status"))]),
    ("ServiceSpec", &[("ports", Keyed("", &["port", "protocol=TCP"])), ("selector", WholeMap)]),
    ("ServiceAccount", &[("metadata", Object("ObjectMeta")), ("secrets", Keyed("", &["name"]))]),
    ("NetworkPolicy", &[("metadata", Object("ObjectMeta")), ("spec", Object("NetworkPolicySpec"))]),
    (
        "NetworkPolicySpec",
        &[
            ("egress", AtomicList),
            ("ingress", AtomicList),
            ("podSelector", Whole("LabelSelector")),
            ("policyTypes", AtomicList),
        ],
    ),
];

/// The schemas of `KINDS`, in their order, and the one of all other kinds.
struct Table {
    kinds: Vec<Schema>,
    other: Schema,
}

impl Schema {
    /// What is known of a kind without asking: much of a core kind, of others their metadata.
    pub fn built_in(api_version: &str, kind: &str) -> &'static Self {
        static TABLE: LazyLock<Table> = LazyLock::new(Table::new);
        let place = KINDS.iter().position(|(version, name, _)| (*version, *name) == (api_version, kind));
        place.and_then(|place| TABLE.kinds.get(place)).unwrap_or(&TABLE.other)
    }

    /// Whether the table has a kind, and not only the metadata that all kinds have.
    pub fn is_built_in(api_version: &str, kind: &str) -> bool {
        Self::built_in_kinds().any(|known| known == (api_version, kind))
    }

    /// The kinds that [`Schema::built_in`] knows more of than their metadata: API version and kind.
    pub fn built_in_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
        KINDS.iter().map(|(api_version, kind, _)| (*api_version, *kind))
    }
}

impl Table {
    fn new() -> Self {
        let mut builder = Builder::new();
        let types: BTreeMap<_, _> = TYPES.iter().map(|(name, _)| (*name, builder.reserve())).collect();
        for (name, fields) in &TYPES {
            let fields = fields.iter().map(|(field, holds)| (*field, place(&mut builder, &types, holds))).collect();
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

fn place(builder: &mut Builder, types: &BTreeMap<&str, u32>, holds: &Holds) -> Edge {
    let marks = match holds {
        Whole(_) | WholeMap => Marks::ATOMIC,
        _ => Marks::default(),
    };
    let list = |list| Node::List { items: Edge::UNKNOWN, list };
    let node = match holds {
        Scalar => return Edge::SCALAR,
        Object(name) | Whole(name) => return Edge { marks, ..of_type(types, name) },
        Keyed(name, keys) => {
            let keys = builder.keys(keys.iter().map(|key| key_and_default(key)));
            Node::List { items: of_type(types, name), list: List::Map(keys) }
        }
        Set => list(List::Set),
        AtomicList => list(List::Atomic),
        Map | WholeMap => Node::Object { fields: builder.fields(Vec::new()), others: Some(Edge::SCALAR) },
    };
    Edge { node: builder.push(node), marks }
}

fn key_and_default(key: &str) -> (Box<str>, Value) {
    match key.split_once('=') {
        Some((name, default)) => (name.into(), default.into()),
        None => (key.into(), Value::Null),
    }
}
