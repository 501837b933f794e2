//! The acts, by name. Each is one way in which a plugin can be right or wrong.

use crate::excess;
use crate::fields::{Misbehaver, Spec};
use crate::kinds::{Absent, ConfigMap, Peer, Secret};
use pilothouse_sdk::{Condition, Error, Event, Measurement, Request, Response, clock, log, lookup, raw};
use serde_json::{Value, json};

/// Does what `spec.act` says.
///
/// # Errors
/// A lookup that is denied, a kind that is not installed.
pub fn act(request: &Request<Misbehaver>) -> Result<Response, Error> {
    let object = &request.object;
    let spec = &object.spec;
    let well = || Response::done().child_with(config_map(object, json!(spec.data)), spec.options());
    Ok(match spec.act.as_str() {
        // Right.
        "well" => well().status(json!({ "acted": spec.act })),
        "ready" => well().condition(Condition::when("Ready", true, "Acted", spec.text(""))),
        "unready" => well().condition(Condition::when("Ready", false, "Unready", spec.text(""))),
        "unready-requeue" => {
            well().condition(Condition::when("Ready", false, "Unready", spec.text(""))).requeue_after(spec.number(1))
        }
        "none" => Response::done().no_children(),
        "leave" => Response::done(),
        "several" => several(object, spec.number(3)),
        "counted" => counted(object)?,
        "immutable" => {
            let mut child = config_map(object, json!(spec.data));
            child["immutable"] = true.into();
            Response::done().child_with(child, spec.options())
        }
        "requeue" => well().requeue_after(spec.number(1)),
        "wait" => {
            // Whoever looks at the clock may see something else the next time, and is asked again.
            let asked = clock::now_text();
            Response::wait("Missing", spec.text("something is missing"), spec.number(1))
                .status(json!({ "asked": asked }))
        }
        "retry" => Response::retry(spec.text("try again")),
        "invalid" => Response::invalid(spec.text("this cannot be")),
        "event" => well().event(Event::normal("Acted", spec.text("it acted"))),
        "warning" => well().event(Event::warning("Acted", spec.text("it acted"))),
        "log" => {
            log::info(spec.text("it acted"));
            well()
        }
        "measure" => well()
            .measurement(Measurement::new("misbehaver_calls_total", 1.0).label("act", &spec.act))
            .measurement(Measurement::new("misbehaver_value", spec.number(1).into())),
        "measure-once" => measure_once(object),
        "measure-many" => (0..spec.number(10)).fold(well(), |response, i| {
            response.measurement(Measurement::new("misbehaver_calls_total", 1.0).label("act", format!("many-{i}")))
        }),
        "clock" => {
            let response = Response::done().child(config_map(object, json!({ "now": clock::now_text() })));
            match spec.number {
                Some(seconds) => response.requeue_after(seconds),
                None => response,
            }
        }
        "config" => {
            let config = request.config::<Value>()?.to_string();
            Response::done().child(config_map(object, json!({ "config": config })))
        }
        "lookup" => copy(object)?,
        "lookup-select" => select(object)?,
        "lookup-ready" => match lookup::get::<Peer>(None, name(object))? {
            Some(peer) if peer.is_ready() => well(),
            _ => Response::wait("PeerNotReady", format!("{} is not ready", name(object)), spec.number(300)),
        },
        // Not allowed.
        "lookup-denied" => {
            lookup::get::<Secret>(spec.namespace.as_deref(), name(object))?;
            well()
        }
        "lookup-absent" => {
            lookup::get::<Absent>(spec.namespace.as_deref(), name(object))?;
            well()
        }
        "undeclared-kind" => Response::done().child(of_kind(object, "v1", "Secret")),
        "absent-child" => Response::done().child(of_kind(object, "absent.pilothouse.dev/v1", "Absent")),
        "cluster-child" => Response::done().child(of_kind(object, "v1", "Namespace")),
        "name-taken" => {
            let mut child = config_map(object, json!(spec.data));
            child["metadata"]["name"] = spec.name.as_deref().unwrap_or("taken").into();
            Response::done().child_with(child, spec.options())
        }
        "other-namespace" => {
            let mut child = config_map(object, json!(spec.data));
            child["metadata"]["namespace"] = spec.namespace.as_deref().unwrap_or("default").into();
            Response::done().child(child)
        }
        "foreign-owner" => {
            let mut child = config_map(object, json!(spec.data));
            child["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other", "controller": true,
            }]);
            Response::done().child(child)
        }
        "duplicate" => well().child(config_map(object, json!({}))),
        "no-name" => Response::done().child(json!({ "apiVersion": "v1", "kind": "ConfigMap" })),
        "host-condition" => well().condition(Condition::when("Reconciling", true, "Acted", "")),
        "empty-reason" => well().condition(Condition::when("Ready", true, "", "")),
        "undeclared-measurement" => well().measurement(Measurement::new("other_total", 1.0)),
        "wrong-label" => well().measurement(Measurement::new("misbehaver_value", 1.0).label("act", &spec.act)),
        "negative-measurement" => {
            well().measurement(Measurement::new("misbehaver_calls_total", -1.0).label("act", &spec.act))
        }
        "refused-child" => Response::done().child(config_map(object, json!({ "not a key": "x" }))),
        // Not even JSON.
        "invalid-json" => with_child_text(object, "{ this is not JSON"),
        "deep-json" => with_child_text(object, &"[".repeat(100_000)),
        "bad-status" => well().status("not an object"),
        // Too much.
        "huge" => {
            Response::done().child(config_map(object, json!({ "huge": "x".repeat(spec.number(2 << 20) as usize) })))
        }
        "huge-status" => well().status(json!({ "huge": "x".repeat(spec.number(2 << 20) as usize) })),
        "huge-log" => {
            log::info("x".repeat(spec.number(2 << 20) as usize));
            well()
        }
        "many-logs" => {
            (0..spec.number(10_000)).for_each(|i| log::info(format_args!("line {i}")));
            well()
        }
        "many-events" => (0..spec.number(10_000))
            .fold(well(), |response, i| response.event(Event::normal("Acted", format!("event {i}")))),
        "many-lookups" => {
            for i in 0..spec.number(10_000) {
                lookup::get::<ConfigMap>(None, &format!("absent-{i}"))?;
            }
            well()
        }
        "many-children" => several(object, spec.number(10_000)),
        "loop" => excess::run_for_ever(),
        "allocate" => excess::allocate_for_ever(),
        "recurse" => Response::invalid(excess::recurse_for_ever(0).to_string()),
        "trap" => excess::panic_with(spec.text("it was asked to")),
        other => Response::invalid(format!("there is no act {other:?}")),
    })
}

