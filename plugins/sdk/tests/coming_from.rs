//! `docs/coming-from.md`: each block of the page is a file of `tests/fixtures/coming-from`, and those that run by themselves ask for the same
//! Deployment. What is in Go is parsed here; `make docs` compiles what is on controller-runtime.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use pilothouse_sdk::{Error, testing::Case};
use serde_json::{Value, json};

#[allow(missing_docs, reason = "it is on the page as it is")]
#[path = "../../../tests/fixtures/coming-from/pilothouse.rs"]
mod website;

const PAGE: &str = include_str!("../../../docs/coming-from.md");

/// The files of the page, in its order.
const FILES: [&str; 9] = [
    "pilothouse.rs",
    "pilothouse.yaml",
    "controller-runtime.go",
    "metacontroller.py",
    "metacontroller.yaml",
    "crossplane.py",
    "crossplane.yaml",
    "yoke.go",
    "yoke.yaml",
];

/// Calls the hook of Metacontroller.
const METACONTROLLER: &str = r#"
import json, sys
sys.path.insert(0, sys.argv[1])
from metacontroller import sync
parent, live = json.load(sys.stdin)
answer = sync(parent, {"Deployment.apps/v1": {live["metadata"]["name"]: live}})
print(json.dumps({"child": answer["children"][0], "ready": answer["status"]["readyReplicas"]}))
"#;

/// Calls the function of Crossplane, with stand-ins for its messages.
const CROSSPLANE: &str = r#"
import collections, json, sys
sys.path.insert(0, sys.argv[1])
from types import SimpleNamespace as Message
from crossplane import compose
parent, live = json.load(sys.stdin)
resources = lambda **known: collections.defaultdict(lambda: Message(resource={}, ready=False), known)
state = lambda composite, children: Message(composite=Message(resource=composite), resources=children)
asked = Message(observed=state(parent, resources(deployment=Message(resource=live))))
answer = Message(desired=state({}, resources()))
compose(asked, answer)
desired = answer.desired
assert desired.resources["deployment"].ready
print(json.dumps({"child": desired.resources["deployment"].resource, "ready": desired.composite.resource["status"]["readyReplicas"]}))
"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/coming-from")
}

fn object() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"image": "nginx:1", "replicas": 2},
    })
}

fn live() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {}, "template": {}}, "status": {"readyReplicas": 2},
    })
}

/// What ours answers, as the scripts print it.
fn ours() -> Result<Value, Error> {
    let answer = Case::of(object()).child(live()).run_raw(website::reconcile_raw)?;
    let children = answer.response.children.clone().unwrap_or_default();
    let child = children.first().and_then(|child| serde_json::from_str::<Value>(&child.object).ok());
    Ok(json!({ "child": child, "ready": answer.status::<Value>()?["readyReplicas"] }))
}

#[test]
fn each_block_of_the_page_is_a_file() {
    let blocks: Vec<_> = PAGE.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect();
    assert_eq!(blocks.len(), FILES.len(), "the page is written in another way");
    for ((_, block), file) in blocks.into_iter().zip(FILES) {
        let text = std::fs::read_to_string(folder().join(file)).unwrap_or_default();
        assert_eq!(block.trim_end(), text.trim_end(), "the page does not have what is in {file}");
    }
}

#[test]
fn all_that_run_ask_for_the_same_deployment() -> Result<(), Box<dyn std::error::Error>> {
    let ours = ours()?;
    assert!(website::MANIFEST.contains(r#""kind":"Website""#), "{}", website::MANIFEST);
    assert_eq!(ours["child"]["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:1");
    if !has("python3")? {
        return Ok(());
    }
    for (name, script) in [("Metacontroller", METACONTROLLER), ("Crossplane", CROSSPLANE)] {
        let folder = folder();
        let printed =
            run("python3", &["-B".as_ref(), "-c".as_ref(), script.as_ref(), &folder], &json!([object(), live()]))?;
        let theirs: Value = serde_json::from_slice(&printed.stdout)?;
        assert_eq!(theirs, ours, "{name}");
    }
    Ok(())
}

#[test]
fn what_is_in_go_is_go() -> Result<(), Box<dyn std::error::Error>> {
    if !has("gofmt")? {
        return Ok(());
    }
    for file in FILES.iter().filter(|file| file.ends_with(".go")) {
        let unformatted = run("gofmt", &["-e".as_ref(), "-l".as_ref(), &folder().join(file)], &Value::Null)?;
        assert!(unformatted.stdout.is_empty(), "{file} is not formatted");
    }
    Ok(())
}

/// Whether a program is there. In CI it is to be.
fn has(program: &str) -> Result<bool, Box<dyn std::error::Error>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !is_there && std::env::var_os("CI").is_some() {
        return Err(format!("there is no {program}").into());
    }
    if !is_there {
        eprintln!("skipped: there is no {program}");
    }
    Ok(is_there)
}

fn run(program: &str, arguments: &[&Path], input: &Value) -> Result<Output, Box<dyn std::error::Error>> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.to_string().as_bytes())?;
    }
    let output = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(output) } else { Err(format!("{program}: {errors}").into()) }
}
