//! One reconcile's input, typed. A child is parsed only when the plugin asks for it, so a call never pays for children that
//! it does not read.

use crate::object_ref::ObjectRef;
use crate::parse::{ParseError, parse};
use crate::{Error, Kind, Readiness, RefusedChild, imports, raw};
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// One reconcile's input: the object, its observed children, the plugin's configuration.
#[derive(Clone, Debug)]
pub struct Request<O> {
    /// The object being reconciled.
    pub object: O,
    children: Vec<raw::LiveChild>,
    refused: Vec<raw::RefusedChild>,
    config: raw::Json,
}

impl<O: DeserializeOwned> Request<O> {
    /// Reads the object into its type; the rest stays text until it is asked for.
    ///
    /// # Errors
    /// A field of the object does not fit.
    pub(crate) fn read(request: raw::Request) -> Result<Self, ParseError> {
        let raw::Request { object, children, refused, config } = request;
        Ok(Self { object: parse(&object)?, children, refused, config })
    }
}

impl<O> Request<O> {
    /// The observed children of kind `K`, ordered by name.
    ///
    /// # Errors
    /// [`Error::Child`] if one of them does not fit `K`.
    pub fn children<K: Kind + DeserializeOwned>(&self) -> Result<Vec<K>, Error> {
        self.of_kind::<K>().map(|(child, live)| read_child(&child, &live.object)).collect()
    }

    /// The names of the observed children of kind `K`, in order. The children are not read.
    pub fn names<K: Kind>(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.of_kind::<K>().map(|(child, _)| child.name)
    }

    /// The observed child of kind `K` and that name, if there is one.
    ///
    /// # Errors
    /// [`Error::Child`] if it does not fit `K`.
    pub fn child<K: Kind + DeserializeOwned>(&self, name: &str) -> Result<Option<K>, Error> {
        let found = self.of_kind::<K>().find(|(child, _)| child.name == name);
        found.map(|(child, live)| read_child(&child, &live.object)).transpose()
    }

    /// How far the observed child of kind `K` and that name is, if there is one. The host judges it by the rules of kstatus.
    pub fn readiness<K: Kind>(&self, name: &str) -> Option<&Readiness> {
        self.of_kind::<K>().find(|(child, _)| child.name == name).map(|(_, live)| &live.readiness)
    }

    /// Has the observed children of kind `K` and these names deleted at once, without their grace periods and without their nodes, if they
    /// are being deleted already. It happens together with the response of this call.
    pub fn force_deletions<K: Kind>(&self, names: &BTreeSet<&str>) {
        if names.is_empty() {
            return;
        }
        for (place, child) in (0_u32..).zip(&self.children) {
            let found = ObjectRef::of(&child.object);
            if found.is_of_kind::<K>() && names.contains(&*found.name) {
                imports::force_deletion(place);
            }
        }
    }

    /// The children of the last response that could not be written, with the reasons.
    pub fn refused(&self) -> &[RefusedChild] {
        &self.refused
    }

    /// The plugin's configuration as its installer gave it; `C::default()` if there is none.
    ///
    /// # Errors
    /// [`Error::Config`] if it does not fit `C`.
    pub fn config<C: DeserializeOwned + Default>(&self) -> Result<C, Error> {
        match self.config.trim() {
            "" | "null" => Ok(C::default()),
            text => parse(text).map_err(|error| Error::Config(error.to_string())),
        }
    }

    fn of_kind<K: Kind>(&self) -> impl Iterator<Item = (ObjectRef<'_>, &raw::LiveChild)> {
        let children = self.children.iter().map(|child| (ObjectRef::of(&child.object), child));
        children.filter(|(child, _)| child.is_of_kind::<K>())
    }
}

fn read_child<K: Kind + DeserializeOwned>(child: &ObjectRef<'_>, text: &str) -> Result<K, Error> {
    parse(text).map_err(|error| Error::child::<K>(&child.name, &error))
}
