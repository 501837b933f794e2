//! The examples in all languages: the sources in `plugins/examples`, put into new projects. It knows no language's tools.

use anyhow::{Result, ensure};
use pilothouse_tests::artifacts::repository;

use crate::{languages::Language, project::Project};

/// The same cases pass in each language, and count in every field. So the plugins answer the same.
pub fn answers_as_those_in_other_languages(language: Language) -> Result<()> {
    let mut project = Project::new(language)?.equip()?;
    let examples = repository().join("plugins/examples");
    let source = language.source();
    let copies = [
        (examples.join(language.name()).join(source), source),
        (examples.join("plugin.yaml"), "plugin.yaml"),
        (examples.join("cases/website.yaml"), "cases/first.yaml"),
    ];
    for (from, to) in copies {
        project.replace(&from, to)?;
    }
    project.build()?;
    let passed = project.test()?;
    ensure!(passed.contains("5 cases: 5 passed, 0 failed"), "{passed}");
    println!("{}: {}", language.name(), project.times());
    Ok(())
}
