//! `pilothouse test` with the plugins of the repository: their cases pass, and what is wrong is told where people and programs look.
//! Needs no cluster.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::artifacts::{example, host_binary, plugin, repository};

#[test]
fn the_cases_of_app_service_pass() -> Result<()> {
    passes(&repository().join("plugins/app-service"), &plugin("app-service")?)
}

/// What other projects have as examples: `examples/README.md`.
#[test]
fn the_cases_of_the_examples_pass() -> Result<()> {
    for name in ["blue-green", "cat-set", "indexed-job", "pod-name-label", "service-per-pod"] {
        passes(&repository().join("examples").join(name), &example(name)?)?;
    }
    Ok(())
}

#[test]
fn the_cases_of_greeting_pass() -> Result<()> {
    passes(&repository().join("examples/greeting"), &example("greeting")?)
}

/// `docs/authoring.md` shows cases of the example.
#[test]
fn the_cases_of_the_guide_pass() -> Result<()> {
    let page = fs::read_to_string(repository().join("docs/authoring.md"))?;
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(block, _)| block);
    let cases: Vec<_> = blocks.filter(|block| block.contains("object:")).collect();
    ensure!(cases.len() > 1, "the guide shows cases in another way");
    let folder = Folder::with_cases(&[("guide.yaml", &cases.join("---\n"))])?;
    let told = folder.test(&[])?;
    ensure!(told.code == 0 && told.output.contains(&format!("{} cases: ", cases.len())), "{told:?}");
    Ok(())
}

#[test]
fn a_wrong_expectation_is_told_with_its_path_and_both_values() -> Result<()> {
    let folder = Folder::with_cases(&[(
        "a.yaml",
        &case("expect: {children: [{kind: ConfigMap, metadata: {name: first}, data: {greeting: Bye}}]}"),
    )])?;
    let junit = folder.path().join("junit.xml");
    let told = folder.test(&["--junit", &junit.to_string_lossy()])?;
    ensure!(told.code == 1 && told.errors.contains("error: 1 of 1 cases failed"), "{told:?}");
    for line in [
        "FAIL",
        "children[ConfigMap/first].data.greeting",
        "- \"Bye\"",
        "+ \"Hello, world!\"",
        "1 cases: 0 passed, 1 failed",
    ] {
        ensure!(told.output.contains(line), "no {line}: {}", told.output);
    }
    let junit = fs::read_to_string(junit)?;
    for part in [
        "<testsuites tests=\"1\" failures=\"1\"",
        "<testcase name=\"a\"",
        "<failure message=\"the answer is not as expected\">",
        "&quot;Bye&quot;",
    ] {
        ensure!(junit.contains(part), "no {part}: {junit}");
    }
    let json: Value = serde_json::from_str(&folder.test(&["-o", "json"])?.output)?;
    ensure!(json["failed"] == 1 && json["passed"] == 0, "{json}");
    let difference = &json["cases"][0]["failures"][0]["differences"][0];
    ensure!(difference["expected"] == "Bye" && difference["actual"] == "Hello, world!", "{json}");
    Ok(())
}

#[test]
fn an_update_writes_what_the_plugin_answers() -> Result<()> {
    let text = case("# what is below\nexpect: {status: {text: Bye}}") + "---\n" + &case("");
    let folder = Folder::with_cases(&[("a.yaml", &text)])?;
    ensure!(folder.test(&[])?.code == 1);
    let updated = folder.test(&["--update"])?;
    ensure!(updated.code == 0 && updated.errors.contains("(2 expectations)"), "{updated:?}");
    let written = fs::read_to_string(folder.path().join("cases/a.yaml"))?;
    ensure!(written.starts_with(&case("# what is below\nexpect:")), "{written}");
    ensure!(
        written.matches("text: Hello, world!").count() == 2 && written.matches("match: exact").count() == 1,
        "{written}"
    );
    let again = folder.test(&["--update"])?;
    ensure!(again.code == 0 && again.errors.is_empty(), "what passes is not written again: {again:?}");
    Ok(())
}

#[test]
fn a_malformed_case_does_not_hide_the_others() -> Result<()> {
    let folder = Folder::with_cases(&[("a.yaml", "objct: {}\n"), ("b.yaml", &case("expect: {verdict: done}"))])?;
    let told = folder.test(&[])?;
    ensure!(told.code == 1 && told.output.contains("1 cases: 1 passed, 0 failed"), "{told:?}");
    ensure!(told.errors.contains("a.yaml:1:1: objct: unknown field"), "{told:?}");
    ensure!(told.errors.contains("error: 1 case files cannot be used"), "{told:?}");
    Ok(())
}

