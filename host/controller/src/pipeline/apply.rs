//! Stage 6: makes it so. Every write is guarded: a create cannot take over an object that is there already, an update
//! cannot hit another object of the same name, a delete names a UID. No plan, no request.

use std::sync::Arc;

use futures::{StreamExt, stream};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use pilothouse_engine::contract::{ImmutablePolicy, KindRef};

use super::{
    check::{DesiredChild, describe},
    delete,
    guard::is_unchanged,
    guarded::Guarded,
    plan::{Cause, Delete, Plan, Write},
    settled,
};
use crate::{
    cache::{ControllerRef, Incoming, Object, Store},
    client::chain,
    kinds::Installed,
    labels,
    plugin::ActivePlugin,
};

/// Writes of one object that may be under way at once.
const PARALLEL: usize = 8;

/// A resource version that no stored object has (etcd's first revision writes no object): applied with it, an object
/// is created if it is missing, and the API server answers 409 if it is there.
const NEVER: &str = "1";

/// The reason of a failure for which nobody has to wait: what was known proved wrong, and has been read anew.
const OUTDATED: &str = "Outdated";

/// Parameters of a server-side apply. The API server need not look for unknown and doubled fields: it refuses an apply
/// with unknown ones anyway, nothing that is written here has doubled ones, and to look it reads the body once more.
pub(super) fn applying(manager: &str) -> PatchParams {
    PatchParams::apply(manager).force().validation_ignore()
}

/// What was done.
#[derive(Debug, Default)]
pub struct Applied {
    /// Writes that the API server took.
    pub written: Vec<Written>,
    /// Children that were deleted.
    pub deleted: Vec<Delete>,
    /// What went wrong; deletes are not tried then.
    pub failures: Vec<Failure>,
}

impl Applied {
    /// Whether all that went wrong is that what was known is not what is there, which is known now.
    pub fn is_outdated(&self) -> bool {
        !self.failures.is_empty() && self.failures.iter().all(|failure| failure.reason == OUTDATED)
    }
}

/// A write that the API server took.
#[derive(Debug)]
pub struct Written {
    /// The write.
    pub write: Write,
    /// Whether it changed the object: false where the API server found nothing to do.
    pub changed: bool,
    /// Names the state that it left.
    pub state: u64,
}

/// A write that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// One CamelCase word for conditions and events.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// Whether trying again can help without anybody changing anything.
    pub passing: bool,
}

/// What applying needs besides the plan.
pub struct Applier<'a> {
    /// The connection.
    pub client: &'a Client,
    /// The plugin, for its field manager and its watches.
    pub plugin: &'a ActivePlugin,
    /// The object whose children are applied.
    pub object: &'a Object,
}

