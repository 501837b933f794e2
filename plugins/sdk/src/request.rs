//! One reconcile's input, typed. Reading it never costs more than what is asked for: a child is parsed when it is asked for.

use crate::head::Head;
use crate::parse::parse;
use crate::{Error, Kind, raw};
use serde::de::DeserializeOwned;

/// One reconcile's input: the object, its live children, the plugin's configuration.
#[derive(Clone, Debug)]
pub struct Request<O> {
    /// The object being reconciled.
    pub object: O,
    children: Vec<raw::Json>,
    config: raw::Json,
}

impl<O: DeserializeOwned> Request<O> {
    /// Reads the object into its type; the rest stays text until it is asked for.
    ///
    /// # Errors
    /// What about the object does not fit, with the path of the field.
    pub(crate) fn read(request: raw::Request) -> Result<Self, String> {
        let raw::Request { object, children, config } = request;
        Ok(Self { object: parse(&object)?, children, config })
    }
}

impl<O> Request<O> {
    /// The live children of kind `K`, ordered by name.
    ///
    /// # Errors
    /// [`Error::Child`] if one of them does not fit `K`.
    pub fn children<K: Kind + DeserializeOwned>(&self) -> Result<Vec<K>, Error> {
        self.of_kind::<K>().map(|(head, text)| read_child(&head, text)).collect()
    }

    /// The live child of kind `K` and that name, if there is one.
    ///
    /// # Errors
    /// [`Error::Child`] if it does not fit `K`.
    pub fn child<K: Kind + DeserializeOwned>(&self, name: &str) -> Result<Option<K>, Error> {
        let found = self.of_kind::<K>().find(|(head, _)| head.name == name);
        found.map(|(head, text)| read_child(&head, text)).transpose()
    }

    /// The plugin's configuration as its installer gave it; `C::default()` if there is none.
    ///
    /// # Errors
    /// [`Error::Config`] if it does not fit `C`.
    pub fn config<C: DeserializeOwned + Default>(&self) -> Result<C, Error> {
        match self.config.trim() {
            "" | "null" => Ok(C::default()),
            text => parse(text).map_err(Error::Config),
        }
    }

    fn of_kind<K: Kind>(&self) -> impl Iterator<Item = (Head<'_>, &str)> {
        let heads = self.children.iter().map(|text| (Head::of(text), text.as_str()));
        heads.filter(|(head, _)| head.kind == K::KIND && head.api_version == K::API_VERSION)
    }
}

fn read_child<K: Kind + DeserializeOwned>(head: &Head<'_>, text: &str) -> Result<K, Error> {
    parse(text).map_err(|reason| Error::child::<K>(&head.name, reason))
}
