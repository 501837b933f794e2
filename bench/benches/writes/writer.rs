//! Writes objects of one namespace in one way, and knows their states from the answers. Measures nothing.

use std::collections::HashMap;

use anyhow::{Context, Result, bail, ensure};
use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use serde_json::{Value, json};

use crate::{protobuf, subject::Subject, way::Way};

/// Who writes.
const MANAGER: &str = "pilothouse";

/// No object has this resource version, so that an apply with it creates or fails.
const VERSION_OF_NONE: &str = "1";

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Writes in one way.
pub struct Writer<'a> {
    client: &'a Client,
    subject: &'a Subject,
    way: Way,
    namespace: String,
    /// The objects, by their numbers.
    known: HashMap<usize, Known>,
    /// What creations in protobuf are made from.
    model: Vec<u8>,
}

/// An object as the last answer had it.
struct Known {
    answer: Answer,
    /// The number of its last change.
    change: usize,
}

/// An answer of the API server.
enum Answer {
    Json(Value),
    Protobuf(Vec<u8>),
}

/// A request.
struct Call {
    method: Method,
    url: String,
    content: &'static str,
    accept: &'static str,
    body: Vec<u8>,
}

impl<'a> Writer<'a> {
    /// A writer for a namespace that is there.
    pub async fn new(client: &'a Client, subject: &'a Subject, way: Way, namespace: String) -> Result<Self> {
        let mut writer = Self { client, subject, way, namespace, known: HashMap::new(), model: Vec::new() };
        if way == Way::WholeInProtobuf {
            writer.model = writer.protobuf_of_new().await?;
        }
        Ok(writer)
    }

    /// Creates the object with this number.
    pub async fn create(&mut self, number: usize) -> Result<()> {
        let name = name(number);
        let call = match self.way {
            Way::Apply => {
                let object = guarded((self.subject.object)(&name), json!({"resourceVersion": VERSION_OF_NONE}))?;
                Call { url: self.applied(self.url(&name)), ..Call::json(Method::PATCH, APPLY, &object) }
            }
            Way::Patch | Way::Whole => {
                Call { url: self.all(), ..Call::json(Method::POST, JSON, &(self.subject.object)(&name)) }
            }
            Way::WholeInProtobuf => {
                let body = protobuf::replaced(&self.model, MODEL.as_bytes(), name.as_bytes())?;
                Call { method: Method::POST, url: self.all(), content: PROTOBUF, accept: PROTOBUF, body }
            }
        };
        let answer = self.send(call).await?;
        self.known.insert(number, Known { answer, change: 0 });
        Ok(())
    }

    /// Makes the change with this number to an object.
    pub async fn change(&mut self, object: usize, change: usize) -> Result<()> {
        let name = name(object);
        let patch = (self.subject.change)(&name, change);
        let status = if self.subject.is_status { "/status" } else { "" };
        let url = self.url(&name) + status;
        let known = self.known.get(&object).context("an object that was not created")?;
        let call = match (self.way, &known.answer) {
            (Way::Apply, Answer::Json(state)) => {
                let mut whole = (self.subject.object)(&name);
                if self.subject.is_status {
                    whole =
                        json!({"apiVersion": whole["apiVersion"], "kind": whole["kind"], "metadata": {"name": name}});
                }
                json_patch::merge(&mut whole, &patch);
                Call { url: self.applied(url), ..Call::json(Method::PATCH, APPLY, &guarded(whole, guard(state))?) }
            }
            (Way::Patch, Answer::Json(state)) => {
                Call { url, ..Call::json(Method::PATCH, MERGE, &guarded(patch, guard(state))?) }
            }
            (Way::Whole, Answer::Json(state)) => {
                let mut whole = state.clone();
                json_patch::merge(&mut whole, &patch);
                Call { url, ..Call::json(Method::PUT, JSON, &whole) }
            }
            (Way::WholeInProtobuf, Answer::Protobuf(state)) => {
                let texts = (self.subject.texts)(known.change).into_iter().zip((self.subject.texts)(change));
                let body = texts.into_iter().try_fold(state.clone(), |state, (old, new)| {
                    protobuf::replaced(&state, old.as_bytes(), new.as_bytes())
                })?;
                Call { method: Method::PUT, url, content: PROTOBUF, accept: PROTOBUF, body }
            }
            _ => bail!("an answer in another form than the request"),
        };
        let answer = self.send(call).await?;
        self.known.insert(object, Known { answer, change });
        Ok(())
    }

    /// A new object in protobuf, without what the API server says of it. Read from one that is created for that.
    async fn protobuf_of_new(&self) -> Result<Vec<u8>> {
        let object = (self.subject.object)(MODEL);
        self.send(Call { url: self.all(), ..Call::json(Method::POST, JSON, &object) }).await?;
        let call = Call { accept: PROTOBUF, url: self.url(MODEL), ..Call::json(Method::GET, JSON, &Value::Null) };
        let Answer::Protobuf(bytes) = self.send(Call { body: Vec::new(), ..call }).await? else { bail!("no protobuf") };
        protobuf::without_state(&bytes, self.subject.allocated)
    }

    fn all(&self) -> String {
        format!("/{}/namespaces/{}/{}", self.subject.path, self.namespace, self.subject.resource)
    }

    fn url(&self, name: &str) -> String {
        format!("/{}/namespaces/{}/{}/{name}", self.subject.path, self.namespace, self.subject.resource)
    }

    fn applied(&self, url: String) -> String {
        url + "?force=true"
    }

    async fn send(&self, call: Call) -> Result<Answer> {
        let Call { method, url, content, accept, body } = call;
        let separator = if url.contains('?') { '&' } else { '?' };
        // As the host writes: to check for unknown fields costs a second parse.
        let url = format!("{url}{separator}fieldManager={MANAGER}&fieldValidation=Ignore");
        let request = Request::builder().method(method).uri(&url);
        let request = request.header(header::CONTENT_TYPE, content).header(header::ACCEPT, accept);
        let response = self.client.send(request.body(Body::from(body))?).await.with_context(|| url.clone())?;
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "{url}: {status}: {}", String::from_utf8_lossy(&bytes));
        Ok(if accept == JSON {
            Answer::Json(serde_json::from_slice(&bytes)?)
        } else {
            Answer::Protobuf(bytes.to_vec())
        })
    }
}

/// The name of what creations in protobuf are made from: as long as those of other objects.
const MODEL: &str = "object-model0";

fn name(number: usize) -> String {
    format!("object-{number:06}")
}

impl Call {
    fn json(method: Method, content: &'static str, body: &Value) -> Self {
        Self { method, url: String::new(), content, accept: JSON, body: body.to_string().into_bytes() }
    }
}

/// The UID and the resource version that an object is known to have.
fn guard(state: &Value) -> Value {
    json!({"uid": state["metadata"]["uid"], "resourceVersion": state["metadata"]["resourceVersion"]})
}

fn guarded(mut object: Value, guard: Value) -> Result<Value> {
    let metadata = object.as_object_mut().context("no object")?.entry("metadata").or_insert_with(|| json!({}));
    json_patch::merge(metadata, &guard);
    Ok(object)
}
