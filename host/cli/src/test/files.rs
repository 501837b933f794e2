//! Finds case files, and the plugin that they are for. Reads no case.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use pilothouse_authoring::COMPOSITION;

/// Case files of one plugin.
pub(super) struct CaseFiles {
    /// The plugin's file.
    pub(super) plugin: PathBuf,
    /// The case files, in the order of their names.
    pub(super) files: Vec<PathBuf>,
}

/// The folder of a plugin's cases, and that of what is built.
const CASES: &str = "cases";
const BUILD: &str = "build";

/// Finds the case files of paths and their plugins; `plugin` is that of all.
pub(super) fn find(paths: &[PathBuf], plugin: Option<&Path>) -> anyhow::Result<Vec<CaseFiles>> {
    let mut found: Vec<CaseFiles> = Vec::new();
    for path in paths {
        let files = case_files(path)?;
        let plugin = match plugin {
            Some(plugin) => plugin.to_owned(),
            None => built_plugin(path)?,
        };
        match found.iter_mut().find(|known| known.plugin == plugin) {
            Some(known) => known.files.extend(files),
            None => found.push(CaseFiles { plugin, files }),
        }
    }
    Ok(found)
}

/// The case files of a project, in the order of their names; none if it has no folder for them, or an empty one.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn of_project(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cases = folder.join(CASES);
    if cases.is_dir() { yaml_files(&cases) } else { Ok(Vec::new()) }
}

fn case_files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    ensure!(path.exists(), "there is no file and no folder '{}'", path.display());
    let cases = path.join(CASES);
    let folder = if cases.is_dir() { cases } else { path.to_owned() };
    let files = yaml_files(&folder)?;
    ensure!(!files.is_empty(), "there are no case files (*.yaml) in '{}'", folder.display());
    Ok(files)
}

/// The composition of the project that a case file is of, if that has one.
///
/// # Errors
/// If the file cannot be found any more.
pub(super) fn composition(file: &Path) -> anyhow::Result<Option<PathBuf>> {
    let absolute = file.canonicalize().with_context(|| format!("failed to read '{}'", file.display()))?;
    let beside = absolute.ancestors().skip(1).take(2).map(|folder| folder.join(COMPOSITION));
    Ok(beside.into_iter().find(|file| file.is_file()))
}

/// The YAML files of a folder, in the order of their names.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn yaml_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("failed to list '{}'", folder.display()))?;
    let mut files: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|end| end == "yaml" || end == "yml"));
    files.sort();
    Ok(files)
}

/// The plugin in the folder `build` of the nearest folder that has one.
pub(crate) fn built_plugin(path: &Path) -> anyhow::Result<PathBuf> {
    let absolute = path.canonicalize().with_context(|| format!("failed to read '{}'", path.display()))?;
    for folder in absolute.ancestors() {
        let Ok(entries) = std::fs::read_dir(folder.join(BUILD)) else { continue };
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let plugins: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "wasm")).collect();
        match &plugins[..] {
            [] => continue,
            [plugin] => return Ok(plugin.clone()),
            several => bail!(
                "there are {} plugins in '{}'; name one with --plugin",
                several.len(),
                folder.join(BUILD).display()
            ),
        }
    }
    bail!(
        "there is no plugin in a folder `build` for '{}'; put one there, or name it with --plugin FILE.wasm",
        path.display()
    )
}
