//! Plugins in other languages than Rust, in a cluster: built as their authors build them, installed by one command, at work under accounts of
//! their own, and taken away again. They are the examples of `plugins/examples`, with a finalizer and instances that answer many calls. Their answers
//! are compared elsewhere.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use jiff::Timestamp;
use pilothouse_engine::{
    CallContext, Compiler, Engine, EngineConfig, Limits, NoLookups, Outcome, Plugin, Reconciler, Verb,
    contract::{Request, Response, Verdict},
};
use pilothouse_tests::{
    cluster::{condition, install_crd},
    languages::Language,
    project::Project,
};
use serde_json::{Value, json};

use crate::{
    plugin_accounts::{command, install, start, user},
    suite::Suite,
    test_env::TestEnv,
};

/// The finalizer of the plugin.
const FINALIZER: &str = "pilothouse.dev/web-site";

/// How often its instances are called, one after another, and may be.
const CALLS: usize = 1_500;
const CALLS_PER_INSTANCE: usize = 2_000;

/// Its account.
const ACCOUNT: &str = "pilothouse-plugin-web-site";

/// What is added to the sources of a language.
struct Additions {
    language: Language,
    /// Texts of its reconcile function, and what is in the place of each: it counts the calls of its instance, prints a line and half a line, and
    /// tells the count where the image is `count`.
    edits: &'static [(&'static str, &'static str)],
    /// A file, and a function in it that lets an object go once it has no children. It prints half a line.
    finalizer: (&'static str, &'static str),
    /// Whether it can print half a line.
    prints_halves: bool,
}

const ADDITIONS: [Additions; 4] = [
    Additions {
        language: Language::Go,
        edits: &[
            ("import (\n", "import (\n\t\"bytes\"\n\t\"fmt\"\n"),
            (
                "name, spec := request.Object.Metadata.Name, request.Object.Spec\n",
                r#"name, spec := request.Object.Metadata.Name, request.Object.Spec
	calls++
	fmt.Printf("line of %s\nhalf of %s", name, name)
	if spec.Image == "count" {
		return pilothouse.Invalid("%d", calls), nil
	}
	if spec.Image == "grow" {
		kept, damaged := [][]byte{}, 0
		for len(kept) < 1200 {
			fmt.Print("++++++++++++++++++++++++++++++++")
			if len(kept)%100 == 99 {
				fmt.Println()
			}
			block := make([]byte, 64<<10)
			for i := range block {
				block[i] = 1
			}
			kept = append(kept, block)
		}
		for _, block := range kept {
			damaged += len(block) - bytes.Count(block, []byte{1})
		}
		return pilothouse.Invalid("%d", damaged), nil
	}
"#,
            ),
        ],
        finalizer: (
            "finalize.go",
            r#"package main

import (
	"fmt"

	"example.com/web-site/pilothouse"
	"example.com/web-site/pilothouse/finalizer"
)

var calls int

func init() { finalizer.Finalize(finalize) }

func finalize(*pilothouse.Request[Spec]) (*pilothouse.Response, error) {
	fmt.Printf("ends after %d calls", calls)
	return pilothouse.Done().NoChildren(), nil
}"#,
        ),
        prints_halves: true,
    },
    Additions {
        language: Language::C,
        edits: &[
            ("#include <string.h>\n", "#include <stdlib.h>\n#include <string.h>\n\nstatic int calls;\n"),
            (
                "  const char *settings = ",
                r#"  calls++;
  printf("line of %s\nhalf of %s", name, name);
  if (!strcmp(image, "count")) {
    ph_invalid(response, "%d", calls);
    return;
  }
  if (!strcmp(image, "grow")) {
    enum { BLOCKS = 64, BYTES = 256 << 10 };
    char *kept[BLOCKS];
    int damaged = 0;
    for (int block = 0; block < BLOCKS; block++) {
      printf("+");
      fflush(stdout);
      kept[block] = malloc(BYTES);
      memset(kept[block], 1, BYTES);
    }
    for (int block = 0; block < BLOCKS; block++) {
      for (int byte = 0; byte < BYTES; byte++) damaged += kept[block][byte] != 1;
    }
    ph_invalid(response, "%d", damaged);
    return;
  }
  const char *settings = "#,
            ),
        ],
        finalizer: (
            "plugin.c",
            r#"static void finalize(const ph_request *request, ph_response *response) {
  (void)request;
  printf("ends after %d calls", calls);
  ph_no_children(response);
}
PH_FINALIZE(finalize)"#,
        ),
        prints_halves: true,
    },
    Additions {
        language: Language::Python,
        edits: &[(
            "    image, replicas, until = spec",
            r#"    CALLS.append(name)
    print(f"line of {name}")
    print(f"half of {name}", end="")
    if spec.get("image") == "count":
        return Response.invalid(str(len(CALLS)))
    image, replicas, until = spec"#,
        )],
        finalizer: (
            "reconciler.py",
            r#"from pilothouse import finalizer
CALLS = []


def finalize(request: Request) -> Response:
    print(f"ends after {len(CALLS)} calls", end="")
    return Response(children=[])


Finalizer = finalizer(finalize)"#,
        ),
        prints_halves: true,
    },
    Additions {
        language: Language::TypeScript,
        edits: &[(
            "  if (!image) return",
            r#"  calls++;
  console.log(`line of ${name}`);
  if (image === "count") return invalid(`${calls}`);
  if (!image) return"#,
        )],
        finalizer: (
            "plugin.ts",
            r#"let calls = 0;
function finalize() {
  console.log(`ends after ${calls} calls`);
  return done().noChildren();
}
export const finalizer = { finalize: plugin(finalize) };"#,
        ),
        prints_halves: false,
    },
];

