//! `pilothouse dev` for a kind without code: from manifests that exist to their objects in the cluster, and from each edit of the composition to
//! the changed child. What else `dev` does is tested by `dev`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts::{plugin, repository},
    cluster::{Awaited, PATIENCE},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    command::pilothouse,
    dev::{container, start},
    suite::{Suite, tests},
    test_env::TestEnv,
};

pub fn register(suite: &mut Suite) {
    tests!(suite, manifests_become_a_kind_that_is_followed_edit_by_edit, two_kinds_without_code_are_worked_on_at_once);
}

/// The project of a kind without code.
struct Composed {
    folder: TempDir,
    name: &'static str,
}

impl Composed {
    /// Makes it as its author does, with these arguments.
    async fn new(name: &'static str, arguments: &[&Path]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().join(name);
        let new = ["new", name, "--dir"].map(Path::new).into_iter().chain([&*root]);
        pilothouse(new.chain(arguments.iter().copied())).await?.succeeded()?;
        Ok(Self { folder, name })
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }

    /// Puts the component into its place, which the author does once.
    fn equip(&self) -> Result<()> {
        std::fs::create_dir_all(self.root().join("build"))?;
        std::fs::copy(plugin("compose")?, self.root().join("build/compose.wasm"))?;
        Ok(())
    }

    fn read(&self, file: &str) -> Result<Value> {
        let text = std::fs::read_to_string(self.root().join(file))?;
        serde_saphyr::from_str(&text).with_context(|| file.to_owned())
    }

    /// Saves its composition with another value somewhere.
    fn edit(&self, place: &str, value: &str) -> Result<()> {
        let mut composition = self.read("composition.yaml")?;
        *composition.pointer_mut(place).with_context(|| format!("no {place}"))? = value.into();
        Ok(std::fs::write(self.root().join("composition.yaml"), composition.to_string())?)
    }
}

/// What the container of the Deployment `shop` is called, in the composition that `new` makes of the manifests.
const NAME_OF_CONTAINER: &str = "/spec/config/resources/1/template/spec/template/spec/containers/0/name";

async fn manifests_become_a_kind_that_is_followed_edit_by_edit(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    let manifests = repository().join("tests/fixtures/manifests/shop/dev");
    let arguments = ["--kind", "example.com/v1/Shop", "--from-yaml"].map(Path::new);
    let shop = Composed::new("shop", &[&arguments[..], &[&manifests]].concat()).await?;
    let mut dev = start(env, &[&shop.root()])?;
    dev.says("a kind without code needs compose.wasm in the folder build").await?;

    // One that was captured in a cluster has a configuration of its own.
    let config = &shop.read("composition.yaml")?["spec"]["config"];
    let captured =
        json!({"name": "captured", "object": "../object.yaml", "config": config, "expect": {"verdict": "done"}});
    std::fs::write(shop.root().join("cases/captured.yaml"), captured.to_string())?;
    shop.equip()?;
    dev.type_in("").await?;
    dev.says("applied CustomResourceDefinition shops.example.com").await?;
    dev.says("2 cases: 2 passed, 0 failed").await?;
    dev.says("is at work").await?;
    let mut object = shop.read("object.yaml")?;
    object["metadata"] = json!({"name": "shop"});
    env.namespace.apply(object).await?;
    let made = env.namespace.until("Deployment", "shop", "to be made", |it| container(it) == "web").await?;
    ensure!(made["metadata"]["ownerReferences"][0]["kind"] == "Shop", "{made}");
    for (kind, name) in [("ConfigMap", "shop-config"), ("Deployment", "shop-cache"), ("Ingress", "shop")] {
        env.namespace.until(kind, name, "to be made", |_| true).await?;
    }
    dev.says("ms each").await?;

    shop.edit(NAME_OF_CONTAINER, "site")?;
    dev.says("FAIL").await?;
    dev.says("2 cases: 1 passed, 1 failed").await?;
    dev.says("/spec/template/spec/containers").await?;
    dev.says("is at work").await?;
    env.namespace.until("Deployment", "shop", "to follow the composition", |it| container(it) == "site").await?;

    shop.edit(NAME_OF_CONTAINER, "${shema.spec.name}")?;
    dev.says("there is nothing called `shema`").await?;
    dev.says("did you mean `schema`?").await?;
    dev.says("goes on").await?;
    env.namespace.delete("Deployment", "shop").await?;
    let again = Awaited { kind: "Deployment", name: "shop", what: "to be made again by the composition before" };
    env.namespace.until_within(PATIENCE, &again, |it| container(it) == "site").await?;
    dev.stop().await
}

/// They have one component, and its digest.
async fn two_kinds_without_code_are_worked_on_at_once(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    let mut projects = Vec::new();
    for (name, kind) in [("web", "example.com/v1/Website"), ("worker", "example.com/v1/Worker")] {
        let project = Composed::new(name, &["--lang", "compose", "--kind", kind].map(Path::new)).await?;
        project.equip()?;
        projects.push(project);
    }
    let roots: Vec<_> = projects.iter().map(Composed::root).collect();
    let mut dev = start(env, &roots.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    for name in ["web", "worker"] {
        dev.says(&format!("{name}: 0.1.0 (composition.yaml ")).await?;
        dev.says("is at work").await?;
    }
    for project in &projects {
        let mut object = project.read("object.yaml")?;
        object["metadata"] = json!({"name": project.name});
        env.namespace.apply(object).await?;
        env.namespace.until("Deployment", project.name, "to be made", |it| container(it) == "app").await?;
    }
    let worker = projects.last().context("no project")?;
    worker.edit("/spec/config/resources/0/template/spec/template/spec/containers/0/name", "job")?;
    dev.says("worker: 0.1.0 (composition.yaml ").await?;
    env.namespace.until("Deployment", "worker", "to follow its composition", |it| container(it) == "job").await?;
    let other = env.namespace.get("Deployment", "web").await?.context("it is gone")?;
    ensure!(container(&other) == "app", "the other one followed, too: {other}");
    dev.stop().await
}
