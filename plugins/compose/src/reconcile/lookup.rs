//! Looking up what the object reads of others. The host remembers each lookup, and calls again when its result changes.

use pilothouse_sdk::raw::Scope;
use pilothouse_sdk::{Error, lookup};
use serde_json::Value;

use super::state::{ReadsOthers, Round, State, Unresolved};
use crate::manifest::fields_of_lookup;
use crate::parts::{Lookup, Which};
use crate::template::Template;

/// The reason while something that is looked up is missing, unless the composition names another one.
const LOOKUP_MISSING: &str = "LookupMissing";

/// Looks something up. What is missing and needed is added to `missing`.
///
/// # Errors
/// The host refuses the lookup, and that is no answer for this one.
pub fn look(
    round: &Round<'_>,
    name: &str,
    lookup: &Lookup,
    missing: &mut Vec<(String, String)>,
) -> Result<State, Error> {
    let (which, namespace) = match texts(round, lookup) {
        Ok(texts) => texts,
        Err(Unresolved::Waits(why)) => return Ok(State::Waits(why)),
        Err(Unresolved::Excluded) => return Ok(State::Excluded),
        Err(Unresolved::Wrong(why)) => return Ok(State::Wrong(why)),
    };
    let fields = fields_of_lookup(round.composition, name);
    let found = match &lookup.which {
        Which::Named(_) if which.is_empty() => Ok(None),
        Which::Named(_) => {
            let scope = namespace.map_or(Scope::OwnNamespace, Scope::Namespace);
            lookup::get_raw(&lookup.kind, &scope, &which, &fields).map(|text| text.map(|text| parse(&text)))
        }
        Which::Selected { is_everywhere, .. } => {
            let own = namespace.map_or(Scope::OwnNamespace, Scope::Namespace);
            let scope = if *is_everywhere { Scope::AllNamespaces } else { own };
            let all = lookup::select_raw(&lookup.kind, &scope, &which, &fields);
            all.map(|all| Some(all.iter().map(|text| parse(text)).collect()))
        }
    };
    match found {
        Ok(Some(value)) => Ok(State::Known(value)),
        Ok(None) | Err(Error::KindNotInstalled(_)) if lookup.is_optional => Ok(State::Absent),
        Ok(None) => {
            missing.push(said(round, lookup, &which));
            Ok(State::Missing)
        }
        Err(error) => Err(error),
    }
}

/// The name or the selector, and the namespace if there is another one.
fn texts(round: &Round<'_>, lookup: &Lookup) -> Result<(String, Option<String>), Unresolved> {
    let values = round.values();
    let text = |template: &Template, field: &str| {
        let text = template.text(&lookup.path.field(field), &values);
        text.map_err(|error| round.unresolved(&error, ReadsOthers::No))
    };
    let which = match &lookup.which {
        Which::Named(template) => text(template, "name"),
        Which::Selected { selector, .. } => text(selector, "labelSelector"),
    };
    Ok((which?, lookup.namespace.as_ref().map(|template| text(template, "namespace")).transpose()?))
}

/// What is said where it is missing.
fn said(round: &Round<'_>, lookup: &Lookup, which: &str) -> (String, String) {
    let usual = format!(
        "{} '{which}' of {} does not exist; create it. Until then everything stays as it is",
        lookup.kind.kind, lookup.kind.api_version
    );
    match &lookup.missing {
        None => (LOOKUP_MISSING.to_owned(), usual),
        Some((reason, message)) => {
            let path = lookup.path.field("missing").field("message");
            (reason.clone(), message.text(&path, &round.values()).unwrap_or(usual))
        }
    }
}

/// The host sends JSON.
fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
