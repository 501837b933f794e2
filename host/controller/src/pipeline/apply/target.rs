//! The place of an object in the API server and in the cache. Decides nothing about what is written.

use std::sync::Arc;

use kube::{Api, Client};
use pilothouse_engine::contract::KindRef;

use super::{
    applier::Applier,
    delete::{Grace, Precondition, delete_exact},
    failure::{Failure, FailureReason, is_another_object},
    write_error::WriteError,
};
use crate::{
    cache::{Informer, Store},
    errors::is_object_missing,
    kinds::InstalledKind,
    object::{Incoming, Object, ObjectRef, describe},
    schema::Schema,
};

/// The place of one object.
pub(super) struct Target<'a> {
    pub(super) api: Api<Incoming>,
    pub(super) installed: Arc<InstalledKind>,
    pub(super) store: &'a Store,
    /// The kind's schema, where it is known.
    pub(super) schema: Option<Schema>,
}

impl<'a> Target<'a> {
    /// The place of a child.
    pub(super) fn of(applier: &Applier<'a>, kind: &KindRef, name: &ObjectRef) -> Result<Self, Failure> {
        let watched = applier.plugin.child_watch(kind);
        watched.and_then(|watched| Self::in_watch(applier.client, watched, name)).ok_or_else(|| {
            let message = format!("failed to write {}: {kind} is not installed in this cluster", describe(kind, name));
            Failure::new(FailureReason::ChildKindNotInstalled, message)
        })
    }

    /// The place of the owner; none if its kind is not installed any more.
    pub(super) fn of_object(applier: &Applier<'a>) -> Option<Self> {
        Self::in_watch(applier.host_client, &applier.plugin.objects, &applier.object.name)
    }

    /// The place of an object that the plugin does not own, as its account sees it; none if its kind is not installed any more.
    pub(super) fn of_decorated(applier: &Applier<'a>) -> Option<Self> {
        Self::in_watch(applier.client, &applier.plugin.objects, &applier.object.name)
    }

    fn in_watch(client: &Client, watched: &'a Informer, name: &ObjectRef) -> Option<Self> {
        let installed = watched.installed()?;
        let api = installed.api(client, &name.namespace);
        Some(Self { api, installed, store: watched.store(), schema: watched.schema() })
    }

    /// Reads an object from the API server; none if there is none.
    pub(super) async fn read(&self, name: &str) -> Result<Option<Object>, kube::Error> {
        match self.api.get(name).await {
            Ok(found) => Ok(Some(found.into_object(&self.installed.resource))),
            Err(error) if is_object_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads an object from the API server and updates the cache.
    pub(super) async fn refresh_cache(&self, known: &Object) -> Result<(), kube::Error> {
        match self.read(&known.name.name).await? {
            Some(found) => self.store.record_write(found),
            None => self.store.record_delete(known),
        }
        Ok(())
    }

    /// What it means that a write over this state of an object has failed. Where it is another object, or another state of it, the cache has it
    /// as it is then.
    pub(super) async fn failed_write(&self, known: &Object, error: kube::Error) -> WriteError {
        match error {
            kube::Error::Api(status) if is_another_object(&status) => match self.refresh_cache(known).await {
                Ok(()) => WriteError::Outdated,
                Err(error) => WriteError::Api(error),
            },
            error => WriteError::Api(error),
        }
    }

    /// Deletes exactly this object and updates the cache. An object that is gone, replaced or not as the precondition wants it is no error:
    /// the cache has it as it is then, for another look.
    pub(super) async fn delete(
        &self,
        live: &Object,
        precondition: Precondition,
        grace: Grace,
    ) -> Result<(), kube::Error> {
        match delete_exact(&self.api, &self.installed.resource, live, precondition, grace).await {
            // It has finalizers or a grace period: it is still there, and its deletion timestamp keeps it from being deleted again.
            Ok(Some(terminating)) => {
                self.store.record_write(terminating);
                Ok(())
            }
            Ok(None) => {
                self.store.record_delete(live);
                Ok(())
            }
            // The watch will bring it, too, but perhaps only after the next round, which would then plan the same delete again.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => self.refresh_cache(live).await,
            Err(error) => Err(error),
        }
    }
}