impl Applier<'_> {
    /// Carries out a plan.
    pub async fn apply(&self, plan: Plan) -> Applied {
        let mut applied = Applied::default();
        if self.makes_anew(&plan)
            && let Err(error) = self.object_is_still_there().await
        {
            applied.failures.push(error.describe(&describe(self.plugin.objects.kind(), &self.object.name.name)));
            return applied;
        }
        let writes = stream::iter(plan.writes.into_iter().map(|write| self.write(write))).buffered(PARALLEL);
        for result in writes.collect::<Vec<_>>().await {
            match result {
                Ok(written) => applied.written.push(written),
                Err(failure) => applied.failures.push(failure),
            }
        }
        if !applied.failures.is_empty() {
            return applied;
        }
        let deletes = stream::iter(plan.deletes.into_iter().map(|delete| self.delete(delete))).buffered(PARALLEL);
        for result in deletes.collect::<Vec<_>>().await {
            match result {
                Ok(delete) => applied.deleted.push(delete),
                Err(failure) => applied.failures.push(failure),
            }
        }
        applied
    }

    async fn write(&self, write: Write) -> Result<Written, Failure> {
        let target = self.target(&write.child.kind, &write.child.name, &write.child.namespace)?;
        let result = match write.cause.live() {
            None => self.create(&target, &write.child).await,
            Some(live) => self.hand_over_and_update(&target, &write, live).await,
        };
        let after = result.map_err(|error| error.describe(&describe(&write.child.kind, &write.child.name)))?;
        let before = write.cause.live().map(|live| &live.resource_version);
        let changed = before != Some(&after.resource_version);
        let state = settled::state(&after);
        target.store.wrote(after);
        Ok(Written { changed, state, write })
    }

    async fn create(&self, target: &Target<'_>, child: &DesiredChild) -> Result<Object, WriteError> {
        match self.patch(target, child, "resourceVersion", NEVER).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let live = target.read(&child.name).await?;
                let Some(live) = live else { return Err(WriteError::Vanished) };
                self.may_take(&live).await?;
                self.update(target, child, &live).await
            }
            result => result.map_err(WriteError::Api),
        }
    }

    async fn update(&self, target: &Target<'_>, child: &DesiredChild, live: &Object) -> Result<Object, WriteError> {
        if live.controller.is_none() {
            self.may_take(live).await?;
        }
        match self.patch(target, child, "uid", &live.uid).await {
            Err(kube::Error::Api(status)) if is_another_object(&status) => {
                target.read_anew(live).await?;
                Err(WriteError::Vanished)
            }
            Err(kube::Error::Api(status)) if is_immutable(&status) => {
                if child.on_immutable == ImmutablePolicy::Fail {
                    return Err(WriteError::Immutable(status.message));
                }
                target.delete(live).await?;
                Err(WriteError::Recreating)
            }
            result => result.map_err(WriteError::Api),
        }
    }

    async fn hand_over_and_update(
        &self,
        target: &Target<'_>,
        write: &Write,
        live: &Object,
    ) -> Result<Object, WriteError> {
        if let Some(fields) = &write.handover {
            let parameters = applying(labels::HANDOVER_MANAGER);
            target.api.patch(&write.child.name, &parameters, &Patch::Apply(fields)).await?;
        }
        self.update_restored(target, write, live).await
    }

    /// Updates a child, after putting list elements right that stand in the place of ours. What the plugin itself changed
    /// is tried without first: elements that only we own need no help.
    async fn update_restored(&self, target: &Target<'_>, write: &Write, live: &Object) -> Result<Object, WriteError> {
        let Some(restoration) = &write.restoration else { return self.update(target, &write.child, live).await };
        if let Cause::Changed { .. } = write.cause {
            match self.update(target, &write.child, live).await {
                Err(WriteError::Api(kube::Error::Api(status))) if status.code == 422 => {}
                result => return result,
            }
        }
        let parameters =
            PatchParams { field_manager: Some(self.plugin.field_manager.clone()), ..PatchParams::default() };
        target.api.patch(&write.child.name, &parameters, &Patch::Merge(restoration)).await?;
        self.update(target, &write.child, live).await
    }

    /// Applies a child, guarded by a field of its metadata.
    async fn patch(
        &self,
        target: &Target<'_>,
        child: &DesiredChild,
        field: &str,
        value: &str,
    ) -> Result<Object, kube::Error> {
        let parameters = applying(&self.plugin.field_manager);
        let body = Guarded { body: &child.body, field, value };
        let incoming = target.api.patch(&child.name, &parameters, &Patch::Apply(body)).await?;
        Ok(incoming.into_object(&target.installed.resource))
    }

    async fn delete(&self, delete: Delete) -> Result<Delete, Failure> {
        let Delete { kind, live } = &delete;
        let target = self.target(kind, &live.name.name, &live.name.namespace)?;
        match target.delete(live).await {
            Ok(()) => Ok(delete),
            Err(error) => Err(explain(&error, "delete", &describe(kind, &live.name.name))),
        }
    }

    /// Whether an object that is there already may be applied to: ours, or an orphan of ours whose parent, read anew,
    /// is still the one we reconcile. Everything else belongs to somebody else.
    async fn may_take(&self, live: &Object) -> Result<(), WriteError> {
        match &live.controller {
            Some(owner) if owner.uid == self.object.uid => Ok(()),
            Some(owner) if self.is_predecessor(owner) => Err(WriteError::Inherited),
            Some(owner) => Err(WriteError::Taken(format!("is controlled by {} '{}'", owner.kind, owner.name))),
            None if self.is_orphan(live) => self.object_is_still_there().await,
            None => Err(WriteError::Taken("was made by somebody else".to_owned())),
        }
    }

    /// Whether an owner is an object of the same kind and name as ours: deleted, and its children not yet collected.
    fn is_predecessor(&self, owner: &ControllerRef) -> bool {
        *owner.kind == *self.plugin.objects.kind().kind && owner.name == self.object.name.name.as_ref().into()
    }

    /// An orphan of ours carries our plugin's label, and belongs to this object or to one that is no more and had it kept.
    fn is_orphan(&self, live: &Object) -> bool {
        let of_plugin = live.labels.get(labels::PLUGIN).is_some_and(|plugin| **plugin == *self.plugin.name);
        let owner = live.owner_uid().unwrap_or_default();
        let left_behind =
            || live.is_kept() && self.plugin.objects.store().select(None, |object| *object.uid == *owner).is_empty();
        of_plugin && (*owner == *self.object.uid || left_behind())
    }

    /// Whether a plan makes children that have been there before. Somebody deleted them, or garbage collection did, for the
    /// object is gone and its watch has not told it yet.
    fn makes_anew(&self, plan: &Plan) -> bool {
        is_unchanged(self.object) && plan.writes.iter().any(|write| matches!(write.cause, Cause::Missing))
    }

    /// Garbage collection deletes children and takes owner references off them without waiting for anybody: what the
    /// cache says of the object is not enough to make them anew or to put the references back.
    async fn object_is_still_there(&self) -> Result<(), WriteError> {
        let objects = self.target(self.plugin.objects.kind(), "", &self.object.name.namespace);
        let objects = objects.map_err(|_| WriteError::Vanished)?;
        let Some(object) = objects.read(&self.object.name.name).await? else {
            objects.store.ended(self.object);
            return Err(WriteError::Vanished);
        };
        // One that is being deleted has children as long as it is finalized.
        let still = object.uid == self.object.uid && object.deleting == self.object.deleting;
        objects.store.wrote(object);
        if still { Ok(()) } else { Err(WriteError::Vanished) }
    }

    fn target(&self, kind: &KindRef, name: &str, namespace: &str) -> Result<Target<'_>, Failure> {
        let watched =
            if kind == self.plugin.objects.kind() { Some(&self.plugin.objects) } else { self.plugin.child_watch(kind) };
        let installed = watched.and_then(|watched| watched.installed().map(|installed| (watched, installed)));
        let (watched, installed) = installed.ok_or_else(|| Failure {
            reason: "ChildKindNotInstalled",
            message: format!("failed to write {}: {kind} is not installed in this cluster", describe(kind, name)),
            passing: false,
        })?;
        let api = installed.api(self.client, namespace);
        Ok(Target { api, installed, store: watched.store() })
    }
}

