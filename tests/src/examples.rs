//! The plugins in `examples/`. Checks that the built files are plugins with the manifests and results that their READMEs promise.
//! Needs no cluster. `scripts/test.sh` runs the own tests of the one that is outside the workspace, as a user's plugin would be.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use crate::artifacts::{example, host_binary, repository};

#[test]
fn greeting_is_a_plugin_with_a_manifest() -> Result<()> {
    let manifest: serde_json::Value =
        serde_saphyr::from_str(&pilothouse(&["inspect".as_ref(), &example("greeting")?])?)?;
    ensure!(manifest["name"] == "greeting" && manifest["reconciles"]["kind"] == "Greeting", "{manifest}");
    Ok(())
}

#[test]
fn greeting_renders_its_sample() -> Result<()> {
    let sample = repository().join("examples/greeting/greeting.yaml");
    let rendered = pilothouse(&["render".as_ref(), &example("greeting")?, &sample])?;
    ensure!(rendered.contains("greeting: Hello, world!"), "{rendered}");
    Ok(())
}

/// `examples/README.md` has the lines of each beside those of the original.
#[test]
fn the_lines_that_the_page_tells_are_those_of_the_sources() -> Result<()> {
    let page = fs::read_to_string(repository().join("examples/README.md"))?;
    let rows: Vec<_> = page.lines().filter_map(row).collect();
    ensure!(rows.len() == 6, "the page is written in another way: {rows:?}");
    for (files, told, original) in rows {
        let lines = files.iter().map(|file| lines(file)).sum::<Result<usize>>()?;
        ensure!(lines == told, "{files:?} have {lines} lines, and not {told}");
        ensure!(told < original, "{files:?}: the original has {original}");
    }
    Ok(())
}

/// The files of a row, their lines, and those of the original.
fn row(line: &str) -> Option<(Vec<&str>, usize, usize)> {
    let cells: Vec<_> = line.split('|').map(str::trim).collect();
    let files = cells.get(1)?.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let original = cells.get(4)?.split(" + ").map(|number| number.parse::<usize>().ok()).sum::<Option<_>>()?;
    Some((files, cells.get(2)?.parse().ok()?, original))
}

/// The lines of a file that are neither empty nor comments; of YAML, those of its `Plugin`.
fn lines(file: &str) -> Result<usize> {
    let text = fs::read_to_string(repository().join("examples").join(file)).context(file.to_owned())?;
    let text = text.rsplit("\n---\n").next().unwrap_or(&text);
    let counts = |line: &&str| !line.is_empty() && !line.starts_with("//") && !line.starts_with('#');
    Ok(text.lines().map(str::trim).filter(counts).count())
}

/// What a command of the host prints.
fn pilothouse(arguments: &[&Path]) -> Result<String> {
    let output = Command::new(host_binary()?).args(arguments).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    Ok(text(&output.stdout))
}
