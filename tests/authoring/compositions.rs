//! Projects of kinds without code, from nothing, from manifests and from a chart: what they make is what was given. No cluster is needed.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::artifacts::{host_binary, plugin, repository, target};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A test without a language.
type Test = fn() -> Result<()>;

/// The tests, by their names.
pub const TESTS: [(&str, Test); 5] = [
    ("compose::a_new_composition_passes_its_cases", a_new_composition_passes_its_cases),
    (
        "compose::manifests_become_children_with_fields_for_what_varies",
        manifests_become_children_with_fields_for_what_varies,
    ),
    (
        "compose::what_differs_between_sets_of_manifests_becomes_fields",
        what_differs_between_sets_of_manifests_becomes_fields,
    ),
    ("compose::nothing_is_built_of_a_composition", nothing_is_built_of_a_composition),
    ("new::bad_input_is_told_and_leaves_no_folder", bad_input_is_told_and_leaves_no_folder),
];

/// One that needs Helm.
pub const OF_CHARTS: (&str, Test) =
    ("compose::a_chart_becomes_a_composition_of_its_values", a_chart_becomes_a_composition_of_its_values);

/// A folder for a project in it.
struct Place {
    folder: TempDir,
    /// Where programs are looked for first.
    programs: Option<PathBuf>,
}

impl Place {
    fn new() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, programs: None })
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("shop")
    }

    fn run(&self, arguments: &[&str], more: &[&Path]) -> Result<Output> {
        let mut command = Command::new(host_binary()?);
        command.args(arguments).args(more).current_dir(self.folder.path());
        if let Some(programs) = &self.programs {
            command.env("PATH", programs);
        }
        Ok(command.output()?)
    }

    /// Makes a project. Gives what is said beside the files.
    fn make(&self, arguments: &[&str], more: &[&Path]) -> Result<String> {
        let made = self.run(&[&["new", "shop", "--kind", "example.com/v1/Shop"], arguments].concat(), more)?;
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        ensure!(made.status.success(), "{said}");
        Ok(said)
    }

    /// What `pilothouse test` says of it, with the component in its place.
    fn test(&self) -> Result<String> {
        let build = self.root().join("build");
        std::fs::create_dir_all(&build)?;
        std::fs::copy(plugin("compose")?, build.join("compose.wasm"))?;
        let tested = self.run(&["test", "shop"], &[])?;
        Ok(format!("{}{}", String::from_utf8_lossy(&tested.stdout), String::from_utf8_lossy(&tested.stderr)))
    }

    fn read(&self, file: &str) -> Result<String> {
        std::fs::read_to_string(self.root().join(file)).with_context(|| file.to_owned())
    }

    fn object(&self) -> Result<Value> {
        serde_saphyr::from_str(&self.read("object.yaml")?).context("object.yaml")
    }
}

fn fixtures() -> PathBuf {
    repository().join("tests/fixtures/manifests")
}

fn has(text: &str, all: &[&str]) -> Result<()> {
    for expected in all {
        ensure!(text.contains(expected), "there is no {expected:?} in:\n{text}");
    }
    Ok(())
}

fn a_new_composition_passes_its_cases() -> Result<()> {
    let place = Place::new()?;
    place.make(&["--lang", "compose"], &[])?;
    has(&place.test()?, &["3 cases: 3 passed, 0 failed"])
}

fn manifests_become_children_with_fields_for_what_varies() -> Result<()> {
    let place = Place::new()?;
    let said = place.make(&["--from-yaml"], &[&fixtures().join("shop/dev")])?;
    has(
        &said,
        &[
            "5 children, and",
            "Namespace shop-dev is left out: a namespaced object cannot own",
            "Secret shop-password is left out",
        ],
    )?;
    has(&place.test()?, &["1 cases: 1 passed, 0 failed"])?;
    let object = place.object()?;
    ensure!(object["metadata"]["name"] == "shop" && object["metadata"]["namespace"] == "shop-dev", "{object}");
    let spec = &object["spec"];
    ensure!(
        spec["shop"]["image"] == "shop:main" && spec["shop"]["replicas"] == 1 && spec["cache"]["image"] == "redis:7",
        "{spec}"
    );
    ensure!(spec["shop"]["env"]["LEVEL"] == "info" && spec["shop"]["host"] == "shop.dev.example.com", "{spec}");
    has(&place.read("composition.yaml")?, &["redis://${schema.metadata.name}-cache:6379/0", "Hello from $${HOSTNAME}"])
}

fn what_differs_between_sets_of_manifests_becomes_fields() -> Result<()> {
    let place = Place::new()?;
    place.make(&["--from-yaml"], &[&fixtures().join("shop")])?;
    has(&place.test()?, &["2 cases: 2 passed, 0 failed"])?;
    let spec = &place.object()?["spec"];
    ensure!(
        spec["replicas"] == 1 && spec["image"] == "shop:main" && spec["podDisruptionBudgetEnabled"] == false,
        "{spec}"
    );
    ensure!(spec.get("resources").is_none(), "what is the same everywhere is a field: {spec}");
    Ok(())
}

