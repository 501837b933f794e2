//! Asks the API server whether it would take the writes of a forecast, by dry runs of the host's own requests: admission, validation and
//! permissions have their say, and nothing is changed.

use kube::Client;
use pilothouse_controller::{
    client::dry_running,
    identity::Identities,
    object::ObjectRef,
    pipeline::{
        apply::{Applied, Applier, Effect, Failure, apply, decorate},
        observe::observe,
        plan::{Recreation, Write},
    },
};
use pilothouse_engine::contract::KindRef;

use crate::{
    Cluster, Forecast, ForecastObject, Outcome,
    outcome::{Action, ChildChange, FirstWrites, Refused, Trouble},
};

impl Cluster {
    /// Tries out what the host would do first with each object. What the API server refuses is noted in the forecast, as is what it would
    /// only take as a new child. `client` may write; only dry runs are made with it.
    pub async fn try_out(&self, client: &Client, forecast: &mut Forecast, progress: impl Fn(usize)) {
        let client = dry_running(client);
        let identities = Identities::new(client.clone());
        for (done, object) in forecast.objects.iter_mut().enumerate() {
            self.try_out_one(&client, &identities, object).await;
            progress(done + 1);
        }
    }

    async fn try_out_one(&self, host_client: &Client, identities: &Identities, object: &mut ForecastObject) {
        let Some(FirstWrites { decoration, plan }) = object.first.take() else { return };
        if plan.is_empty() && decoration.is_none() {
            return;
        }
        // Gone meanwhile.
        let Ok(observed) = observe(&self.plugin, &object.name) else { return };
        let account = self.account(&object.name);
        let client = identities.client(account.as_ref());
        let applier = Applier {
            host_client,
            client: &client,
            plugin: &self.plugin,
            object: &observed.object,
            effect: Effect::DryRun,
        };
        if let Some(wanted) = &decoration
            && let Err(failure) = decorate(&applier, wanted).await
            && let Outcome::Answered { trouble, .. } = &mut object.outcome
        {
            let Refused { reason, message } = refused(&failure);
            trouble.get_or_insert(Trouble { reason, message, is_present: false });
            return;
        }
        let updates: Vec<_> = plan.writes.iter().filter_map(Update::of).collect();
        let applied = apply(&applier, plan).await;
        note(&mut object.outcome, &applied, &updates);
    }
}

/// An update that is tried out.
struct Update {
    /// What it is called if the API server only takes it as a new child.
    recreation: Recreation,
    kind: KindRef,
    name: ObjectRef,
}

impl Update {
    fn of(write: &Write) -> Option<Self> {
        let recreation = Recreation::of(&write.child, write.cause.live()?);
        Some(Self { recreation, kind: write.child.kind.clone(), name: write.child.name.clone() })
    }
}

/// Notes what the API server said.
fn note(outcome: &mut Outcome, applied: &Applied, updates: &[Update]) {
    let Outcome::Answered { steps, trouble, .. } = outcome else { return };
    let Some(step) = steps.first_mut() else { return };
    for update in updates.iter().filter(|update| applied.recreations.contains(&update.recreation)) {
        if let Some(change) = step.iter_mut().find(|change| change.kind == update.kind && change.name == update.name)
            && let Action::Update(differences) = &mut change.action
        {
            change.action = Action::Recreate(std::mem::take(differences));
        }
    }
    for failure in &applied.failures {
        match changed(step, failure) {
            Some(change) => change.refused = Some(refused(failure)),
            None => {
                let Refused { reason, message } = refused(failure);
                trouble.get_or_insert(Trouble { reason, message, is_present: false });
            }
        }
    }
}

fn changed<'s>(step: &'s mut [ChildChange], failure: &Failure) -> Option<&'s mut ChildChange> {
    let child = failure.child.as_ref()?;
    step.iter_mut().find(|change| change.kind == child.kind && change.name == child.name)
}

fn refused(failure: &Failure) -> Refused {
    Refused { reason: failure.reason.as_str().to_owned(), message: failure.message.clone() }
}
