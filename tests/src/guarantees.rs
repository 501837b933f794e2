//! Checks `docs/guarantees.md`, and the tables of tests in `docs/llm-serving.md` and `docs/training-job-tests.md`: the tests that they name
//! exist, the first one covers all requirements, and the defects on the last one can be brought back.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::{Context, Result, ensure};

use crate::artifacts::repository;

/// The folders of unit tests, by the prefix of their names on the page.
const FOLDERS: [(&str, &str); 19] = [
    ("authoring/", "host/authoring/src"),
    ("projects/", "tests/authoring"),
    ("cli/", "host/cli/src"),
    ("tests/", "tests/src"),
    ("controller/", "host/controller/src"),
    ("engine/", "host/engine/src"),
    ("offline/", "host/offline/src"),
    ("wit/", "wit/src"),
    ("expression/", "wit/expression/src"),
    ("pack/", "plugins/pack/tests"),
    ("sdk/", "plugins/sdk/tests"),
    ("compose/", "plugins/compose/tests"),
    ("app-service/", "plugins/app-service/tests"),
    ("training-job/", "plugins/training-job/tests/training_job"),
    ("pytorch-job/", "plugins/pytorch-job/tests/pytorch_job"),
    ("ai-llm-model/", "plugins/ai-llm-model/tests/llm_model"),
    ("llm-model/", "plugins/llm-model/tests"),
    ("llm-deployment/", "plugins/llm-deployment/tests"),
    ("model-deployment/", "plugins/model-deployment/tests/model_deployment"),
];

/// The prefixes of requirements and the last number of each.
const REQUIREMENTS: [(&str, usize); 6] = [("A", 40), ("B", 13), ("C", 11), ("G", 10), ("H", 13), ("H-", 32)];

/// The pages that name tests, each with how many at least.
const PAGES: [(&str, usize); 3] =
    [("docs/guarantees.md", 100), ("docs/llm-serving.md", 20), ("docs/training-job-tests.md", 50)];

#[test]
fn every_test_that_is_named_exists() -> Result<()> {
    for (page, least) in PAGES {
        let page = read(page)?;
        let names = names(&page);
        ensure!(names.len() > least, "the page is written in another way: {} names", names.len());
        all_exist(names)?;
    }
    Ok(())
}

fn all_exist(names: BTreeSet<&str>) -> Result<()> {
    for name in names {
        let (file, test) = name.rsplit_once("::").context("no file")?;
        let files = places(file);
        let source = files.iter().find_map(|file| fs::read_to_string(file).ok());
        let source = source.with_context(|| format!("{name} is in none of {files:?}"))?;
        ensure!(source.contains(&format!("fn {test}(")), "{name} does not exist");
    }
    Ok(())
}

#[test]
fn every_defect_of_training_jobs_can_be_brought_back() -> Result<()> {
    let page = read("docs/training-job-tests.md")?;
    let patch = read("plugins/training-job/tests/mutations.patch")?;
    let columns = page.lines().filter_map(|line| line.split('|').nth(3));
    let told: BTreeSet<_> = columns.flat_map(|defects| defects.split('`').skip(1).step_by(2)).collect();
    let is_name =
        |text: &&str| text.contains('-') && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    let added = patch.lines().filter(|line| line.starts_with('+'));
    let named: BTreeSet<_> = added.flat_map(|line| line.split('"').skip(1).step_by(2)).filter(is_name).collect();
    ensure!(told == named, "on the page {told:?}, in the patch {named:?}");
    Ok(())
}

#[test]
fn every_requirement_has_a_place() -> Result<()> {
    let page = read("docs/guarantees.md")?;
    let words: BTreeSet<_> =
        page.lines().filter(|line| line.starts_with('|')).flat_map(str::split_whitespace).collect();
    for (begin, last) in REQUIREMENTS {
        let missing: Vec<_> =
            (1..=last).map(|number| format!("{begin}{number}")).filter(|id| !words.contains(&**id)).collect();
        ensure!(missing.is_empty(), "{missing:?} are nowhere");
    }
    Ok(())
}

fn read(page: &str) -> Result<String> {
    Ok(fs::read_to_string(repository().join(page))?)
}

/// The names of tests in the tables.
fn names(page: &str) -> BTreeSet<&str> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split('`').skip(1).step_by(2)).filter(|code| code.contains("::")).collect()
}

/// The possible paths of a file of tests.
fn places(file: &str) -> Vec<PathBuf> {
    let unit = FOLDERS.iter().find_map(|(begin, folder)| Some((folder, file.strip_prefix(begin)?)));
    let (folder, file) = match unit {
        Some((folder, file)) => (*folder, file.to_owned()),
        None => ("tests/black_box", file.replace("::", "/")),
    };
    let folder = repository().join(folder);
    vec![folder.join(format!("{file}.rs")), folder.join(file).join("mod.rs")]
}
