//! JSON text in the notation of `serde_json::json!`, without a tree of maps in between: constant parts lie in the program's
//! data, all other values are borrowed. It knows nothing of Kubernetes.

use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// JSON text in the notation of `serde_json::json!`, as a `Box<RawValue>`, which serialises to that text.
///
/// It costs a plugin a fraction of what `serde_json::json!` costs, in size and in time: that one builds maps with an owned key
/// for every field, and drops them once they are written. A value is a string, an integer, a boolean, an `Option` of one of
/// these, or JSON text; [`serde_json::value::to_raw_value`] makes JSON text of anything else. For a child that is changed
/// later on, use `serde_json::json!`.
///
/// ```
/// let name = String::from("web");
/// let labels = pilothouse_sdk::json!({ "app": name });
/// let child = pilothouse_sdk::json!({
///     "metadata": { "name": format!("{name}-config"), "labels": labels },
///     "data": { "hosts": ["a", name], "port": 80 },
/// });
/// let expected = r#"{"metadata":{"name":"web-config","labels":{"app":"web"}},"data":{"hosts":["a","web"],"port":80}}"#;
/// assert_eq!(child.get(), expected);
/// ```
#[macro_export]
macro_rules! json {
    ($($json:tt)+) => {
        $crate::json::text(&$crate::__node!($($json)+))
    };
}

/// One value of a [`json!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __node {
    (null) => { $crate::json::Node::Null };
    ({ $($entries:tt)* }) => { $crate::json::Node::Object($crate::__entries!([] $($entries)*)) };
    ([ $($items:tt)* ]) => { $crate::json::Node::List($crate::__items!([] $($items)*)) };
    ($value:literal) => { const { $crate::json::Literal($value).node() } };
    ($value:expr) => { $crate::json::Value::node(&$value) };
}

/// The entries of an object: `[finished entries] remaining tokens`.
#[doc(hidden)]
#[macro_export]
macro_rules! __entries {
    ([$($done:tt)*]) => { &[$($done)*] };
    ([$($done:tt)*] $key:literal : null $(, $($rest:tt)*)?) => {
        $crate::__entries!([$($done)* ($key, $crate::__node!(null)),] $($($rest)*)?)
    };
    ([$($done:tt)*] $key:literal : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::__entries!([$($done)* ($key, $crate::__node!({ $($inner)* })),] $($($rest)*)?)
    };
    ([$($done:tt)*] $key:literal : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $crate::__entries!([$($done)* ($key, $crate::__node!([ $($inner)* ])),] $($($rest)*)?)
    };
    ([$($done:tt)*] $key:literal : $value:literal $(, $($rest:tt)*)?) => {
        $crate::__entries!([$($done)* ($key, $crate::__node!($value)),] $($($rest)*)?)
    };
    ([$($done:tt)*] $key:literal : $value:expr $(, $($rest:tt)*)?) => {
        $crate::__entries!([$($done)* ($key, $crate::__node!($value)),] $($($rest)*)?)
    };
}

/// The items of a list: `[finished items] remaining tokens`.
#[doc(hidden)]
#[macro_export]
macro_rules! __items {
    ([$($done:tt)*]) => { &[$($done)*] };
    ([$($done:tt)*] null $(, $($rest:tt)*)?) => {
        $crate::__items!([$($done)* $crate::__node!(null),] $($($rest)*)?)
    };
    ([$($done:tt)*] { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::__items!([$($done)* $crate::__node!({ $($inner)* }),] $($($rest)*)?)
    };
    ([$($done:tt)*] [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $crate::__items!([$($done)* $crate::__node!([ $($inner)* ]),] $($($rest)*)?)
    };
    ([$($done:tt)*] $value:literal $(, $($rest:tt)*)?) => {
        $crate::__items!([$($done)* $crate::__node!($value),] $($($rest)*)?)
    };
    ([$($done:tt)*] $value:expr $(, $($rest:tt)*)?) => {
        $crate::__items!([$($done)* $crate::__node!($value),] $($($rest)*)?)
    };
}

/// The text of a node. Every node can be written. The default, `null`, is never used; the host would refuse it.
#[doc(hidden)]
pub fn text(node: &Node<'_>) -> Box<RawValue> {
    to_raw_value(node).unwrap_or_default()
}

/// A borrowed JSON value.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Node<'v> {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    String(&'v str),
    Raw(&'v RawValue),
    List(&'v [Node<'v>]),
    Object(&'v [(&'v str, Node<'v>)]),
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(value),
            Self::Signed(value) => serializer.serialize_i64(value),
            Self::Unsigned(value) => serializer.serialize_u64(value),
            Self::String(value) => serializer.serialize_str(value),
            Self::Raw(value) => value.serialize(serializer),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(entries) => serializer.collect_map(entries.iter().copied()),
        }
    }
}

