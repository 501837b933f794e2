//! Calling a reconcile function natively, in a test: one [`Case`] is one request and everything that the call can see, one
//! [`Answer`] is the response. No cluster and no WebAssembly are involved; the code between the two is the same as in a
//! `.wasm`.

use crate::imports::fake::{self, Fake};
use crate::kind::kind_ref;
use crate::object_ref::ObjectRef;
use crate::parse::parse;
use crate::raw::{self, Level};
use crate::{Condition, Error, Kind, Readiness, ReadinessStatus, RefusedChild, Response, Verdict};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One request, and what lookups and the clock return.
///
/// ```
/// use pilothouse_sdk::{Object, Request, Response, Verdict, testing::Case};
///
/// fn reconcile(request: &Request<Object<serde_json::Value>>) -> Response {
///     Response::done().status(&request.object.spec)
/// }
///
/// let case = Case::yaml("{apiVersion: example.com/v1, kind: Greeting, metadata: {name: a}, spec: {b: 1}}");
/// let answer = case.run(reconcile)?;
/// assert_eq!(answer.verdict(), &Verdict::Done);
/// # Ok::<(), pilothouse_sdk::Error>(())
/// ```
#[derive(Debug, Default)]
#[must_use]
pub struct Case {
    object: Value,
    children: Vec<(Value, Readiness)>,
    refused: Vec<RefusedChild>,
    config: Value,
    imports: Fake,
    /// The first part of the case that could not be read.
    error: Option<Error>,
}

impl Case {
    /// Begins with the object, as YAML or JSON text.
    pub fn yaml(object: &str) -> Self {
        let mut case = Self::default();
        case.object = case.read(object);
        case
    }

    /// Begins with the object, as a typed value.
    pub fn of(object: impl Serialize) -> Self {
        let mut case = Self::default();
        case.object = case.value(object);
        case
    }

    /// With this status of the object.
    pub fn status(mut self, status: impl Serialize) -> Self {
        self.object["status"] = self.value(status);
        self
    }

    /// With one more observed child.
    pub fn child(self, child: impl Serialize) -> Self {
        self.child_that_is(child, current())
    }

    /// With one more observed child, and how far it is.
    pub fn child_that_is(mut self, child: impl Serialize, readiness: Readiness) -> Self {
        let child = self.value(child);
        self.children.push((child, readiness));
        self
    }

    /// With one more observed child, as YAML or JSON text.
    pub fn child_yaml(mut self, child: &str) -> Self {
        let child = self.read(child);
        self.children.push((child, current()));
        self
    }

    /// With a child of the last response that could not be written.
    pub fn refused(mut self, refused: RefusedChild) -> Self {
        self.refused.push(refused);
        self
    }

    /// With a configuration of the plugin.
    pub fn config(mut self, config: impl Serialize) -> Self {
        self.config = self.value(config);
        self
    }

    /// With the clock at this time: RFC 3339 in UTC with seconds.
    pub fn now(mut self, time: &str) -> Self {
        self.imports.now = Some(time.to_owned());
        self
    }

    /// With an object that lookups can find. An object without a namespace is found in every namespace.
    pub fn found(mut self, object: impl Serialize) -> Self {
        let object = self.value(object);
        self.imports.objects.push(object);
        self
    }

    /// With lookups of kind `K` denied.
    pub fn denied<K: Kind>(mut self) -> Self {
        self.imports.denied.push(kind_ref::<K>());
        self
    }

    /// With kind `K` not installed in the cluster.
    pub fn not_installed<K: Kind>(mut self) -> Self {
        self.imports.not_installed.push(kind_ref::<K>());
        self
    }

    /// Calls `reconcile` as the host would.
    ///
    /// # Errors
    /// [`Error::Test`] if a part of the case could not be read.
    pub fn run<O, A>(self, reconcile: impl FnOnce(&crate::Request<O>) -> A) -> Result<Answer, Error>
    where
        O: DeserializeOwned,
        A: Into<Response>,
    {
        self.run_raw(|request| crate::run(request, reconcile))
    }

