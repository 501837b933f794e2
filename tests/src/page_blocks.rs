//! Checks what the pages of the repository have in their blocks: Rust is code that is compiled elsewhere, and commands name files and targets that there
//! are. Commands of the host and what is in YAML are checked beside the command line (`host/cli`); which test reads which block is in the table here.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::{artifacts::repository, blocks::blocks};

/// Pages, the language of their blocks, and the tests that read these.
const TESTS: [(&str, &str, &str); 27] = [
    ("README.md", "", "commands"),
    ("README.md", "rust", "code"),
    ("CONTRIBUTING.md", "", "commands"),
    ("deploy/README.md", "", "commands"),
    ("docs/authoring.md", "", "commands; dev; cases::a_wrong_expectation_is_told_with_its_path_and_both_values"),
    ("docs/authoring.md", "yaml", "cli/pages; cases::the_cases_of_the_guide_pass"),
    ("docs/architecture.md", "", "a drawing"),
    ("docs/coming-from.md", "rust", "sdk/coming_from"),
    ("docs/coming-from.md", "go", "sdk/coming_from"),
    ("docs/coming-from.md", "python", "sdk/coming_from"),
    ("docs/coming-from.md", "yaml", "sdk/coming_from"),
    ("docs/compose.md", "", "commands; compose/mistakes"),
    ("docs/compose.md", "yaml", "compose/guide"),
    ("docs/conditions.md", "json", "cli/pages"),
    ("docs/llm-serving.md", "", "commands; llm"),
    ("docs/llm-serving.md", "yaml", "ai-llm-model/guide, model-deployment/guide"),
    ("docs/patterns.md", "rust", "sdk/patterns"),
    ("docs/plan.md", "", "commands; plan"),
    ("docs/plugin-objects.md", "", "commands; cli/pages"),
    ("docs/plugin-objects.md", "yaml", "cli/pages"),
    ("docs/plugin-objects.md", "rust", "code"),
    ("docs/pytorch-job.md", "", "commands"),
    ("docs/rollout.md", "", "commands; approval"),
    ("docs/rollout.md", "yaml", "cli/pages"),
    ("docs/training-job.md", "", "commands"),
    ("docs/training-job.md", "yaml", "training-job/guide"),
    ("docs/tutorial.md", "", "projects/tutorial"),
];

/// Rust on a page, and the file that has it.
const CODE: [(&str, &str); 2] =
    [("README.md", "plugins/sdk/src/lib.rs"), ("docs/plugin-objects.md", "examples/service-per-pod/src/lib.rs")];

fn read(file: &str) -> Result<String> {
    fs::read_to_string(repository().join(file)).with_context(|| file.to_owned())
}

/// All pages but those that are made by a command.
fn pages() -> Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for folder in ["", "docs/", "docs/decisions/", "deploy/"] {
        for entry in fs::read_dir(repository().join(folder))? {
            let page = format!("{folder}{}", entry?.file_name().to_string_lossy());
            if page.ends_with(".md") && page != "docs/cli.md" && page != "docs/contract.md" {
                let text = read(&page)?;
                pages.push((page, text));
            }
        }
    }
    Ok(pages)
}

#[test]
fn a_test_reads_each_block() -> Result<()> {
    let mut unread = Vec::new();
    for (page, text) in pages()? {
        // The tutorial's test knows all languages that it has.
        let is_read = |language: &str| {
            TESTS
                .iter()
                .any(|(of, for_language, _)| *of == page && (*for_language == language || page == "docs/tutorial.md"))
        };
        let languages = blocks(&text).map(|(language, _)| language).filter(|language| !is_read(language));
        unread.extend(languages.map(|language| format!("{page}: {language:?}")));
    }
    ensure!(unread.is_empty(), "no test reads these blocks: {unread:#?}");
    Ok(())
}

#[test]
fn rust_on_the_pages_is_compiled() -> Result<()> {
    for (page, file) in CODE {
        let (text, source) = (read(page)?, read(file)?);
        // Of the documentation of a crate, what is compiled as its example.
        let source: Vec<_> = source.lines().map(|line| line.trim_start_matches("//!").trim()).collect();
        let code: Vec<_> = blocks(&text).filter(|(language, _)| *language == "rust").collect();
        ensure!(!code.is_empty(), "{page} has no Rust");
        for (_, block) in code {
            let lines: Vec<_> = block.trim_end().lines().map(str::trim).collect();
            let is_there = source.windows(lines.len()).any(|part| part == lines);
            ensure!(is_there, "{file} does not have what {page} shows:\n{block}");
        }
    }
    Ok(())
}

#[test]
fn commands_name_targets_and_files_that_there_are() -> Result<()> {
    let makefile = read("Makefile")?;
    let (mut targets, mut files) = (0, 0);
    for (page, text) in pages()? {
        for line in blocks(&text).filter(|(language, _)| language.is_empty()).flat_map(|(_, block)| block.lines()) {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if let Some(target) = line.strip_prefix("make ").and_then(|rest| rest.split_whitespace().next()) {
                ensure!(makefile.contains(&format!("\n{target}:")), "{page}: there is no target {target}");
                targets += 1;
            }
            let is_of_repository = |word: &&str| {
                ["crds/", "plugins/", "deploy/helm-charts/", "examples/"].iter().any(|folder| word.starts_with(folder))
            };
            for file in line.split_whitespace().filter(is_of_repository) {
                ensure!(repository().join(file).exists(), "{page}: there is no {file}");
                files += 1;
            }
        }
    }
    ensure!(targets >= 5 && files >= 5, "the pages have them in another way: {targets}, {files}");
    Ok(())
}
