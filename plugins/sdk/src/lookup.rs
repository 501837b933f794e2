//! Reading objects that the plugin does not own. The host remembers every lookup and reconciles the object again when its
//! result changes. Nothing is cached here: the host answers from its own caches.

use crate::imports;
use crate::kind::{fields, kind_ref};
use crate::parse::parse;
use crate::raw::{KindRef, LookupError, Scope};
use crate::{Error, Kind};
use serde::de::DeserializeOwned;

/// The object of kind `K` and that name, if there is one. A `namespace` of `None` is that of the object
/// being reconciled.
///
/// # Errors
/// [`Error::LookupDenied`] or [`Error::KindNotInstalled`] if the host refuses the lookup, [`Error::Lookup`] if the object does
/// not fit `K`.
pub fn get<K>(namespace: Option<&str>, name: &str) -> Result<Option<K>, Error>
where
    K: Kind + DeserializeOwned,
{
    let text = imports::get(&kind_ref::<K>(), &scope(namespace), name, &fields::<K>()).map_err(refused)?;
    text.as_deref().map(read).transpose()
}

/// The objects of kind `K` that a label selector matches, ordered by name; an empty selector matches all. `namespace` as
/// for [`get`].
///
/// # Errors
/// As for [`get`].
pub fn select<K>(namespace: Option<&str>, label_selector: &str) -> Result<Vec<K>, Error>
where
    K: Kind + DeserializeOwned,
{
    select_in(&scope(namespace), label_selector)
}

/// The objects of kind `K` in all namespaces that a label selector matches, ordered by namespace and name. The manifest must declare the
/// lookup with `all_namespaces`.
///
/// # Errors
/// As for [`get`].
pub fn select_in_all_namespaces<K>(label_selector: &str) -> Result<Vec<K>, Error>
where
    K: Kind + DeserializeOwned,
{
    select_in(&Scope::AllNamespaces, label_selector)
}

fn select_in<K>(scope: &Scope, label_selector: &str) -> Result<Vec<K>, Error>
where
    K: Kind + DeserializeOwned,
{
    let found = imports::select(&kind_ref::<K>(), scope, label_selector, &fields::<K>()).map_err(refused)?;
    found.iter().map(|text| read(text)).collect()
}

/// The JSON text of the object of a kind that is known only when the plugin runs. `fields`: JSON pointers of the fields to return, all
/// without any.
///
/// # Errors
/// As for [`get`].
pub fn get_raw(kind: &KindRef, scope: &Scope, name: &str, fields: &[String]) -> Result<Option<String>, Error> {
    imports::get(kind, scope, name, fields).map_err(refused)
}

/// The same for the objects that a label selector matches.
///
/// # Errors
/// As for [`get`].
pub fn select_raw(
    kind: &KindRef,
    scope: &Scope,
    label_selector: &str,
    fields: &[String],
) -> Result<Vec<String>, Error> {
    imports::select(kind, scope, label_selector, fields).map_err(refused)
}

fn scope(namespace: Option<&str>) -> Scope {
    // Many objects have an empty text for a namespace that they do not name.
    let named = namespace.filter(|namespace| !namespace.is_empty());
    named.map_or(Scope::OwnNamespace, |namespace| Scope::Namespace(namespace.to_owned()))
}

fn refused(error: LookupError) -> Error {
    match error {
        LookupError::Denied(message) | LookupError::TooLarge(message) => Error::LookupDenied(message),
        LookupError::NotInstalled(message) => Error::KindNotInstalled(message),
    }
}

fn read<K: Kind + DeserializeOwned>(text: &str) -> Result<K, Error> {
    parse(text).map_err(|error| Error::lookup::<K>(&error))
}
