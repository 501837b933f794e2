//! The scale subresource: the replicas of an object, and nothing else of it.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, header::CONTENT_TYPE};
use serde_json::{Map, Value, json};

use super::{
    dispatch::Part,
    draft::{Draft, in_version},
    update::Updated,
};
use crate::api_server::{
    ApiServer, Call,
    error::{ApiError, json_response},
    kinds::{Kind, Scale},
    managed::Written,
    store::Object,
};

impl ApiServer {
    pub(super) fn scale(
        &mut self,
        call: &Call<'_>,
        kind: &Arc<Kind>,
        method: &Method,
    ) -> Result<Response<Bytes>, ApiError> {
        let Some(scale) = &kind.scale else { return Err(ApiError::no_such_path()) };
        let key = kind.key(call.request.namespace, call.request.name);
        let live = self.store.get(&kind.resource, &key).cloned();
        let live = live.ok_or_else(|| ApiError::not_found(kind.about(call.request.name)))?;
        let shown = shown(&live, kind, scale);
        let wanted: Value = match *method {
            Method::GET => return Ok(json_response(200, shown.to_string().into())),
            Method::PUT => parse(call)?,
            Method::PATCH => {
                let content_type = call.http.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
                if content_type != Some("application/merge-patch+json") {
                    return Err(ApiError::unsupported_media_type());
                }
                let mut wanted = shown;
                json_patch::merge(&mut wanted, &parse(call)?);
                wanted
            }
            _ => return Err(ApiError::method_not_allowed()),
        };
        let mut value = in_version(&live, kind).into_owned();
        let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or_default();
        let written = match replicas {
            _ if find(&value, &scale.spec).and_then(Value::as_i64).unwrap_or_default() == replicas => Written::Same,
            0 => Written::Zero,
            _ => Written::Number,
        };
        set(&mut value, &scale.spec, replicas.into());
        let writer = (&*call.manager(), &kind.api_version);
        let managed = live.managed.clone().through_scale(&scale.spec, writer, written);
        let said = wanted["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let draft = Draft { value, version: said.or(Some(live.revision)), managed };
        let updated = self.update(call, &live, draft, (kind, Part::Main))?;
        let (Updated::Kept(object), Some(scale)) = (updated, &kind.scale) else { return Err(ApiError::no_such_path()) };
        Ok(json_response(200, self::shown(&object, kind, scale).to_string().into()))
    }
}

fn parse(call: &Call<'_>) -> Result<Value, ApiError> {
    serde_json::from_slice(call.http.body()).map_err(|error| ApiError::bad_request(error.to_string()))
}

fn shown(object: &Object, kind: &Kind, scale: &Scale) -> Value {
    let value = in_version(object, kind);
    let replicas = |path: &[String]| find(&value, path).and_then(Value::as_i64).unwrap_or_default();
    let metadata = json!({
        "name": object.name(),
        "namespace": object.namespace(),
        "uid": object.uid(),
        "resourceVersion": object.revision.to_string(),
        "creationTimestamp": object.metadata("creationTimestamp"),
    });
    let mut status = json!({"replicas": replicas(&scale.status)});
    let selector = find(&value, &scale.selector).filter(|_| !scale.selector.is_empty());
    if let Some(selector) = selector {
        status["selector"] = selector.as_str().map_or_else(|| selector_text(selector), str::to_owned).into();
    }
    let replicas = replicas(&scale.spec);
    let spec = if replicas == 0 { json!({}) } else { json!({"replicas": replicas}) };
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

fn selector_text(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    labels.collect::<Vec<_>>().join(",")
}

fn find<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| value.get(step))
}

fn set(value: &mut Value, path: &[String], to: Value) {
    let mut place = value;
    for step in path {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[step.as_str()];
    }
    *place = to;
}
