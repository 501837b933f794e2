//! Holds children back until those that they wait for are current. Pure.

use std::sync::Arc;

use pilothouse_engine::contract::KindRef;

use crate::{
    object::{Object, ObjectRef, describe},
    pipeline::check::DesiredChild,
    readiness::ReadinessRules,
};

/// The children of an answer that were planned so far, for those that wait for them.
#[derive(Debug)]
pub(super) struct Order {
    /// None if no child waits for any other, as in most answers.
    planned: Option<Vec<PlannedChild>>,
    readiness: ReadinessRules,
}

#[derive(Debug)]
struct PlannedChild {
    kind: KindRef,
    name: ObjectRef,
    standing: Standing,
}

/// How a child stands before the plan is carried out.
#[derive(Debug)]
pub(super) enum Standing {
    /// It exists, and nothing about it is to be done.
    Live(Arc<Object>),
    /// It has to be written or waited for.
    Pending,
    /// It does not exist, and the host does not create it.
    Absent,
    /// It is being deleted, and the host does not create it anew.
    Going,
}

impl Order {
    pub(super) fn of(children: &[DesiredChild], readiness: &ReadinessRules) -> Self {
        let is_ordered = children.iter().any(|child| !child.after.is_empty());
        Self { planned: is_ordered.then(|| Vec::with_capacity(children.len())), readiness: readiness.clone() }
    }

    /// The next child of the answer is planned. Until its standing is known it is pending.
    pub(super) fn begin(&mut self, child: &DesiredChild) {
        if let Some(planned) = &mut self.planned {
            let (kind, name) = (child.kind.clone(), child.name.clone());
            planned.push(PlannedChild { kind, name, standing: Standing::Pending });
        }
    }

    /// The child that was begun last stands like this.
    pub(super) fn end(&mut self, standing: Standing) {
        if let Some(child) = self.planned.as_mut().and_then(|planned| planned.last_mut()) {
            child.standing = standing;
        }
    }

    /// Why a child has to wait, in words; none if it need not.
    pub(super) fn obstacle(&self, child: &DesiredChild) -> Option<String> {
        let planned = self.planned.as_ref()?;
        let awaited = child.after.iter().filter_map(|place| planned.get(*place));
        awaited.into_iter().find_map(|awaited| {
            let why = awaited.obstacle(&self.readiness)?;
            let (waiting, awaited) = (describe(&child.kind, &child.name), describe(&awaited.kind, &awaited.name));
            Some(format!("{waiting} waits for {awaited}: {why}"))
        })
    }
}

impl PlannedChild {
    fn obstacle(&self, rules: &ReadinessRules) -> Option<String> {
        match &self.standing {
            Standing::Absent => Some("it does not exist".to_owned()),
            Standing::Going => Some("it is being deleted".to_owned()),
            Standing::Pending => Some("it is not written yet".to_owned()),
            Standing::Live(live) => rules.obstacle(&self.kind, live),
        }
    }
}
