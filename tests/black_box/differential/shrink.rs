//! Finds fewer and smaller requests that still show a mismatch.

use anyhow::Result;
use serde_json::Value;

use super::{
    run::{Arena, Mismatch},
    script::Step,
};

/// The most runs for one mismatch.
const RUNS: usize = 60;

/// Shrinks a script.
///
/// # Errors
/// If a server does not answer.
pub async fn shrink(arena: &Arena, mut steps: Vec<Step>, mut mismatch: Mismatch) -> Result<(Vec<Step>, Mismatch)> {
    let mut runs = RUNS;
    let looks = mismatch.looks;
    steps.truncate(mismatch.step + 1);
    // Large pieces first.
    let mut size = steps.len().div_ceil(2);
    while size > 0 {
        let mut start = 0;
        while start < steps.len() && runs > 0 {
            let mut fewer = steps.clone();
            fewer.drain(start..(start + size).min(steps.len()));
            runs -= 1;
            match arena.run(&fewer, looks).await? {
                Some(found) => {
                    fewer.truncate(found.step + 1);
                    (steps, mismatch) = (fewer, found);
                }
                None => start += size,
            }
        }
        size /= 2;
    }
    for index in 0..steps.len() {
        let pointers = steps.get(index).map(|step| leaves(&step.body)).unwrap_or_default();
        for pointer in pointers {
            let mut smaller = steps.clone();
            let Some(step) = smaller.get_mut(index).filter(|_| runs > 0) else { return Ok((steps, mismatch)) };
            if !remove(&mut step.body, &pointer) {
                continue;
            }
            runs -= 1;
            if let Some(found) = arena.run(&smaller, looks).await? {
                smaller.truncate(found.step + 1);
                (steps, mismatch) = (smaller, found);
            }
        }
    }
    Ok((steps, mismatch))
}

/// The pointers to all fields but those that an object cannot be without, the outer ones first.
fn leaves(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut level = vec![(String::new(), value)];
    while let Some((path, value)) = level.pop() {
        for (name, value) in value.as_object().into_iter().flatten() {
            let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
            if !["/apiVersion", "/kind", "/metadata", "/metadata/name"].contains(&&*path) {
                found.push(path.clone());
            }
            level.push((path, value));
        }
    }
    found
}

fn remove(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return false };
    let name = name.replace("~1", "/").replace("~0", "~");
    value.pointer_mut(parent).and_then(Value::as_object_mut).is_some_and(|parent| parent.remove(&name).is_some())
}

impl Step {
    /// The step in another namespace.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        let mut step = self.clone();
        step.uri = step.uri.replace("NAMESPACE", namespace);
        rename(&mut step.body, namespace);
        step
    }
}

fn rename(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) if text == "NAMESPACE" => *text = namespace.to_owned(),
        Value::Array(list) => list.iter_mut().for_each(|value| rename(value, namespace)),
        Value::Object(map) => map.values_mut().for_each(|value| rename(value, namespace)),
        _ => {}
    }
}
