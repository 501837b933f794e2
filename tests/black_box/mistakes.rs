//! Mistakes of authors, in a table: what `pilothouse test` says of each before anything is in a cluster, what `pilothouse dev` says, and what the
//! object says there. Each message names the mistake and what to do. What becomes of the rest of the host is tested by `misbehaviour` and `answer_validation`.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts,
    bad_plugins::components::{self, of_contract},
    cluster::condition,
    languages::Language,
    project::Project,
    thoroughness,
};
use serde_json::{Value, json};

use crate::{
    command::{Ended, file, pilothouse},
    dev,
    suite::{Suite, heavy_with, tests},
    test_env::{TestEnv, answering, config_map, deployment, misbehaver, returning, scripted},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        pilothouse_test_names_each_mistake_and_what_to_do,
        an_object_names_the_mistake_of_its_plugin_and_what_to_do,
        pilothouse_test_says_why_a_file_is_no_plugin,
    );
    heavy_with!(suite, thoroughness::all(), dev_names_each_mistake_and_what_to_do);
    if Language::C.has_tools() {
        tests!(suite, dev_says_why_what_is_saved_is_no_plugin);
    } else {
        let name = "dev_says_why_what_is_saved_is_no_plugin";
        suite.ignored(module_path!(), name, "C's tools are missing; see scripts/languages.sh");
    }
}

/// What a plugin does wrong for an object, and the words about it.
struct Mistake {
    object: Value,
    /// Of `pilothouse test`.
    words: &'static [&'static str],
    /// What the object says in the cluster.
    in_cluster: InCluster,
}

