//! Checks the site that `make docs` makes: each link in it leads to a file, and each fragment to an element. Makes nothing: scripts/test.sh runs it
//! after it made the site. Links to other sites are not followed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::artifacts::target;

/// What has all pages once more, and what is shown in the place of a page that is not there.
const LEFT_OUT: [&str; 2] = ["print.html", "404.html"];

#[test]
#[ignore = "needs the site; `make docs` makes it"]
fn each_link_of_the_site_leads_to_an_element() -> Result<()> {
    let folder = target().join("book");
    ensure!(folder.join("index.html").is_file(), "there is no site; `make docs` makes it");
    let mut pages = BTreeMap::new();
    for page in html(&folder)?.into_iter().chain(html(&folder.join("decisions"))?) {
        let text = fs::read_to_string(&page)?;
        pages.insert(page, text);
    }
    let elements: BTreeMap<_, BTreeSet<_>> =
        pages.iter().map(|(page, text)| (page, values(text, "id").collect())).collect();
    let (mut followed, mut broken) = (0, Vec::new());
    for (page, text) in &pages {
        let here = page.parent().context("no folder")?;
        for link in values(text, "href").chain(values(text, "src")).filter(|link| !link.contains("://")) {
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let file = if path.is_empty() { page.clone() } else { plain(&here.join(path)) };
            let is_right = match elements.get(&file) {
                Some(ids) => fragment.is_empty() || ids.contains(fragment),
                None => file.exists(),
            };
            followed += 1;
            broken.extend((!is_right).then(|| format!("{}: {link}", page.display())));
        }
    }
    ensure!(followed > 1_000, "the site has its links in another way: {followed}");
    ensure!(broken.is_empty(), "links to nothing: {broken:#?}");
    Ok(())
}

fn html(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    let is_page = |file: &PathBuf| {
        let is_left_out = LEFT_OUT.iter().any(|name| file.ends_with(name));
        file.extension().is_some_and(|end| end == "html") && !is_left_out
    };
    Ok(entries.into_iter().filter(is_page).collect())
}

/// The values of an attribute.
fn values<'t>(text: &'t str, attribute: &str) -> impl Iterator<Item = &'t str> {
    let begin = format!(" {attribute}=\"");
    text.match_indices(&begin)
        .filter_map(|(at, begin)| text[at + begin.len()..].split('"').next())
        .collect::<Vec<_>>()
        .into_iter()
}

/// A path without steps up.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path {
        match part.to_str() {
            Some("..") => drop(plain.pop()),
            Some(".") => {}
            _ => plain.push(part),
        }
    }
    plain
}

#[test]
fn attributes_are_found() {
    let text = r##"<a class="x" href="a.html#b">c</a><h2 id="d"><img src="e.svg">"##;
    let found = ["href", "id", "src"].map(|name| values(text, name).collect::<Vec<_>>().join(" "));
    assert_eq!(found, ["a.html#b", "d", "e.svg"]);
    assert_eq!(plain(Path::new("/a/b/../c/./d")), Path::new("/a/c/d"));
}
