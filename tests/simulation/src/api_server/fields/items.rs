//! What identifies an element of a list.

use serde_json::Value;

use super::Element;
use crate::api_server::schema::List;

/// The element of a path that identifies an element of a list.
///
/// # Errors
/// A message where the element cannot be identified.
pub(super) fn identify(list: &List, item: &Value) -> Result<Element, String> {
    match list {
        List::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        List::Set => match item {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
            scalar => Ok(Element::Value(scalar.clone())),
        },
        List::Map(keys) => {
            let Some(item) = item.as_object() else {
                return Err("associative list with keys may not have non-map elements".to_owned());
            };
            let value = |key: &crate::api_server::schema::ListKey| {
                let value = item.get(&*key.name).or(key.default.as_ref())?;
                Some((key.name.clone(), value.clone()))
            };
            let mut found: Vec<_> = keys.iter().filter_map(value).collect();
            if found.is_empty() {
                return Err("associative list with keys has an element that omits all key fields".to_owned());
            }
            found.sort_by(|(a, _), (b, _)| a.cmp(b));
            Ok(Element::Key(found.into()))
        }
    }
}