#[test]
fn where_nothing_is_to_be_tested_it_says_what_to_do() -> Result<()> {
    let folder = Folder::with_cases(&[("a.yaml", &case("expect: {verdict: done}"))])?;
    let told = pilothouse(&["test".as_ref(), folder.path()])?;
    ensure!(told.code == 1 && told.errors.contains("name it with --plugin FILE.wasm"), "{told:?}");
    let empty = tempfile::tempdir()?;
    let told = pilothouse(&["test".as_ref(), empty.path()])?;
    ensure!(told.code == 1 && told.errors.contains("there are no case files (*.yaml)"), "{told:?}");
    let told = pilothouse(&["test".as_ref(), "no/such".as_ref()])?;
    ensure!(told.code == 1 && told.errors.contains("no/such"), "{told:?}");
    Ok(())
}

/// Times are printed and not judged: how quick this machine is, is no property of a plugin.
#[test]
fn a_bench_prints_what_calls_cost_and_fails_over_its_budget() -> Result<()> {
    let folder = Folder::with_cases(&[("a.yaml", &case("expect: {verdict: done}"))])?;
    let (plugin, file) = (example("greeting")?, folder.path().join("cases/a.yaml"));
    let bench = |more: &[&str]| {
        let mut arguments: Vec<&Path> = vec!["bench".as_ref(), &plugin, &file, "--calls".as_ref(), "20".as_ref()];
        arguments.extend(more.iter().map(Path::new));
        pilothouse(&arguments)
    };
    let told = bench(&["--budget", "memory=128Mi,output=1Mi"])?;
    ensure!(told.code == 0 && told.output.starts_with("a: p50 ") && told.output.contains("memory "), "{told:?}");
    let told = bench(&["--budget", "output=10"])?;
    ensure!(told.code == 1 && told.errors.contains("over budget: a: output is "), "{told:?}");
    let told = bench(&["--budget", "speed=10"])?;
    ensure!(told.code == 2 && told.errors.contains("none of p50, p99, memory and output"), "{told:?}");
    let json: Value = serde_json::from_str(&bench(&["-o", "json"])?.output)?;
    let cost = &json["cases"][0];
    ensure!(
        json["calls"] == 20 && cost["memoryBytes"].as_u64() > Some(0) && cost["outputBytes"].as_u64() > Some(0),
        "{json}"
    );
    ensure!(cost["p50Microseconds"].as_f64() <= cost["p99Microseconds"].as_f64(), "{json}");
    Ok(())
}

/// A case about a greeting.
fn case(rest: &str) -> String {
    format!(
        "object: {{apiVersion: example.com/v1, kind: Greeting, metadata: {{name: first}}, spec: {{name: world}}}}\n{rest}\n"
    )
}

fn passes(folder: &Path, plugin: &Path) -> Result<()> {
    let told = pilothouse(&["test".as_ref(), folder, "--plugin".as_ref(), plugin])?;
    ensure!(told.code == 0 && told.output.contains(", 0 failed"), "{told:?}");
    Ok(())
}

/// The folder of a plugin with cases for `greeting`.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with_cases(cases: &[(&str, &str)]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("cases"))?;
        for (name, text) in cases {
            fs::write(folder.path().join("cases").join(name), text)?;
        }
        Ok(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn test(&self, more: &[&str]) -> Result<Told> {
        let plugin = example("greeting")?;
        let mut arguments: Vec<&Path> = vec!["test".as_ref(), self.path(), "--plugin".as_ref(), &plugin];
        arguments.extend(more.iter().map(Path::new));
        pilothouse(&arguments)
    }
}

/// What a command said.
#[derive(Debug)]
struct Told {
    code: i32,
    output: String,
    errors: String,
}

fn pilothouse(arguments: &[&Path]) -> Result<Told> {
    let binary: PathBuf = host_binary()?;
    let Output { status, stdout, stderr } = Command::new(binary).args(arguments).output()?;
    let code = status.code().context("a signal ended the command")?;
    Ok(Told { code, output: String::from_utf8(stdout)?, errors: String::from_utf8(stderr)? })
}
