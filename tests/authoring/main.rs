//! From an empty directory to a plugin that passes its cases, in each language, with the binary that users have. No cluster is needed.

mod compositions;
mod examples;
mod tutorial;
mod typed;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Arguments, Failed, Trial};
use pilothouse_tests::{languages::Language, project::Project};

/// A test of one language.
type OfLanguage = fn(Language) -> Result<()>;

fn main() -> ExitCode {
    let mut trials = vec![trial("what_is_missing_is_named", what_is_missing_is_named)];
    trials.push(trial("the_tutorial_is_right", tutorial::the_tutorial_is_right));
    trials.extend(compositions::TESTS.map(|(name, test)| trial(name, test)));
    // In CI it is built before, and has to be there.
    let lacks_helm = compositions::helm().is_none() && std::env::var_os("CI").is_none();
    let (name, test) = compositions::OF_CHARTS;
    trials.push(trial(name, test).with_ignored_flag(lacks_helm));
    for language in Language::ALL {
        let is_skipped = !language.has_tools();
        if is_skipped {
            eprintln!("{} is skipped: {} is missing; see scripts/languages.sh", language.name(), language.first_tool());
        }
        let tests: [(&str, OfLanguage); 3] = [
            ("a_new_project_is_built_and_passes_its_cases", a_new_project_is_built_and_passes_its_cases),
            ("the_example_answers_as_those_in_other_languages", examples::answers_as_those_in_other_languages),
            ("existing_kinds_are_typed_and_pass_their_cases", typed::existing_kinds_are_typed_and_pass_their_cases),
        ];
        for (name, test) in tests {
            let name = format!("{}::{name}", language.name());
            trials.push(trial(&name, move || test(language)).with_ignored_flag(is_skipped));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(name: &str, test: impl FnOnce() -> Result<()> + Send + 'static) -> Trial {
    Trial::test(name, || test().map_err(|error| Failed::from(format!("{error:?}"))))
}

/// As somebody does it who has never seen Pilothouse. The same sources elsewhere give the same bytes.
fn a_new_project_is_built_and_passes_its_cases(language: Language) -> Result<()> {
    let mut project = Project::new(language)?.equip()?;
    let built = project.build()?;
    ensure!(built["manifest"]["reconciles"]["kind"] == "Website", "{built}");
    ensure!(built["language"] == language.title(), "{built}");
    let passed = project.test()?;
    ensure!(passed.contains("5 cases: 5 passed, 0 failed"), "{passed}");
    let again = project.build()?;
    ensure!(again == built, "the same sources give another plugin: {built} {again}");
    ensure!(built["reproducible"] == language.is_reproducible(), "{built}");
    if language.is_reproducible() {
        let elsewhere = project.copy()?.build()?;
        ensure!(elsewhere["digest"] == built["digest"], "the same sources give another digest: {built} {elsewhere}");
    }
    let broken = project.break_sources()?.build();
    let error = broken.err().context("sources with a mistake were built")?;
    ensure!(format!("{error:#}").contains("mistake"), "the compiler's message is not shown: {error:#}");
    let passed = project.test()?;
    ensure!(passed.contains("5 passed"), "a mistake takes the plugin away that was there: {passed}");
    println!("{}: {}", language.name(), project.times());
    Ok(())
}

/// Without any tool in the PATH or in the project, the first that is missed is named with what to do.
fn what_is_missing_is_named() -> Result<()> {
    for language in Language::ALL {
        let mut project = Project::new(language)?;
        project.hide_tools();
        let error = format!("{:#}", project.build().err().context("it was built without tools")?);
        let what = format!("error: {} is missing; {}", language.first_tool(), language.install());
        ensure!(error.contains(&what), "{}: {error}", language.name());
    }
    Ok(())
}