/// A place to write to.
struct Target<'a> {
    api: Api<Incoming>,
    installed: Arc<Installed>,
    store: &'a Store,
}

impl Target<'_> {
    async fn read(&self, name: &str) -> Result<Option<Object>, kube::Error> {
        let found = self.api.get_opt(name).await?;
        Ok(found.map(|incoming| incoming.into_object(&self.installed.resource)))
    }

    /// Reads what is there in the place of a child, for the cache.
    async fn read_anew(&self, known: &Object) -> Result<(), kube::Error> {
        match self.read(&known.name.name).await? {
            Some(found) => self.store.wrote(found),
            None => self.store.removed(known),
        }
        Ok(())
    }

    /// Deletes exactly this object; one that is gone or replaced already is no error.
    async fn delete(&self, live: &Object) -> Result<(), kube::Error> {
        match delete::exactly(&self.api, &self.installed.resource, live, false).await {
            Ok(Some(terminating)) => {
                self.store.wrote(terminating);
                Ok(())
            }
            Ok(None) => {
                self.store.removed(live);
                Ok(())
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => self.read_anew(live).await,
            Err(error) => Err(error),
        }
    }
}

/// How a guarded write can fail.
enum WriteError {
    Api(kube::Error),
    /// The name is taken; why.
    Taken(String),
    /// It belongs to a deleted object of the same name; garbage collection takes it away.
    Inherited,
    /// Object or child is not the one that was known; look again.
    Vanished,
    /// A field cannot change and the plugin wants that reported.
    Immutable(String),
    /// A field cannot change; the child was deleted and will be created anew.
    Recreating,
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        Self::Api(error)
    }
}

