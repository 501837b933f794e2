//! The examples in all languages: the sources in `plugins/examples`, put into new projects. It knows no language's tools.

use anyhow::{Result, ensure};
use pilothouse_tests::{languages::Language, project::Project};

/// The same cases pass in each language, and count in every field. So the plugins answer the same, also where an instance answers call
/// after call: each case is asked several times.
pub fn answers_as_those_in_other_languages(language: Language) -> Result<()> {
    let mut project = Project::new(language)?.equip()?;
    project.become_example()?;
    project.build()?;
    let passed = project.test()?;
    ensure!(passed.contains("5 cases: 5 passed, 0 failed"), "{passed}");
    let passed = project.test_with_calls_per_instance(100)?;
    ensure!(passed.contains("5 cases: 5 passed, 0 failed"), "with an instance for many calls: {passed}");
    println!("{}: {}", language.name(), project.times());
    Ok(())
}
