//! Checks the pages of the repository: every link to a file leads to an existing one. Links to other sites are not followed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::artifacts::repository;

/// The folders whose pages are checked, besides the pages in the root of the repository.
const FOLDERS: [&str; 5] = ["docs", "docs/decisions", "deploy", "examples/greeting", "tests/fixtures/contract-0.1"];

#[test]
fn every_link_leads_to_a_file() -> Result<()> {
    let mut broken = Vec::new();
    let pages = pages()?;
    ensure!(pages.len() > 20, "the pages lie elsewhere: {pages:?}");
    for page in pages {
        let text = fs::read_to_string(&page)?;
        let folder = page.parent().context("no folder")?;
        let missing = links(&text).into_iter().filter(|link| !folder.join(link).exists());
        broken.extend(missing.map(|link| format!("{}: {link}", page.display())));
    }
    ensure!(broken.is_empty(), "links to nothing: {broken:#?}");
    Ok(())
}

fn pages() -> Result<Vec<PathBuf>> {
    let folders = std::iter::once(repository()).chain(FOLDERS.iter().map(|folder| repository().join(folder)));
    let files = folders.map(|folder| files(&folder)).collect::<Result<Vec<_>>>()?;
    Ok(files.into_iter().flatten().filter(|file| file.extension().is_some_and(|end| end == "md")).collect())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    Ok(entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?)
}

/// The files that a page links to, without the fragment.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let paths = targets.filter(|target| !target.contains("://")).filter_map(|target| target.split('#').next());
    paths.filter(|path| !path.is_empty()).collect()
}

#[test]
fn links_are_found() {
    let page = "See [`a`](b/c.md), [d](e.rs#f)[g](#h) and [i](https://example.com/j).";
    assert_eq!(links(page), ["b/c.md", "e.rs"]);
}
