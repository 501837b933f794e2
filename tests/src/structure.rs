//! Checks the layout of the source: no circular imports, stages in their order, and every file of the pipeline on the
//! architecture page. And that the patch with the simulation's mutations fits the sources. Builds and changes nothing.

mod circles;
mod modules;
mod named;
mod stages;
mod tokens;

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use self::{
    circles::circles,
    modules::{Imports, Sources},
    named::unnamed,
};
use crate::artifacts::repository;

const CONTROLLER: &str = "host/controller/src";
const SIMULATION: &str = "tests/simulation/src";
const OFFLINE: &str = "host/offline/src";
const FORECAST: &str = "host/forecast/src";

#[test]
fn modules_import_each_other_in_no_circle() -> Result<()> {
    let mut crates = [CONTROLLER, SIMULATION, OFFLINE, FORECAST].map(str::to_owned).to_vec();
    for entry in fs::read_dir(repository().join("plugins"))? {
        let folder = format!("plugins/{}/src", entry?.file_name().display());
        crates.extend(repository().join(&folder).is_dir().then_some(folder));
    }
    ensure!(crates.len() > 3, "the plugins lie elsewhere: {crates:?}");
    let mut found = Vec::new();
    for folder in crates {
        for imports in imports(&folder)? {
            found.extend(circles(&imports).iter().map(|circle| format!("in {folder}:\n{}", circle.join("\n"))));
        }
    }
    ensure!(found.is_empty(), "{} circles\n{}", found.len(), found.join("\n"));
    Ok(())
}

/// `make mutations` and `make plugin-mutations` are seldom run, so nobody else would notice.
#[test]
fn mutations_fit_the_source() -> Result<()> {
    for patch in ["tests/simulation/mutations.patch", "plugins/training-job/tests/mutations.patch"] {
        let checked = Command::new("git").args(["apply", "--check", patch]).current_dir(repository()).output()?;
        ensure!(checked.status.success(), "{patch} does not apply:\n{}", String::from_utf8_lossy(&checked.stderr));
        // What `patch` leaves behind where it fails is no part of a mutation.
        let text = fs::read_to_string(repository().join(patch))?;
        ensure!(!text.contains(".rej\n") && !text.contains(".orig\n"), "{patch} adds rejected hunks");
    }
    Ok(())
}

#[test]
fn a_stage_imports_earlier_stages_only() -> Result<()> {
    for imports in imports(CONTROLLER)? {
        let found: Vec<_> = stages::backward(&imports).iter().map(|way| way.join("\n")).collect();
        ensure!(found.is_empty(), "{} ways backward\n{}", found.len(), found.join("\n\n"));
        let missing = stages::missing(&imports);
        ensure!(missing.is_empty(), "stages without a file: {missing:?}");
    }
    Ok(())
}

#[test]
fn every_file_of_the_pipeline_is_on_the_architecture_page() -> Result<()> {
    let sources = sources(CONTROLLER)?;
    let files: Vec<_> = sources.keys().filter_map(|file| file.strip_prefix("pipeline/")).collect();
    ensure!(files.len() > 10, "the pipeline lies elsewhere: {files:?}");
    let page = fs::read_to_string(repository().join("docs/architecture.md"))?;
    let unnamed = unnamed(&files, &page);
    ensure!(unnamed.is_empty(), "docs/architecture.md does not name {unnamed:#?}");
    Ok(())
}

/// The imports of a crate: those of its library and those of its program.
fn imports(folder: &str) -> Result<Vec<Imports>> {
    let sources = sources(folder)?;
    let roots: Vec<_> = ["lib.rs", "main.rs"].into_iter().filter(|root| sources.contains_key(*root)).collect();
    ensure!(!roots.is_empty(), "{folder} has neither a library nor a program");
    roots.into_iter().map(|root| Imports::of_crate(root, &sources)).collect()
}

/// The sources below a folder, by their paths inside it.
fn sources(folder: &str) -> Result<Sources> {
    let mut sources = Sources::new();
    collect(&repository().join(folder), "", &mut sources)?;
    Ok(sources)
}

fn collect(folder: &Path, inside: &str, sources: &mut Sources) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))? {
        let entry = entry?;
        let path = format!("{inside}{}", entry.file_name().display());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), sources)?;
        } else if path.ends_with(".rs") {
            sources.insert(path, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}