enum InCluster {
    /// The object has this reason, and the same words.
    Same(&'static str),
    /// The API server refuses the child in its own words.
    Refused(&'static str),
    /// Only the case can tell.
    Unseen,
}

use InCluster::{Refused, Same, Unseen};

/// What the guest `misbehaver` does wrong.
fn acts() -> Vec<Mistake> {
    let mistakes = [
        (
            "invalid-json",
            &["child number 0", "not valid: key must be a string at line 1"][..],
            Same("PluginContractViolated"),
        ),
        ("bad-status", &["a status that is not valid: it is not a JSON object"], Same("PluginContractViolated")),
        ("no-name", &["a v1 ConfigMap that is not valid: it has no metadata.name"], Same("PluginContractViolated")),
        ("undeclared-kind", &["kind v1 Secret", "add it to the manifest's `children`"], Same("ChildKindNotDeclared")),
        (
            "other-namespace",
            &["in namespace 'elsewhere'", "leave metadata.namespace out"],
            Same("ChildScopeNotAllowed"),
        ),
        (
            "cluster-child",
            &["is cluster-scoped", "only a plugin of a cluster-scoped kind"],
            Same("ChildScopeNotAllowed"),
        ),
        ("duplicate", &["twice", "a name of its own"], Same("DuplicateChild")),
        ("many-children", &["at most 2500, so spread them over several objects"], Same("TooManyChildren")),
        ("host-condition", &["'Reconciling' belongs to the host", "return a verdict"], Same("PluginContractViolated")),
        ("empty-reason", &["type 'Ready' and reason '' must be CamelCase words"], Same("PluginContractViolated")),
        (
            "undeclared-measurement",
            &["`other_total`", "add it to the manifest's `measurements`"],
            Same("PluginContractViolated"),
        ),
        ("wrong-label", &["with the labels [\"act\"]; its manifest declares []"], Same("PluginContractViolated")),
        ("lookup-denied", &["declares no lookup of v1 Secret; add it to the `lookups` there"], Same("LookupDenied")),
        ("clock", &["the answer changes with time alone: a day later, children[ConfigMap/clock].data.now"], Unseen),
        ("trap", &["the plugin trapped: panicked at", "excess.rs:", "it was asked to"], Same("PluginTrapped")),
        ("recurse", &["the plugin trapped: wasm trap: call stack exhausted"], Same("PluginTrapped")),
        ("loop", &["did not answer within 1s; look for a loop that does not end"], Same("PluginDeadlineExceeded")),
        ("allocate", &["its limit of 128 MiB; keep less in memory at once"], Same("PluginMemoryLimitExceeded")),
        ("huge", &["its limit of 1024 KiB; return less, or raise spec.limits"], Same("PluginOutputLimitExceeded")),
    ];
    let mistake = |(act, words, in_cluster)| {
        let mut object = misbehaver(act, act);
        match act {
            "other-namespace" => object["spec"]["namespace"] = "elsewhere".into(),
            // More than an object may have, but not more than a call may return.
            "many-children" => object["spec"]["number"] = 2_600.into(),
            _ => {}
        }
        Mistake { object, words, in_cluster }
    };
    mistakes.map(mistake).into()
}

/// Children that are wrong, which the guest `scripted` returns.
fn children() -> Vec<Mistake> {
    let returns =
        |name, child, words, in_cluster| Mistake { object: scripted(name, returning([child])), words, in_cluster };
    let mut labels = config_map("labels", json!({}));
    labels["metadata"]["labels"] = json!({"app": "not a value"});
    let mut typo = deployment("typo", json!({"name": "main", "image": "example.com/web:1"}));
    typo["spec"]["replica"] = 2.into();
    let event = json!({"children": [], "events": [{"reason": "two words", "message": "something"}]});
    vec![
        returns("labels", labels, &["ConfigMap 'labels'", "metadata.labels"], Same("PluginContractViolated")),
        returns(
            "typo",
            typo,
            &[
                "the API server would refuse Deployment 'typo': spec.replica is no field of apps/v1 Deployment; is there a typo",
            ],
            Refused("spec.replica"),
        ),
        returns(
            "number",
            config_map("number", json!({"port": 80})),
            &["ConfigMap 'number': data.port has another type: invalid type: integer `80`, expected a string"],
            Refused("data.port"),
        ),
        Mistake {
            object: answering("event", event),
            words: &["an Event that is not allowed", "'two words'"],
            in_cluster: Same("PluginContractViolated"),
        },
    ]
}

/// Twenty and some.
async fn pilothouse_test_names_each_mistake_and_what_to_do(env: &mut TestEnv) -> Result<()> {
    for (guest, mistakes) in [("misbehaver", acts()), ("scripted", children())] {
        let ended = test(env, &artifacts::guest(guest)?, &cases(&mistakes)?).await?;
        let results: Value = serde_json::from_str(&ended.output).with_context(|| format!("{ended:?}"))?;
        for Mistake { object, words, .. } in mistakes {
            let name = &object["metadata"]["name"];
            let result = results["cases"].as_array().into_iter().flatten().find(|result| result["name"] == *name);
            let result = result.with_context(|| format!("{name} was not run: {results}"))?;
            let said = texts(result).join("\n");
            let missing: Vec<_> = words.iter().filter(|word| !said.contains(**word)).collect();
            ensure!(missing.is_empty(), "{name}: {missing:?} is not said: {said}");
        }
    }
    Ok(())
}

/// A case for each of them.
fn cases(mistakes: &[Mistake]) -> Result<String> {
    let mut cases = String::new();
    for Mistake { object, .. } in mistakes {
        writeln!(cases, "---\nname: {}\nobject: {object}\nexpect: {{verdict: done}}", object["metadata"]["name"])?;
    }
    Ok(cases)
}

/// The same words, as soon as the author saves what makes the mistake.
async fn dev_names_each_mistake_and_what_to_do(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    for (guest, mistakes) in [("misbehaver", acts()), ("scripted", children())] {
        let project = with_sources_of(guest)?;
        std::fs::write(project.root().join("cases/first.yaml"), cases(&mistakes)?)?;
        let mut dev = dev::start(env, &[&project.root()])?;
        dev.says(&format!("{} cases: ", mistakes.len())).await?;
        let said = dev.output()?;
        for Mistake { object, words, .. } in mistakes {
            // Up to the next case.
            let name = object["metadata"]["name"].as_str().context("no name")?;
            let of_case = said.split("cases/first.yaml: ").find(|part| part.lines().next() == Some(name));
            let of_case = of_case.with_context(|| format!("{name} is not told: {said}"))?;
            // A message is shown as JSON.
            let is_missing = |word: &&&str| !of_case.contains(&word.replace('"', r#"\""#));
            let missing: Vec<_> = words.iter().filter(is_missing).collect();
            ensure!(missing.is_empty(), "{name}: {missing:?} is not said: {of_case}");
        }
        dev.stop().await?;
    }
    Ok(())
}

/// A project with the sources of a guest, as if its author had written them.
fn with_sources_of(guest: &str) -> Result<Project> {
    let project = Project::new(Language::Rust)?.equip()?;
    let (from, root) = (artifacts::repository().join("tests/guests").join(guest), project.root());
    let copy = |folder: &Path, to: PathBuf| -> Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let file = entry?.path();
            if file.extension().is_some_and(|end| end == "rs" || end == "yaml") {
                std::fs::copy(&file, to.join(file.file_name().unwrap_or_default()))?;
            }
        }
        Ok(())
    };
    copy(&from, root.clone())?;
    copy(&from.join("src"), root.join("src"))?;
    std::fs::remove_dir_all(root.join("tests"))?;
    project.edit(
        "Cargo.toml",
        "[dependencies]",
        "[features]\ndefault = [\"plugin\"]\nplugin = []\n\n[dependencies]\nserde_json = \"1\"",
    )?;
    Ok(project)
}

/// What is told of sources of which no plugin can be made; the version before goes on.
async fn dev_says_why_what_is_saved_is_no_plugin(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    let mut project = Project::new(Language::C)?;
    let mut dev = dev::start(env, &[&project.root()])?;
    dev.says("is at work").await?;
    let save = |file: &str, text: &str| std::fs::write(project.root().join(file), text);
    let (source, manifest) = ("plugin.c", "plugin.yaml");
    let read = |file: &str| std::fs::read_to_string(project.root().join(file));
    let (good_source, good_manifest) = (read(source)?, read(manifest)?);
    let begin = "void ph_reconcile(const ph_request *request, ph_response *response) {";
    ensure!(good_source.contains(begin), "{good_source}");
    for (file, text, words) in [
        (manifest, good_manifest.replace("contract: 0.2.0", "contract: 0.3.0"), &["built for contract 0.3.0"][..]),
        (manifest, good_manifest.replace("children:", "childern:"), &["childern; correct their names"]),
        (
            source,
            good_source.replace(begin, &format!("{begin}\n  if (socket(1, 1, 0) < 0) return;")),
            &["undefined symbol: socket"],
        ),
    ] {
        save(file, &text)?;
        for word in words {
            dev.says(word).await?;
        }
        dev.says("goes on").await?;
        let said = dev.output()?;
        let twice = words.iter().find(|word| said.lines().any(|line| line.matches(**word).count() > 1));
        ensure!(twice.is_none(), "{twice:?} is said twice: {said}");
        save(source, &good_source)?;
        save(manifest, &good_manifest)?;
        dev.says("5 cases: 5 passed").await?;
    }
    project.break_sources()?;
    dev.says("mistake").await?;
    dev.stop().await
}

async fn an_object_names_the_mistake_of_its_plugin_and_what_to_do(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver", "scripted"]).await?;
    let mistakes: Vec<_> = acts().into_iter().chain(children()).collect();
    for Mistake { object, .. } in &mistakes {
        env.namespace.apply(object.clone()).await?;
    }
    for Mistake { object, words, in_cluster } in mistakes {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        let (kind, name) = (kind.as_str().context("no kind")?, name.as_str().context("no name")?);
        let (reason, words) = match in_cluster {
            Same(reason) => (reason, words.to_vec()),
            Refused(word) => ("ChildInvalid", vec![word]),
            Unseen => continue,
        };
        let holds = |object: &Value| condition(object, "Ready")["reason"] == reason;
        let live = env.namespace.until(kind, name, &format!("to say {reason}"), holds).await?;
        let said = condition(&live, "Ready")["message"].as_str().unwrap_or_default();
        let missing: Vec<_> = words.iter().filter(|word| !said.contains(**word)).collect();
        ensure!(missing.is_empty(), "{name}: {missing:?} is not said: {said}");
    }
    Ok(())
}

/// What cannot be called at all.
async fn pilothouse_test_says_why_a_file_is_no_plugin(env: &mut TestEnv) -> Result<()> {
    let good = std::fs::read(artifacts::guest("scripted")?)?;
    let case = "object: {apiVersion: v1, kind: A, metadata: {name: a}}\n";
    for (component, words) in [
        (components::with_import(&good, "wasi:sockets/tcp@0.2.0"), &["wasi:sockets/tcp@0.2.0"][..]),
        (of_contract(&good, "0.3.0")?, &["built for contract 0.3.0"]),
        (components::core_module(), &["pilothouse pack"]),
        (components::bare(), &["without a manifest"]),
        (b"no plugin".to_vec(), &["not a whole WebAssembly file"]),
    ] {
        let plugin = file(&component)?;
        test(env, plugin.path(), case).await?.failed_with(words)?;
    }
    Ok(())
}

/// All texts in a value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(elements) => elements.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// `pilothouse test`, for programs.
async fn test(env: &TestEnv, plugin: &Path, cases: &str) -> Result<Ended> {
    let folder = tempfile::tempdir()?;
    let (cases_file, cache) = (folder.path().join("cases.yaml"), env.namespace.setup().cache);
    std::fs::write(&cases_file, cases)?;
    let paths = [Path::new("test"), &cases_file, Path::new("--plugin"), plugin, Path::new("--cache-dir"), &cache];
    pilothouse(paths.into_iter().chain(["-o", "json"].map(Path::new))).await
}
