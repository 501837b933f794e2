//! From an object, what lives of it and a composition to the response. What is not known yet is waited for, and stays as it is meanwhile;
//! only what is known not to be wanted is left out.

mod findings;
mod live;
mod lookup;
mod report;
mod resource;
mod state;

use pilothouse_sdk::{Error, Handling, Options, Response, raw};
use serde_json::Value;

use self::findings::Findings;
use self::live::Live;
use self::report::report;
use self::resource::{Desired, Made};
use self::state::{Round, State};
use crate::composition::compile;
use crate::parts::{Composition, Node};

/// How often something that is missing is looked for again, in seconds. The host calls earlier when it appears.
const RECHECK_SECONDS: u32 = 300;

/// The most sentences of a message.
const MOST_SENTENCES: usize = 3;

/// The reason while a child waits for another one, or for a field of it.
const AWAITING_RESOURCES: &str = "AwaitingResources";

/// The reason while a child is not as its `readyWhen` says.
const NOT_READY: &str = "NotReady";

/// The response for an object.
pub fn reconcile(request: raw::Request) -> Response {
    match compile(&request.config) {
        Ok(composition) => respond(&composition, &request).unwrap_or_else(Response::from),
        Err(problems) => {
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            Response::invalid(format!("the configuration is no composition: {}", sentences(&problems)))
        }
    }
}

fn respond(composition: &Composition, request: &raw::Request) -> Result<Response, Error> {
    let object: Value = serde_json::from_str(&request.object).unwrap_or_default();
    let live = live::read(&request.children);
    let mut round = Round::new(composition, object, &live);
    let mut made: Vec<Option<Made>> = composition.nodes.iter().map(|_| None).collect();
    let mut findings = Findings::default();
    for place in composition.order.iter().copied() {
        let Some(node) = composition.nodes.get(place) else { continue };
        let state = match node {
            Node::Variable { path, value } => round.of_value(value.value(path, &round.values()), node),
            Node::Lookup(found) => {
                let name = composition.names.get(place).map(String::as_str).unwrap_or_default();
                lookup::look(&round, name, found, &mut findings.missing)?
            }
            Node::Resource(resource) => {
                let of_resource = resource::make(&round, place, resource);
                let state = of_resource.state.clone();
                round.set_ready(place, of_resource.is_ready);
                if let Some(slot) = made.get_mut(place) {
                    *slot = Some(of_resource);
                }
                state
            }
        };
        if let (State::Wrong(why), Node::Variable { .. } | Node::Lookup(_)) = (&state, node) {
            findings.wrong.push(why.clone());
        }
        round.set(place, state);
    }
    // In the order in which they are written, whatever the order in which they are made.
    for of_resource in made.into_iter().flatten() {
        let Made { desired, waits, wrong, unready, unnamed, .. } = of_resource;
        findings.desired.extend(desired);
        findings.waits.extend(waits);
        findings.wrong.extend(wrong);
        findings.unready.extend(unready);
        findings.unnamed.extend(unnamed);
    }
    let said = report(&round, &mut findings.wrong);
    let response = said.add_to(verdict(&findings), &findings);
    Ok(match findings.missing.is_empty() {
        true => children(response, findings, &live),
        false => response,
    })
}

fn verdict(findings: &Findings) -> Response {
    let Findings { waits, wrong, unready, missing, .. } = findings;
    match (missing.first(), wrong.is_empty(), waits.is_empty(), unready.is_empty()) {
        (_, false, ..) => Response::invalid(sentences(wrong)),
        (Some((reason, message)), ..) => Response::wait(reason, message, RECHECK_SECONDS),
        (None, true, false, _) => Response::wait(AWAITING_RESOURCES, sentences(waits), RECHECK_SECONDS),
        (None, true, true, false) => Response::wait(NOT_READY, sentences(unready), RECHECK_SECONDS),
        (None, true, true, true) => Response::done(),
    }
}

/// The response with the children, and with those that stay as their names are not known.
fn children(response: Response, findings: Findings, live: &[Live]) -> Response {
    let Findings { desired, unnamed, .. } = findings;
    let is_returned = |it: &&Live| desired.iter().any(|desired| it.is(&desired.object));
    let stay = live.iter().filter(|it| unnamed.contains(&it.kind) && !is_returned(it));
    let stay: Vec<_> = stay.map(Live::untouched).collect();
    let mut response = response.no_children();
    for Desired { object, options } in desired {
        response = response.child_with(object, options);
    }
    let keep = || Options { handling: Handling::Keep, ..Options::default() };
    stay.into_iter().fold(response, |response, object| response.child_with(object, keep()))
}

fn sentences(all: &[String]) -> String {
    let mut text = all.iter().take(MOST_SENTENCES).cloned().collect::<Vec<_>>().join("; ");
    if all.len() > MOST_SENTENCES {
        text.push_str(&format!("; and {} more", all.len() - MOST_SENTENCES));
    }
    text
}