pub fn register(suite: &mut Suite) {
    for additions in ADDITIONS {
        let name = "a_plugin_in_another_language_lives_in_a_cluster";
        suite.of_language(module_path!(), name, additions.language, async move |env: &mut TestEnv| {
            a_plugin_in_another_language_lives_in_a_cluster(env, additions).await
        });
    }
}

async fn a_plugin_in_another_language_lives_in_a_cluster(
    env: &mut TestEnv,
    Additions { language, edits, finalizer: (file, finalizer), prints_halves }: Additions,
) -> Result<()> {
    let mut project = Project::new(language)?.equip()?;
    project.become_example()?;
    project.append("plugin.yaml", &format!("finalizes: true\ncallsPerInstance: {CALLS_PER_INSTANCE}"))?;
    for (text, other) in edits {
        project.edit(language.source(), text, other)?;
    }
    project.append(file, finalizer)?;
    let built = project.build()?;
    let plugin = project.root().join(built["file"].as_str().with_context(|| built.to_string())?);
    an_instance_answers_again_and_again(env, language, &plugin).await?;

    let _deployed = start(env).await?;
    install_crd(&env.namespace.client(), &project.root().join("crd.yaml")).await?;
    // Large ones take a while to compile on a busy machine.
    install(env, &plugin, &["--timeout", "10m"]).await?.succeeded()?;

    env.namespace.apply(website(json!({"image": "example.com/web:1", "replicas": 2}))).await?;
    let is_made = |deployment: &Value| image(deployment) == "example.com/web:1" && deployment["spec"]["replicas"] == 2;
    env.namespace.until("Deployment", "web", "to be made", is_made).await?;
    let reported = |object: &Value| {
        object["status"]["readyReplicas"] == 0 && object["metadata"]["finalizers"] == json!([FINALIZER])
    };
    let object = env.namespace.until("Website", "web", "to have a status and its finalizer", reported).await?;
    let available = condition(&object, "Available");
    ensure!(available["message"] == "0 of 2 Pods are ready", "{available}");

    env.namespace.patch("Website", "web", json!({"spec": {"image": "example.com/web:2", "replicas": 3}})).await?;
    let is_followed =
        |deployment: &Value| image(deployment) == "example.com/web:2" && deployment["spec"]["replicas"] == 3;
    env.namespace.until("Deployment", "web", "to follow the edit", is_followed).await?;
    let own = env.writes_of(&user(env, ACCOUNT)).await?;
    ensure!(own.iter().any(|write| write.starts_with("patch deployments/ web")), "others wrote the child: {own:?}");

    // Another object, which an instance answers that has answered the first one.
    let mut other = website(json!({"image": "example.com/web:1"}));
    other["metadata"]["name"] = "other".into();
    env.namespace.apply(other).await?;
    env.namespace.until("Deployment", "other", "to be made", |_| true).await?;
    let halves: &[&str] = if prints_halves { &["half"] } else { &[] };
    for name in ["web", "other"] {
        for begin in ["line"].iter().chain(halves) {
            printed(env, &format!("{begin} of "), &format!("{begin} of {name}"), name)?;
        }
    }

    // An object that its plugin finds invalid says why, in the plugin's words.
    env.namespace.patch("Website", "web", json!({"spec": {"image": ""}})).await?;
    env.stalled("Website", "web", "Invalid").await?;

    env.namespace.delete("Website", "web").await?;
    env.namespace.until_gone("Website", "web").await?;
    env.namespace.until_gone("Deployment", "web").await?;
    // It was asked of an instance that had reconciled.
    let ended = env
        .log_lines()
        .into_iter()
        .find_map(|line| line["message"].as_str()?.strip_prefix("ends after ").map(str::to_owned));
    let ended = ended.context("the finalizer's half line is not in the log")?;
    ensure!(ended.ends_with(" calls") && !ended.starts_with("0 "), "{ended}");
    env.namespace.delete("Website", "other").await?;
    env.namespace.until_gone("Website", "other").await?;
    command(env, &["uninstall", "web-site", "--yes"]).await?.succeeded()?;
    ensure!(env.namespace.get("Plugin", "web-site").await?.is_none(), "the Plugin is there");
    Ok(())
}

