//! From an empty folder to a child in the cluster, as somebody does it who has never seen Pilothouse: new, build, test, dev, and an object that is
//! applied, in each language. Prints what each step took.

use std::time::Instant;

use anyhow::{Result, ensure};
use pilothouse_tests::{cluster::condition, languages::Language, project::Project};
use serde_json::Value;

use crate::{
    dev::{container, start, website},
    suite::Suite,
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    for language in Language::ALL {
        let name = "a_new_project_becomes_a_child_in_the_cluster";
        suite.of_language(module_path!(), name, language, async move |env: &mut TestEnv| {
            a_new_project_becomes_a_child_in_the_cluster(env, language).await
        });
    }
}

async fn a_new_project_becomes_a_child_in_the_cluster(env: &mut TestEnv, language: Language) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    let mut project = Project::new(language)?.equip()?;
    let built = project.build()?;
    ensure!(built["language"] == language.title(), "{built}");
    let passed = project.test()?;
    ensure!(passed.contains("5 cases: 5 passed, 0 failed"), "{passed}");
    let started = Instant::now();
    let mut dev = start(env, &[&project.root()])?;
    dev.says("applied CustomResourceDefinition websites.example.com").await?;
    dev.says("5 cases: 5 passed, 0 failed").await?;
    dev.says("is at work").await?;
    let at_work = started.elapsed();
    let applied = Instant::now();
    env.namespace.apply(website()).await?;
    env.namespace.until("Deployment", "web", "to be made", |it| container(it) == "app").await?;
    let made = applied.elapsed();
    let is_told = |object: &Value| condition(object, "Available")["message"] == "0 of 1 Pods are ready";
    env.namespace.until("Website", "web", "to be told of", is_told).await?;
    dev.stop().await?;
    println!(
        "{}: {}, dev {:.1} s, object to child {:.1} s",
        language.name(),
        project.times(),
        at_work.as_secs_f64(),
        made.as_secs_f64()
    );
    Ok(())
}