impl WriteError {
    fn describe(self, what: &str) -> Failure {
        let failure = |reason, message, passing| Failure { reason, message, passing };
        match self {
            Self::Api(error) => explain(&error, "apply", what),
            Self::Taken(why) => failure("NameConflict", format!("{what} exists and {why}; it is left alone"), false),
            Self::Inherited => {
                let why = format!("{what} belongs to a deleted object of the same name; waiting until it is collected");
                failure("AwaitingDeletion", why, true)
            }
            Self::Vanished => failure(OUTDATED, format!("{what} is not as it was last known"), true),
            Self::Immutable(why) => failure("ImmutableField", format!("failed to apply {what}: {why}"), false),
            Self::Recreating => {
                failure("Recreating", format!("{what} is deleted and created anew, for a field cannot change"), true)
            }
        }
    }
}

/// Says what an API error means for whoever reads the object's conditions.
pub(super) fn explain(error: &kube::Error, verb: &str, what: &str) -> Failure {
    let failure = |reason, message, passing| Failure { reason, message, passing };
    let kube::Error::Api(status) = error else {
        return failure("ApiServerUnavailable", format!("failed to {verb} {what}: {}", chain(error)), true);
    };
    let message = format!("failed to {verb} {what}: {}", status.message);
    match status.code {
        403 if status.message.contains("exceeded quota") => failure("QuotaExceeded", message, true),
        401 | 403 => failure("Forbidden", message, false),
        404 => failure("NotFound", message, true),
        409 => failure("Conflict", message, true),
        _ if is_undeclared_field(status) => failure("ChildInvalid", message, false),
        400 | 422 => failure("ChildInvalid", message, false),
        _ => failure("ApiServerError", message, true),
    }
}

/// Whether an apply has a field that the kind's schema does not declare: the API server answers 500 to that.
pub(super) fn is_undeclared_field(status: &kube::core::Status) -> bool {
    status.code == 500 && status.message.contains("field not declared in schema")
}

/// Whether an apply that names a UID met no object (409) or another one of the same name (422).
fn is_another_object(status: &kube::core::Status) -> bool {
    status.code == 409 || (status.code == 422 && status.message.contains("metadata.uid"))
}

/// Whether the API server refused a change because a field cannot change. It has no code of its own for that: every
/// such message of the built-in kinds says "immutable", or for Pods and StatefulSets "forbidden: updates to" (or
/// "pod updates").
fn is_immutable(status: &kube::core::Status) -> bool {
    let says = |text: &str| status.message.contains(text);
    status.code == 422 && (says("immutable") || says("Forbidden: updates to") || says("Forbidden: pod updates"))
}

impl Cause {
    /// A line for the log: what was found.
    pub fn finding(&self, kind: &str) -> String {
        match self {
            Self::Missing => format!("Creating {kind}."),
            Self::Changed { differences, .. } if differences.is_empty() => format!("Updating {kind}."),
            Self::Changed { .. } | Self::Drifted { .. } => format!("Drift detected. Updating {kind}."),
        }
    }
}