/// A literal, which becomes a node when the plugin is compiled.
#[doc(hidden)]
#[derive(Debug)]
pub struct Literal<T>(pub T);

impl Literal<&'static str> {
    pub const fn node(self) -> Node<'static> {
        Node::String(self.0)
    }
}

impl Literal<bool> {
    pub const fn node(self) -> Node<'static> {
        Node::Bool(self.0)
    }
}

impl Literal<i64> {
    pub const fn node(self) -> Node<'static> {
        Node::Signed(self.0)
    }
}

/// A type whose values can be used in [`json!`].
pub trait Value {
    /// The value, borrowed.
    #[doc(hidden)]
    fn node(&self) -> Node<'_>;
}

impl<T: Value + ?Sized> Value for &T {
    fn node(&self) -> Node<'_> {
        (**self).node()
    }
}

impl<T: Value + ?Sized> Value for Box<T> {
    fn node(&self) -> Node<'_> {
        (**self).node()
    }
}

/// `None` is `null`.
impl<T: Value> Value for Option<T> {
    fn node(&self) -> Node<'_> {
        self.as_ref().map_or(Node::Null, T::node)
    }
}

impl Value for str {
    fn node(&self) -> Node<'_> {
        Node::String(self)
    }
}

impl Value for String {
    fn node(&self) -> Node<'_> {
        Node::String(self)
    }
}

impl Value for RawValue {
    fn node(&self) -> Node<'_> {
        Node::Raw(self)
    }
}

impl Value for bool {
    fn node(&self) -> Node<'_> {
        Node::Bool(*self)
    }
}

macro_rules! numbers {
    ($($type:ty: $node:ident),*) => {
        $(impl Value for $type {
            fn node(&self) -> Node<'_> {
                Node::$node((*self).into())
            }
        })*
    };
}

numbers!(i8: Signed, i16: Signed, i32: Signed, i64: Signed, u8: Unsigned, u16: Unsigned, u32: Unsigned, u64: Unsigned);

#[cfg(test)]
mod tests {
    use super::RawValue;

    fn parsed(text: &RawValue) -> serde_json::Result<serde_json::Value> {
        serde_json::from_str(text.get())
    }

    #[test]
    fn agrees_with_serde_json() -> serde_json::Result<()> {
        let (name, none, port) = ("we\"b\n\u{1}\u{e9}".to_owned(), None::<String>, Some(80_u16));
        macro_rules! same {
            ($($json:tt)+) => { assert_eq!(parsed(&crate::json!($($json)+))?, serde_json::json!($($json)+)) };
        }
        same!(null);
        same!(true);
        same!(-7);
        same!("te\"xt");
        same!({});
        same!([]);
        same!(name);
        same!({ "a": null, "b\"c": [null, true, "x", {}, [], [1, [2]]], "d": { "e": { "f": false } } });
        same!({ "none": none, "port": port, "name": name, "length": name.len() as u64, "sum": 1 + 2, });
        same!([name, &name, i64::MIN, u64::MAX, { "name": name.as_str() }, port.map(i32::from),]);
        Ok(())
    }

    #[test]
    fn json_text_is_not_changed() -> serde_json::Result<()> {
        let inner = crate::json!({ "z": 1, "a": 2 });
        let anything = serde_json::value::to_raw_value(&[1.5])?;
        let outer = crate::json!({ "first": inner, "list": [&*inner, anything] });
        assert_eq!(outer.get(), r#"{"first":{"z":1,"a":2},"list":[{"z":1,"a":2},[1.5]]}"#);
        Ok(())
    }
}