    /// Calls an exported function: the `reconcile_raw` or `finalize_raw` that [`crate::plugin!`] makes.
    ///
    /// # Errors
    /// [`Error::Test`] if a part of the case could not be read.
    pub fn run_raw(mut self, reconcile: impl FnOnce(raw::Request) -> raw::Response) -> Result<Answer, Error> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let namespace = self.object.pointer("/metadata/namespace").and_then(Value::as_str);
        self.imports.namespace = namespace.map(str::to_owned);
        self.imports.lines = Some(Vec::new());
        let request = self.request();
        let before = fake::replace(self.imports);
        let response = reconcile(request);
        let after = fake::replace(before);
        let child = |place: &u32| self.children.get(usize::try_from(*place).ok()?).map(|(child, _)| child.clone());
        let forced_deletions = after.forced_deletions.iter().filter_map(child).collect();
        Ok(Answer { response, lines: after.lines.unwrap_or_default(), forced_deletions })
    }

    /// The request in the contract's plain types.
    pub fn request(&self) -> raw::Request {
        raw::Request {
            object: self.object.to_string(),
            children: self.children.iter().map(live_child).collect(),
            refused: self.refused.clone(),
            config: self.config.to_string(),
        }
    }

    fn read(&mut self, text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap_or_else(|error| self.keep_error(&error))
    }

    fn value(&mut self, value: impl Serialize) -> Value {
        serde_json::to_value(value).unwrap_or_else(|error| self.keep_error(&error))
    }

    fn keep_error(&mut self, error: &dyn std::error::Error) -> Value {
        self.error.get_or_insert_with(|| Error::Test(error.to_string()));
        Value::Null
    }
}

fn live_child((object, readiness): &(Value, Readiness)) -> raw::LiveChild {
    raw::LiveChild { object: object.to_string(), readiness: readiness.clone() }
}

/// As the child's spec says.
fn current() -> Readiness {
    Readiness { status: ReadinessStatus::Current, reason: String::new(), message: String::new() }
}

/// One response, with accessors for tests.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The response as it crosses to the host.
    pub response: raw::Response,
    /// What was logged.
    pub lines: Vec<(Level, String)>,
    /// The observed children that are to be deleted at once.
    pub forced_deletions: Vec<Value>,
}

impl Answer {
    /// The verdict.
    pub fn verdict(&self) -> &Verdict {
        &self.response.verdict
    }

    /// The children of kind `K`, in the order returned.
    ///
    /// # Errors
    /// [`Error::Child`] if one of them does not fit `K`.
    pub fn children<K: Kind + DeserializeOwned>(&self) -> Result<Vec<K>, Error> {
        let listed = self.response.children.iter().flatten();
        let named = listed.map(|child| (ObjectRef::of(&child.object), &child.object));
        let of_kind = named.filter(|(child, _)| child.is_of_kind::<K>());
        of_kind.map(|(child, text)| parse(text).map_err(|error| Error::child::<K>(&child.name, &error))).collect()
    }

    /// The only child of kind `K`.
    ///
    /// # Errors
    /// [`Error::Test`] if there is none or more than one, [`Error::Child`] if it does not fit `K`.
    pub fn child<K: Kind + DeserializeOwned>(&self) -> Result<K, Error> {
        let mut children = self.children::<K>()?;
        match (children.pop(), children.len()) {
            (Some(child), 0) => Ok(child),
            (last, others) => {
                let count = others + usize::from(last.is_some());
                Err(Error::Test(format!("{count} children of kind {}", K::KIND)))
            }
        }
    }

    /// The condition of that type, if it is set.
    pub fn condition(&self, condition_type: &str) -> Option<&Condition> {
        self.response.conditions.iter().find(|c| c.condition_type == condition_type)
    }

    /// The status fields.
    ///
    /// # Errors
    /// [`Error::Test`] if there are none or they do not fit `S`.
    pub fn status<S: DeserializeOwned>(&self) -> Result<S, Error> {
        let text = self.response.status.as_deref();
        let text = text.ok_or_else(|| Error::Test("no status".to_owned()))?;
        parse(text).map_err(|error| Error::Test(format!("status: {error}")))
    }
}
