//! Who controls an object: the one of its owner references that says so. Labels are no sign of it, for anybody may give an object any
//! label.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The most objects between a workload and its Pods: a group's worker belongs to a StatefulSet, that to the leader's Pod, that to
/// another StatefulSet.
const MAX_BETWEEN: usize = 3;

/// An owner reference.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct OwnerReference {
    /// The kind of the owner.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Whether it controls.
    controller: bool,
}

/// The controller among these owners; none if none of them controls.
pub fn controller(owners: &[OwnerReference]) -> Option<&OwnerReference> {
    owners.iter().find(|owner| owner.controller)
}

/// The metadata of an object that says who it is and who controls it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnedMetadata {
    /// The name of the object.
    pub name: String,
    /// Its UID.
    pub uid: String,
    owner_references: Vec<OwnerReference>,
}

impl OwnedMetadata {
    /// The controller; none if the object has none.
    pub fn controller(&self) -> Option<&OwnerReference> {
        controller(&self.owner_references)
    }

    /// Whether the object of this UID controls it.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller().is_some_and(|controller| controller.uid == uid)
    }
}

/// Who controls whom, by UIDs.
#[derive(Clone, Debug, Default)]
pub struct Controllers(BTreeMap<String, String>);

impl Controllers {
    /// Takes note of the controller of one more object.
    pub fn add(&mut self, uid: &str, controller: Option<&OwnerReference>) {
        if let Some(controller) = controller {
            self.0.insert(uid.to_owned(), controller.uid.clone());
        }
    }

    /// Whether an object that has this controller is of a workload, at whatever remove.
    pub fn lead_to(&self, workload: &str, controller: Option<&OwnerReference>) -> bool {
        let controller = controller.map(|controller| controller.uid.as_str());
        let next = |uid: &&str| self.0.get(*uid).map(String::as_str);
        let mut chain = std::iter::successors(controller, next).take(MAX_BETWEEN + 1);
        !workload.is_empty() && chain.any(|uid| uid == workload)
    }
}

#[cfg(test)]
mod tests {
    use super::{Controllers, OwnedMetadata, OwnerReference};

    /// Who controls whom: a Deployment `d` with its ReplicaSet, a LeaderWorkerSet `l` with a group, and two that control each other.
    const LINKS: &[&str] = &[
        "{uid: rs, ownerReferences: [{uid: d, controller: true}]}",
        "{uid: leaders, ownerReferences: [{uid: other}, {uid: l, controller: true}]}",
        "{uid: leader, ownerReferences: [{uid: leaders, controller: true}]}",
        "{uid: workers, ownerReferences: [{uid: leader, controller: true}]}",
        "{uid: watched, ownerReferences: [{uid: d, controller: false}]}",
        "{uid: a, ownerReferences: [{uid: b, controller: true}]}",
        "{uid: b, ownerReferences: [{uid: a, controller: true}]}",
    ];

    #[test]
    fn controllers_are_followed_to_the_workload() -> Result<(), Box<dyn std::error::Error>> {
        let mut controllers = Controllers::default();
        for link in LINKS {
            let metadata: OwnedMetadata = serde_saphyr::from_str(link)?;
            controllers.add(&metadata.uid, metadata.controller());
        }
        let cases = [
            ("d", Some("d"), true),
            ("d", Some("rs"), true),
            ("d", Some("leader"), false),
            ("d", Some("watched"), false),
            ("d", None, false),
            ("l", Some("leaders"), true),
            ("l", Some("workers"), true),
            ("l", Some("a"), false),
            ("", Some(""), false),
        ];
        for (workload, controller, expected) in cases {
            let controller = controller.map(|uid| OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() });
            assert_eq!(controllers.lead_to(workload, controller.as_ref()), expected, "{workload} {controller:?}");
        }
        Ok(())
    }
}
