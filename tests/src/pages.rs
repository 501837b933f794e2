//! Checks the pages of the repository: every link to a file leads to an existing one, every fragment to a heading, and every page of the
//! site is in its table of contents. Links to other sites are not followed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::artifacts::repository;

/// The folders whose pages are checked, besides the pages in the root of the repository.
const FOLDERS: [&str; 6] =
    ["docs", "docs/decisions", "deploy", "examples", "examples/greeting", "tests/fixtures/contract-0.1"];

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

#[test]
fn every_fragment_leads_to_a_heading() -> Result<()> {
    let (mut broken, mut followed) = (Vec::new(), 0);
    for page in pages()? {
        let text = fs::read_to_string(&page)?;
        let folder = page.parent().context("no folder")?;
        for (path, fragment) in fragments(&text) {
            let target = if path.is_empty() { page.clone() } else { folder.join(path) };
            if target.extension().is_some_and(|end| end == "md") && target.exists() {
                followed += 1;
                let is_there = headings(&fs::read_to_string(&target)?).contains(fragment);
                broken.extend((!is_there).then(|| format!("{}: {path}#{fragment}", page.display())));
            }
        }
    }
    ensure!(followed > 50, "links are written in another way: {followed}");
    ensure!(broken.is_empty(), "fragments of no heading: {broken:#?}");
    Ok(())
}

#[test]
fn every_page_of_the_site_is_in_its_contents() -> Result<()> {
    let docs = repository().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md"))?;
    let listed: BTreeSet<_> = links(&summary).into_iter().map(|link| docs.join(link)).collect();
    let is_page = |file: &PathBuf| file.extension().is_some_and(|end| end == "md") && !file.ends_with("SUMMARY.md");
    let all = files(&docs)?.into_iter().chain(files(&docs.join("decisions"))?).filter(is_page);
    let all: BTreeSet<_> = all.collect();
    let (missing, gone): (Vec<_>, Vec<_>) = (all.difference(&listed).collect(), listed.difference(&all).collect());
    ensure!(missing.is_empty() && gone.is_empty(), "docs/SUMMARY.md does not have {missing:?}, and has {gone:?}");
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

/// The links of a page with a fragment: the file, empty for the page itself, and the fragment.
fn fragments(text: &str) -> Vec<(&str, &str)> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://")).filter_map(|target| target.split_once('#')).collect()
}

/// What the headings of a page are called in links.
fn headings(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::new();
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let Some(title) = line.strip_prefix('#').filter(|_| !is_code) else { continue };
        let name = slug(title.trim_start_matches('#'));
        let before = seen.entry(name.clone()).or_insert(0);
        found.insert(if *before == 0 { name } else { format!("{name}-{before}") });
        *before += 1;
    }
    found
}

/// Small letters, digits, `-` and `_`, with `-` for spaces, as both the site and the repository's host make them.
fn slug(title: &str) -> String {
    let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

#[test]
fn headings_are_found() {
    let page = "# One `two`: three\n## A\n```\n# none\n```\n## A\n### lookup.get\n";
    assert_eq!(headings(page).into_iter().collect::<Vec<_>>(), ["a", "a-1", "lookupget", "one-two-three"]);
}

#[test]
fn links_are_found() {
    let page = "See [`a`](b/c.md), [d](e.rs#f)[g](#h) and [i](https://example.com/j).";
    assert_eq!(links(page), ["b/c.md", "e.rs"]);
}