/// Checks that what is printed in calls for an object is in the log, as lines of that object and of no other one.
fn printed(env: &TestEnv, begin: &str, whole: &str, name: &str) -> Result<()> {
    let lines = env.log_lines();
    let said = |line: &Value| line["message"].as_str().unwrap_or_default().to_owned();
    let of_object =
        |line: &&Value| line["span"]["object"].as_str().is_some_and(|object| object.ends_with(&format!("/{name}")));
    let with_it: Vec<_> = lines.iter().filter(|line| said(line).contains(begin)).filter(of_object).map(said).collect();
    ensure!(!with_it.is_empty() && with_it.iter().all(|line| line == whole), "not all are {whole:?}: {with_it:?}");
    Ok(())
}

/// More than there may be handles at once, so that an instance that let one go in no call would fail. Its answers stay those of new ones.
async fn an_instance_answers_again_and_again(env: &TestEnv, language: Language, plugin: &Path) -> Result<()> {
    if matches!(language, Language::C | Language::Go) {
        // What it prints while its memory grows is nowhere in what it keeps. To fill so much takes longer than a call may.
        let patient = Limits { cpu: Duration::from_secs(20), wall: Duration::from_secs(60), ..Limits::default() };
        let damaged = number_for(&load(env, plugin, patient).await?, "grow").await?;
        ensure!(damaged == 0, "{damaged} bytes were written over");
    }
    let plugin = load(env, plugin, Limits::default()).await?;
    let mut most = 0;
    for number in 0..CALLS {
        most = most.max(number_for(&plugin, "count").await.with_context(|| format!("call {number}"))?);
    }
    // The SDK for C frees nothing, so that an instance is given up before that.
    ensure!(language == Language::C || most >= CALLS, "an instance answered {most} calls at most");
    ensure!(most > 1, "no instance answered twice");
    Ok(())
}

async fn load(env: &TestEnv, plugin: &Path, limits: Limits) -> Result<Plugin> {
    // The host finds there what is compiled here.
    let config = EngineConfig {
        cache: env.namespace.setup().cache,
        compiler: Compiler::InProcess,
        limits,
        call_memory: 1 << 30,
    };
    Ok(Engine::new(config)?.load(std::fs::read(plugin)?).await?)
}

/// The number that it answers for an object with this image.
async fn number_for(plugin: &Plugin, image: &str) -> Result<usize> {
    let object = website(json!({"image": image})).to_string();
    let request = Request { object, children: Vec::new(), refused: Vec::new(), config: "null".to_owned() };
    let context = CallContext { lookups: Arc::new(NoLookups), now: Timestamp::UNIX_EPOCH };
    match plugin.call(Verb::Reconcile, request, context).await.outcome {
        Outcome::Response(Response { verdict: Verdict::Invalid(number), .. }) => Ok(number.parse()?),
        other => bail!("{other:?}"),
    }
}

fn website(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "web"}, "spec": spec})
}

fn image(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["image"]
}
