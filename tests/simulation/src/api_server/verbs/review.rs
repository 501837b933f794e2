//! Reviews: whether the user may do something.

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use crate::api_server::{
    ApiServer, Call,
    error::{ApiError, json_response},
    user::{Attributes, Rights},
};

impl ApiServer {
    pub(super) fn review(&self, call: &Call<'_>) -> Result<Response<Bytes>, ApiError> {
        let mut review: Value =
            serde_json::from_slice(call.http.body()).map_err(|error| ApiError::bad_request(error.to_string()))?;
        review["status"] = match call.request.plural {
            "selfsubjectaccessreviews" => access(call, &review["spec"]["resourceAttributes"]),
            "selfsubjectrulesreviews" => rules(call),
            _ => return Err(ApiError::no_such_path()),
        };
        Ok(json_response(201, review.to_string().into()))
    }
}

fn access(call: &Call<'_>, wanted: &Value) -> Value {
    let text = |name: &str| wanted[name].as_str().unwrap_or_default();
    let attributes = Attributes {
        verb: text("verb"),
        group: text("group"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
    };
    json!({"allowed": call.user.may(attributes)})
}

fn rules(call: &Call<'_>) -> Value {
    let all = vec![json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})];
    let rules = match &call.user.rights {
        Rights::All => all,
        Rights::Rules(rules) => rules
            .iter()
            .map(|rule| json!({"verbs": rule.verbs, "apiGroups": rule.groups, "resources": rule.resources}))
            .collect(),
    };
    json!({"resourceRules": rules, "nonResourceRules": [], "incomplete": false})
}
