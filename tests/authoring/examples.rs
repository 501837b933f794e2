//! The examples in all languages: the sources in `plugins/examples`, put into new projects. It knows no language's tools.

use anyhow::{Result, ensure};
use pilothouse_tests::{languages::Language, project::Project};

/// The same cases pass in each language, and count in every field. So the plugins answer the same.
pub fn answers_as_those_in_other_languages(language: Language) -> Result<()> {
    let mut project = Project::new(language)?.equip()?;
    project.become_example()?;
    project.build()?;
    let passed = project.test()?;
    ensure!(passed.contains("5 cases: 5 passed, 0 failed"), "{passed}");
    println!("{}: {}", language.name(), project.times());
    Ok(())
}
