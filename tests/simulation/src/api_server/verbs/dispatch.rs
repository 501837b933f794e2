//! Finds out what a request is about, and passes it on.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request as HttpRequest, Response};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api_server::{
    ApiServer, Call,
    error::{About, ApiError, json_response},
    kinds::{Kind, discovery},
    request::Request,
    user::{Attributes, User},
};

/// Which part of an object a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All but the status.
    Main,
    /// The status.
    Status,
}

impl Part {
    /// The word in paths.
    pub(super) fn subresource(self) -> &'static str {
        if self == Self::Status { "status" } else { "" }
    }
}

impl ApiServer {
    pub(crate) fn answer(
        &mut self,
        now: Timestamp,
        user: &User,
        http: &HttpRequest<Bytes>,
    ) -> Result<Response<Bytes>, ApiError> {
        let Some(request) = Request::parse(http) else { return self.document(http.uri().path()) };
        if request.plural.is_empty() {
            return self.discovery(&request, http.uri().path());
        }
        let verb = request.verb(http.method());
        let call = Call { now, user, request, verb, http };
        if call.request.group == "authorization.k8s.io" && http.method() == Method::POST {
            return self.review(&call);
        }
        let kind = self.kind_of(&call)?;
        authorize(&call, &kind)?;
        match (call.request.subresource, http.method()) {
            ("", &Method::GET) if call.request.name.is_empty() => self.list(&call, &kind),
            ("", &Method::GET) => self.get(&call, &kind),
            ("", &Method::POST) if call.request.name.is_empty() => self.create(&call, &kind),
            ("", &Method::PUT) if !call.request.name.is_empty() => self.replace(&call, &kind, Part::Main),
            ("", &Method::PATCH) if !call.request.name.is_empty() => self.patch(&call, &kind, Part::Main),
            ("", &Method::DELETE) if call.request.name.is_empty() => self.delete_collection(&call, &kind),
            ("", &Method::DELETE) => self.delete(&call, &kind),
            ("status", method) if kind.has_status => match *method {
                Method::GET => self.get(&call, &kind),
                Method::PUT => self.replace(&call, &kind, Part::Status),
                Method::PATCH => self.patch(&call, &kind, Part::Status),
                _ => Err(ApiError::method_not_allowed()),
            },
            ("scale", method) if kind.scale.is_some() => self.scale(&call, &kind, method),
            ("", _) => Err(ApiError::method_not_allowed()),
            // The server of custom kinds knows the object; that of the others knows no such path.
            _ if kind.is_custom() => Err(ApiError::not_found(kind.about(call.request.name))),
            _ => Err(ApiError::no_such_path()),
        }
    }

    /// The kind that a request is about.
    ///
    /// # Errors
    /// 404 if it is not served.
    pub(super) fn kind_of(&self, call: &Call<'_>) -> Result<Arc<Kind>, ApiError> {
        let request = &call.request;
        let kind =
            self.served.find(request.group, request.version, request.plural).ok_or_else(ApiError::no_such_path)?;
        let is_cluster_wide = request.namespace.is_empty();
        if !kind.namespaced && !is_cluster_wide {
            return Err(ApiError::no_such_path());
        }
        // Objects in namespaces can be read together, and nothing else.
        if kind.namespaced && is_cluster_wide && !["list", "watch"].contains(&call.verb) {
            return Err(if request.name.is_empty() && !kind.is_custom() {
                ApiError::method_not_allowed()
            } else {
                ApiError::no_such_path()
            });
        }
        Ok(kind.clone())
    }

    fn discovery(&self, request: &Request<'_>, path: &str) -> Result<Response<Bytes>, ApiError> {
        let found = self.served.document(path, || {
            let found = match (request.group, request.version) {
                ("", "") => Some(discovery::groups(&self.served)),
                (group, version) => discovery::resources(&self.served, group, version),
            };
            Some(found?.to_string().into())
        });
        found.map(|found| json_response(200, found)).ok_or_else(ApiError::no_such_path)
    }

    fn document(&self, path: &str) -> Result<Response<Bytes>, ApiError> {
        match path {
            "/version" => Ok(json_response(200, version().to_string().into())),
            "/healthz" | "/livez" | "/readyz" => Ok(Response::new(Bytes::from_static(b"ok"))),
            _ => {
                let name = path.strip_prefix("/openapi/v3").ok_or_else(ApiError::no_such_path)?.trim_start_matches('/');
                let document = self.served.document(path, || match name {
                    "" => Some(discovery::openapi_index(&self.catalog, &self.served).to_string().into()),
                    name => discovery::openapi_document(&self.catalog, &self.served, name),
                });
                document.map(|document| json_response(200, document)).ok_or_else(ApiError::no_such_path)
            }
        }
    }
}

fn version() -> Value {
    json!({"major": "1", "minor": "34", "gitVersion": "v1.34.4", "platform": "simulated"})
}

/// Refuses what the user may not do.
///
/// # Errors
/// 403.
pub(super) fn authorize(call: &Call<'_>, kind: &Kind) -> Result<(), ApiError> {
    let request = &call.request;
    let wanted = Attributes::of(call.verb, kind, request.namespace, request.subresource);
    if call.user.may(wanted) {
        return Ok(());
    }
    let resource = if request.subresource.is_empty() {
        request.plural.to_owned()
    } else {
        format!("{}/{}", request.plural, request.subresource)
    };
    let scope = if request.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", request.namespace)
    };
    let why = format!(
        "User {:?} cannot {} resource {resource:?} in API group {:?} {scope}",
        call.user.name, call.verb, request.group
    );
    Err(ApiError::forbidden(About { group: request.group, resource: request.plural, name: request.name }, &why))
}
