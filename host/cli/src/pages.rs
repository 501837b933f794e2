//! What the pages of the repository have in their blocks is what the program takes: its commands, `Plugin`s and what plugins say about themselves.
//! Runs none of it. Blocks of pages that have tests of their own are not looked at.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{CommandFactory, error::ErrorKind};
use pilothouse_controller::api::Plugin;
use pilothouse_engine::Manifest;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::Arguments;

/// Pages whose YAML other tests read: `compose/guide`, `training-job/guide`, `model-deployment/guide`, `sdk/coming_from`, `projects/tutorial`.
const READ_ELSEWHERE: [&str; 6] =
    ["compose.md", "training-job.md", "llm-serving.md", "coming-from.md", "tutorial.md", "patterns.md"];

/// A block of a page.
struct Block {
    page: String,
    language: String,
    text: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All blocks of all pages but those that are generated.
fn blocks() -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    for folder in ["", "docs", "docs/decisions", "deploy", "examples", "examples/greeting", "plugins/examples"] {
        for entry in fs::read_dir(root().join(folder))? {
            let file = entry?.path();
            let page = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if page.ends_with(".md") && page != "cli.md" && page != "contract.md" {
                let text = fs::read_to_string(&file)?;
                blocks.extend(blocks_of(&text).map(|(language, text)| Block { page: page.clone(), language, text }));
            }
        }
    }
    ensure!(blocks.len() > 50, "the pages lie elsewhere: {}", blocks.len());
    Ok(blocks)
}

fn blocks_of(page: &str) -> impl Iterator<Item = (String, String)> {
    let parts = page.split("\n```").skip(1).step_by(2).filter_map(|part| part.split_once('\n'));
    parts.map(|(language, text)| (language.to_owned(), text.to_owned()))
}

/// The commands of this program in a block, with their arguments.
fn commands(text: &str) -> Vec<Vec<String>> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.trim_start().trim_start_matches("$ "));
    let ends = |line: &str| [" #", " | ", " && ", " > "].iter().filter_map(|end| line.find(end)).min();
    let parts = lines.flat_map(|line| line.split(" && ")).map(|line| &line[..ends(line).unwrap_or(line.len())]);
    let ours = parts.filter(|line| line.starts_with("pilothouse "));
    ours.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn commands_are_found() {
    let text = "$ pilothouse a b # c\nother\npilothouse d \\\n  e && pilothouse f | g\nx: pilothouse h\n";
    assert_eq!(
        commands(text).iter().map(|words| words.join(" ")).collect::<Vec<_>>(),
        ["pilothouse a b", "pilothouse d e", "pilothouse f"]
    );
}

#[test]
fn each_command_of_the_pages_is_one_that_there_is() -> Result<()> {
    let mut number = 0;
    for Block { page, text, .. } in blocks()? {
        for words in commands(&text) {
            let taken = Arguments::command().try_get_matches_from(&words);
            let is_help =
                |error: &clap::Error| matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            if let Err(error) = taken.as_ref().map(drop).map_err(|error| (is_help(error), error)) {
                ensure!(error.0, "{page}: {}: {}", words.join(" "), error.1);
            }
            number += 1;
        }
    }
    ensure!(number > 30, "the pages have their commands in another way: {number}");
    Ok(())
}

/// The YAML and JSON of a block, and what a command in it is given as its input.
fn documents(Block { page, language, text }: &Block) -> Result<Vec<Value>> {
    let inputs = text.split("<<EOF\n").skip(1).filter_map(|rest| rest.split_once("\nEOF")).map(|(input, _)| input);
    let texts: Vec<_> = match language.as_str() {
        "yaml" => vec![text.clone()],
        "json" => vec![format!("{{{text}}}")],
        _ => inputs.map(str::to_owned).collect(),
    };
    let mut found = Vec::new();
    for text in texts {
        found.extend(serde_saphyr::from_multiple::<Value>(&text).with_context(|| format!("{page}: {text}"))?);
    }
    Ok(found)
}

/// Reads a value as what it is, with each of its fields: one that is no field would not come back.
fn is_a<T: DeserializeOwned + Serialize>(value: &Value) -> Result<()> {
    let read: T = serde_json::from_value(value.clone()).with_context(|| value.to_string())?;
    let back = serde_json::to_value(read)?;
    let lost = lost(value, &back, "");
    ensure!(lost.is_empty(), "there are no fields {lost:?}: {value}");
    Ok(())
}

/// The places of what is in one value and not in the other.
fn lost(from: &Value, into: &Value, place: &str) -> Vec<String> {
    let below = |name: String, part: &Value, other: Option<&Value>| match other {
        Some(other) => lost(part, other, &format!("{place}/{name}")),
        None => vec![format!("{place}/{name}")],
    };
    match from {
        Value::Object(fields) => {
            fields.iter().flat_map(|(name, part)| below(name.clone(), part, into.get(name))).collect()
        }
        Value::Array(parts) => {
            let numbered = parts.iter().enumerate();
            numbered.flat_map(|(number, part)| below(number.to_string(), part, into.get(number))).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn what_is_lost_is_found() {
    let lost = lost(&json!({"a": [{"b": 1}, {"c": 2}], "d": 3}), &json!({"a": [{"b": 1}, {}], "d": 3}), "");
    assert_eq!(lost, ["/a/1/c"]);
}

/// Each document is a `Plugin`, a part of one, a manifest of a plugin, a part of one, or a case, which `cases::the_cases_of_the_guide_pass` runs.
#[test]
fn what_the_pages_say_in_yaml_is_read() -> Result<()> {
    let (mut plugins, mut manifests) = (0, 0);
    for block in blocks()?.iter().filter(|block| !READ_ELSEWHERE.contains(&block.page.as_str())) {
        for document in documents(block)? {
            let page = || block.page.clone();
            if document["kind"] == "Plugin" {
                is_a::<Plugin>(&document).with_context(page)?;
                plugins += 1;
            } else if document.get("rollout").is_some() {
                let mut spec = document;
                spec["source"] = json!({"configMap": {"name": "web"}});
                is_a::<Plugin>(&json!({
                    "apiVersion": "pilothouse.dev/v1alpha1", "kind": "Plugin", "metadata": {"name": "web"}, "spec": spec,
                }))
                .with_context(page)?;
                plugins += 1;
            } else if document.get("object").is_none() {
                let mut manifest = json!({
                    "name": "web", "version": "0.1.0", "contract": "0.2.0",
                    "reconciles": {"apiVersion": "example.com/v1", "kind": "Website"},
                    "children": [{"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster"}],
                });
                for (field, value) in document.as_object().with_context(page)? {
                    manifest[field] = value.clone();
                }
                is_a::<Manifest>(&manifest).with_context(page)?;
                manifests += 1;
            }
        }
    }
    ensure!(plugins >= 4 && manifests >= 3, "the pages have them in another way: {plugins}, {manifests}");
    Ok(())
}