fn a_chart_becomes_a_composition_of_its_values() -> Result<()> {
    let helm = helm().context("Helm is missing; the black-box tests build it")?;
    let mut place = Place::new()?;
    let programs = tempfile::tempdir()?;
    std::os::unix::fs::symlink(helm, programs.path().join("helm"))?;
    place.programs = Some(programs.path().to_owned());
    let said = place.make(&["--from-chart"], &[&fixtures().join("chart")])?;
    has(
        &said,
        &["Secret NAME-web is left out", "Pod NAME-web-test is left out: it is a hook of Helm (test)", "next: "],
    )?;
    has(&place.test()?, &["2 cases: 2 passed, 0 failed"])?;
    has(
        &place.read("composition.yaml")?,
        &[
            "schema.spec.image.repository",
            "schema.spec.replicaCount",
            "schema.spec.ingress.enabled",
            "schema.spec.ingress.hosts[0].host",
            "schema.spec.ingress.className == '' ? optional.none()",
            ".merge(schema.spec.podLabels)}",
            "schema.spec.serviceAccount.create ? schema.metadata.name + '-web' : 'default'",
            "$${5}",
        ],
    )?;
    let spec = &place.object()?["spec"];
    ensure!(spec["image"]["repository"] == "nginx" && spec["autoscaling"]["enabled"] == false, "{spec}");
    ensure!(spec.get("auth").is_none(), "a password is a field: {spec}");
    other_values_make_what_helm_makes_of_them(&place)
}

/// As the author checks a composition against the chart: an object with other values beside what Helm renders of these.
fn other_values_make_what_helm_makes_of_them(place: &Place) -> Result<()> {
    let mut object = place.object()?;
    let spec = &mut object["spec"];
    spec["podLabels"] = json!({"tier": "front"});
    spec["serviceAccount"]["create"] = false.into();
    spec["image"]["tag"] = "2".into();
    spec["tolerations"] = json!([{"key": "spot", "operator": "Exists"}]);
    let values = place.folder.path().join("values.yaml");
    std::fs::write(&values, spec.to_string())?;
    let helm = place.programs.as_ref().context("no Helm")?.join("helm");
    let name = object["metadata"]["name"].as_str().context("no name")?;
    let rendered = Command::new(helm)
        .args(["template", name, "--show-only", "templates/all.yaml", "--values"])
        .args([&values, &fixtures().join("chart")])
        .output()?;
    ensure!(rendered.status.success(), "{}", String::from_utf8_lossy(&rendered.stderr));
    let all: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8(rendered.stdout)?)?;
    let expected = all.iter().find(|it| it["kind"] == "Deployment").context("Helm renders no Deployment")?;
    std::fs::write(place.root().join("other.json"), object.to_string())?;
    let made = place
        .run(&["render", "shop/build/compose.wasm", "shop/other.json", "--config", "shop/composition.yaml"], &[])?;
    let made: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8(made.stdout)?)?;
    let made = made.iter().find(|it| it["kind"] == "Deployment").context("no Deployment is made")?;
    let of = |it: &Value| json!([it["spec"]["template"]["metadata"]["labels"], it["spec"]["template"]["spec"]]);
    ensure!(of(made) == of(expected), "{}\nand not\n{}", of(made), of(expected));
    ensure!(of(made)[0]["tier"] == "front" && of(made)[1]["serviceAccountName"] == "default", "{made}");
    Ok(())
}

/// The Helm that the black-box tests have built, or one in the PATH.
pub fn helm() -> Option<PathBuf> {
    let folder = target().join("third-party");
    let built = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_helm = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("helm-v"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed = std::env::split_paths(&path).map(|folder| folder.join("helm")).filter(|program| program.is_file());
    built.filter(is_helm).chain(installed).next()
}

fn nothing_is_built_of_a_composition() -> Result<()> {
    let place = Place::new()?;
    place.make(&["--lang", "compose"], &[])?;
    let built = place.run(&["build", "shop"], &[])?;
    ensure!(!built.status.success());
    has(
        &String::from_utf8_lossy(&built.stderr),
        &["is a kind without code, and there is nothing to build", "compose.wasm"],
    )
}

/// Each mistake is told with what to do, and nothing is left of the project.
fn bad_input_is_told_and_leaves_no_folder() -> Result<()> {
    let mut place = Place::new()?;
    place.programs = Some(PathBuf::new());
    let crd = repository().join("tests/fixtures/crds/certificate.yaml");
    let (crd, manifests, chart) = (crd.to_string_lossy(), fixtures().join("shop"), fixtures().join("chart"));
    let (manifests, chart) = (manifests.to_string_lossy(), chart.to_string_lossy());
    let kind = ["--kind", "example.com/v1/Shop"];
    let cases: [(&[&str], &[&str], &str); 10] = [
        (&["--lang", "rust", "--from-crd", "nowhere.yaml"], &[], "failed to read 'nowhere.yaml'"),
        (&["--lang", "rust", "--from-crd", &manifests], &[], "failed to read"),
        (
            &["--lang", "rust", "--from-crd", &crd],
            &kind,
            "choose one of those in it with --kind: cert-manager.io/v1/Certificate",
        ),
        (
            &["--lang", "compose", "--from-crd", &crd],
            &[],
            "a kind without code reads the fields of any CRD as they are",
        ),
        (&["--lang", "rust", "--from-yaml", &manifests], &kind, "leave out --lang, or say --lang compose"),
        (&["--from-yaml", "nowhere"], &kind, "failed to read 'nowhere'"),
        (&["--from-yaml", &crd], &kind, "a CRD is installed beside the composition"),
        (&["--from-chart", "nowhere"], &kind, "there is no chart 'nowhere'"),
        (&["--from-chart", &chart], &kind, "helm is missing; install it"),
        (&["--from-yaml", &manifests, "--from-chart", &chart], &kind, "cannot be used with"),
    ];
    for (arguments, more, expected) in cases {
        let refused = place.run(&[&["new", "shop"], arguments, more].concat(), &[])?;
        ensure!(!refused.status.success(), "{arguments:?} is taken");
        has(&String::from_utf8_lossy(&refused.stderr), &[expected])?;
        ensure!(!place.root().exists(), "{arguments:?} leaves a folder");
    }
    Ok(())
}