fn name(object: &Misbehaver) -> &str {
    object.spec.name.as_deref().unwrap_or(object.name())
}

fn config_map(object: &Misbehaver, data: Value) -> Value {
    let mut child = of_kind(object, "v1", "ConfigMap");
    child["data"] = data;
    child
}

fn of_kind(object: &Misbehaver, api_version: &str, kind: &str) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": object.name() } })
}

fn several(object: &Misbehaver, count: u32) -> Response {
    (0..count).fold(Response::done().no_children(), |response, i| {
        let mut child = config_map(object, json!(object.spec.data));
        child["metadata"]["name"] = format!("{}-{i}", object.name()).into();
        response.child_with(child, object.spec.options())
    })
}

/// As many children as the ConfigMap that `spec.name` names says in `count`, removed on purpose if it has `onPurpose`.
fn counted(object: &Misbehaver) -> Result<Response, Error> {
    let found = lookup::get::<ConfigMap>(None, name(object))?;
    let data = found.map(|found| found.data).unwrap_or_default();
    let count = data.get("count").and_then(|count| count.parse().ok()).unwrap_or_default();
    let response = several(object, count);
    Ok(if data.contains_key("onPurpose") { response.removes_many() } else { response })
}

/// Counts every number that `spec.number` has had; the last one that was counted is in the status.
fn measure_once(object: &Misbehaver) -> Response {
    let number = object.spec.number(1);
    let counted = object.status.as_ref().and_then(|status| status["measured"].as_u64());
    let response = Response::done().child(config_map(object, json!({}))).status(json!({ "measured": number }));
    if counted == Some(number.into()) {
        return response;
    }
    response
        .measurement(Measurement::new("misbehaver_transitions_total", 1.0))
        .measurement(Measurement::new("misbehaver_seconds", number.into()))
}

/// Copies the data of the ConfigMap that `spec.name` names; waits while there is none.
fn copy(object: &Misbehaver) -> Result<Response, Error> {
    let found = lookup::get::<ConfigMap>(object.spec.namespace.as_deref(), name(object))?;
    let Some(found) = found else {
        let message = format!("ConfigMap {} is missing", name(object));
        return Ok(Response::wait("Missing", message, object.spec.number(300)));
    };
    let mut child = config_map(object, json!(found.data));
    child["metadata"]["name"] = format!("{}-copy", object.name()).into();
    Ok(Response::done().child(child))
}

/// Lists the ConfigMaps that the selector in `spec.text` matches.
fn select(object: &Misbehaver) -> Result<Response, Error> {
    let Spec { namespace, .. } = &object.spec;
    let found = lookup::select::<ConfigMap>(namespace.as_deref(), object.spec.text(""))?;
    let names: Vec<_> = found.into_iter().map(|map| map.metadata.name).collect();
    Ok(Response::done().child(config_map(object, json!({ "names": names.join(",") }))))
}

/// A response that the typed builder cannot make.
fn with_child_text(object: &Misbehaver, text: &str) -> Response {
    let mut response =
        raw::Response::from(Response::done().child_with(config_map(object, json!({})), object.spec.options()));
    for child in response.children.iter_mut().flatten() {
        text.clone_into(&mut child.object);
    }
    response.into()
}
