//! Whether the names of children that would be created are taken: by an object in the cluster that the host would leave alone, or by a child
//! of another object of the same forecast. Reads only.

use std::{collections::BTreeMap, time::Instant};

use futures::{StreamExt, stream};
use pilothouse_controller::{
    object::{ObjectRef, describe},
    pipeline::{
        apply::{Applier, Effect, Failure, FailureReason, taken_name},
        observe::observe,
    },
};
use pilothouse_engine::contract::KindRef;

use crate::{
    Bounds, Cluster, Forecast, ForecastObject, Outcome,
    object::{new_trouble, says},
    outcome::Action,
};

/// How many names are looked up at once.
const PARALLEL_READS: usize = 8;

/// A child that would be created: its group, kind and name.
type Created = (String, String, ObjectRef);

impl Cluster {
    /// Finds the objects that would get nowhere because a name is taken, and says so in the place of what would be done with their
    /// children. What is not looked up in time is taken to be free.
    pub(crate) async fn find_taken_names(&self, forecast: &mut Forecast, begun: Instant, bounds: Bounds) {
        let mut reads = Vec::with_capacity(forecast.objects.len());
        for object in &forecast.objects {
            reads.push(self.taken_in_cluster(object, begun, bounds));
        }
        let taken: Vec<_> = stream::iter(reads).buffered(PARALLEL_READS).collect().await;
        let mut makers: BTreeMap<Created, ObjectRef> = BTreeMap::new();
        for (object, taken) in forecast.objects.iter_mut().zip(taken) {
            if let Some(failure) = taken.or_else(|| taken_in_forecast(object, &makers)) {
                self.note(object, &failure);
            }
            makers.extend(created(object).map(|(kind, name)| (key(kind, name), object.name.clone())));
        }
    }

    /// The first child of an object whose name is taken in the cluster.
    async fn taken_in_cluster(&self, object: &ForecastObject, begun: Instant, bounds: Bounds) -> Option<Failure> {
        let mut children = created(object).peekable();
        children.peek()?;
        if begun.elapsed() > bounds.time {
            return None;
        }
        // Gone meanwhile.
        let observed = observe(&self.plugin, &object.name).ok()?;
        let (own, reader) = (self.identities.client(None), self.child_reader(&object.name));
        let applier = Applier {
            host_client: &own,
            client: &reader,
            plugin: &self.plugin,
            object: &observed.object,
            effect: Effect::DryRun,
        };
        for (kind, name) in children {
            match taken_name(&applier, kind, name).await {
                Ok(None) => {}
                Ok(Some(taken)) | Err(taken) => return Some(taken),
            }
        }
        None
    }

    fn note(&self, object: &mut ForecastObject, failure: &Failure) {
        let Outcome::Answered { steps, trouble, .. } = &mut object.outcome else { return };
        let mut found = new_trouble(failure.reason.as_str(), &failure.message);
        found.is_present = self.plugin.objects.store().get(&object.name).is_some_and(|present| says(&present, &found));
        *trouble = Some(found);
        let is_taken = |kind: &KindRef, name: &ObjectRef| {
            failure.child.as_ref().is_some_and(|child| child.kind == *kind && child.name == *name)
        };
        // No child is deleted before all are written, and nothing that follows happens.
        let cut = steps.iter().position(|step| step.iter().any(|change| is_taken(&change.kind, &change.name)));
        steps.truncate(cut.map_or(0, |cut| cut + 1));
        if let Some(last) = steps.last_mut() {
            last.retain(|change| !is_taken(&change.kind, &change.name) && !matches!(change.action, Action::Delete(_)));
        }
        steps.retain(|step| !step.is_empty());
    }
}

/// The first child of an object that an object before it would have made already.
fn taken_in_forecast(object: &ForecastObject, makers: &BTreeMap<Created, ObjectRef>) -> Option<Failure> {
    created(object).find_map(|(kind, name)| {
        let maker = makers.get(&key(kind, name))?;
        let message = format!("{} would be a child of '{maker}' already, and is left alone", describe(kind, name));
        Some(Failure::new(FailureReason::NameConflict, message).of_child(kind, name))
    })
}

/// The children that would be created.
fn created(object: &ForecastObject) -> impl Iterator<Item = (&KindRef, &ObjectRef)> {
    let changes = object.outcome.changes().filter(|change| matches!(change.action, Action::Create(_)));
    changes.map(|change| (&change.kind, &change.name))
}

fn key(kind: &KindRef, name: &ObjectRef) -> Created {
    (kind.group().to_owned(), kind.kind.to_string(), name.clone())
}
