//! The images and the commands about them: what the Dockerfile is made of, what `make deploy` puts into a cluster, and that a release signs
//! what the registry has. No image is built here; the tools that a release needs are stood in for by scripts that write down how they
//! are called.

use std::{ffi::OsString, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{artifacts, needs};
use serde_json::Value;
use tokio::process::Command;

use crate::{
    suite::{Suite, tests, tests_with},
    test_env::TestEnv,
};

/// The digest that the stand-in for docker says.
const DIGEST: &str = "sha256:0123456789012345678901234567890123456789012345678901234567890123";

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_images_are_made_of_pinned_bases,
        the_host_needs_no_library_that_its_image_lacks,
        an_image_is_built_and_pushed,
        a_release_is_signed_by_its_digest,
        an_image_without_a_name_is_refused,
    );
    tests_with!(suite, needs::kubectl(), products_are_deployed_with_an_image);
}

async fn the_images_are_made_of_pinned_bases(_: &mut TestEnv) -> Result<()> {
    let file = std::fs::read_to_string(artifacts::repository().join("deploy/Dockerfile"))?;
    let mut stages: Vec<&str> = Vec::new();
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["FROM", base, "AS", name] => {
                let digest = base.split_once("@sha256:").map(|(_, digest)| digest);
                let pinned = digest.is_some_and(|it| it.len() == 64 && it.bytes().all(|byte| byte.is_ascii_hexdigit()));
                ensure!(pinned || stages.contains(&base), "{base} is neither pinned nor a stage before");
                stages.push(name);
            }
            ["COPY", from, source, _] if from.starts_with("--from=") => {
                ensure!(stages.contains(&from.trim_start_matches("--from=")), "{line}: no such stage before");
                ensure!(source.starts_with("/src/target/"), "{line}: something else than what is built");
            }
            ["WORKDIR" | "COPY" | "RUN" | "USER" | "EXPOSE" | "ENTRYPOINT" | "CMD", ..] => {}
            _ => anyhow::bail!("{line}: the test does not know it"),
        }
    }
    ensure!(stages == ["build", "plugins", "pilothouse", "llm-operator"], "the stages are {stages:?}");
    ensure!(file.contains("USER 65532:65532"), "it runs as somebody else than the charts say");
    let ignored = std::fs::read_to_string(artifacts::repository().join(".dockerignore"))?;
    for folder in ["target", ".git"] {
        ensure!(ignored.lines().any(|line| line == folder), "{folder} goes into the build");
    }
    Ok(())
}

/// Those of `distroless/cc`: https://github.com/GoogleContainerTools/distroless/blob/main/cc/README.md.
async fn the_host_needs_no_library_that_its_image_lacks(_: &mut TestEnv) -> Result<()> {
    let needed = said(Command::new("ldd").arg(artifacts::host_binary()?)).await?;
    let of_image =
        ["linux-vdso.so.1", "ld-linux-", "libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2"];
    let mut count = 0;
    for line in needed.lines().map(str::trim).filter(|line| !line.is_empty()) {
        count += 1;
        ensure!(of_image.iter().any(|library| line.contains(library)), "the image has no {line}");
    }
    ensure!(count > 2, "nothing is known of it: {needed}");
    Ok(())
}

/// `make docker-build docker-push IMG=…`, with a stand-in for docker.
async fn an_image_is_built_and_pushed(_: &mut TestEnv) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    stand_in(folder.path(), "docker", &format!("echo \"docker $*\" >>'{}'\n", log.display()))?;
    for (product, more) in [("llm-operator", None), ("pilothouse", Some("PRODUCT=pilothouse"))] {
        let image = format!("registry.example.com:5000/team/{product}:1.2");
        let mut command = Command::new("make");
        command.args(["docker-build", "docker-push", &format!("IMG={image}")]).args(more);
        command.current_dir(artifacts::repository()).env("PATH", path_with(folder.path())?);
        said(&mut command).await?;
        let calls = std::fs::read_to_string(&log)?;
        let build = format!("docker build --file deploy/Dockerfile --target {product} --tag {image} .");
        ensure!(calls.lines().eq([build, format!("docker push {image}")]), "{calls}");
        std::fs::remove_file(&log)?;
    }
    Ok(())
}

/// `make install` and `make deploy IMG=…`, with the kubectl of this machine.
async fn products_are_deployed_with_an_image(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&[]).await?;
    let kubeconfig = env.cluster.plane.kubeconfig_path();
    let run = async |arguments: &[&str]| {
        let mut command = Command::new("make");
        command.args(arguments).current_dir(artifacts::repository()).env("KUBECONFIG", &kubeconfig);
        said(&mut command).await
    };
    run(&["install"]).await?;
    env.namespace.get("CustomResourceDefinition", "plugins.pilothouse.dev").await?.context("no CRD of Plugin")?;
    for (product, namespace) in [("llm-operator", "default"), ("pilothouse", "pilothouse")] {
        let image = format!("registry.example.com:5000/team/{product}:1.2");
        run(&["deploy", &format!("IMG={image}"), &format!("PRODUCT={product}")]).await?;
        let deployments = pilothouse_tests::cluster::api(&env.namespace.client(), "Deployment", Some(namespace))?;
        let found: Value = serde_json::to_value(deployments.get(product).await?)?;
        let container = &found["spec"]["template"]["spec"]["containers"][0];
        ensure!(container["image"] == *image, "{product} has the image {}", container["image"]);
    }
    Ok(())
}

async fn a_release_is_signed_by_its_digest(_: &mut TestEnv) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    let note = format!("echo \"$(basename \"$0\") $*\" >>'{}'\n", log.display());
    let metadata = format!(
        "while [ $# -gt 0 ]; do [ \"$1\" = --metadata-file ] && printf '{{\"containerimage.digest\": \"{DIGEST}\"}}' >\"$2\"; shift; done\n"
    );
    stand_in(folder.path(), "docker", &format!("{note}{metadata}"))?;
    stand_in(folder.path(), "syft", &note)?;
    stand_in(folder.path(), "cosign", &note)?;
    let mut command =
        script(folder.path(), &["publish", "llm-operator", "registry.example.com:5000/team/llm-operator:1.2"])?;
    let printed = said(&mut command).await?;
    let signed = format!("registry.example.com:5000/team/llm-operator@{DIGEST}");
    ensure!(printed.trim_end().ends_with(&signed), "it says {printed}");
    let calls = std::fs::read_to_string(&log)?;
    let calls: Vec<_> = calls.lines().collect();
    ensure!(calls.len() == 4, "{calls:#?}");
    for (call, words) in calls.iter().zip([
        &["docker buildx build", "--target llm-operator", "--push", "--provenance mode=max"][..],
        &["syft scan", &signed, "cyclonedx-json"],
        &["cosign sign", &signed],
        &["cosign attest", "--type cyclonedx", &signed],
    ]) {
        ensure!(words.iter().all(|word| call.contains(word)), "{call} has not all of {words:?}");
    }
    Ok(())
}

async fn an_image_without_a_name_is_refused(_: &mut TestEnv) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (arguments, words) in [
        (["build", "llm-operator", ""], "IMG="),
        (["build", "operator", "team/operator:1"], "PRODUCT"),
        (["deploy", "pilothouse", "a|b"], "no name"),
        (["ship", "pilothouse", "team/pilothouse:1"], "none of"),
    ] {
        let output = script(folder.path(), &arguments)?.output().await?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success() && errors.contains(words), "{arguments:?}: {errors}");
    }
    Ok(())
}

/// The script with a folder before all others in its path.
fn script(tools: &Path, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(artifacts::repository().join("scripts/image.sh"));
    command.args(arguments).env("PATH", path_with(tools)?).stdin(Stdio::null());
    Ok(command)
}

/// The path of this process with a folder before all others.
fn path_with(tools: &Path) -> Result<OsString> {
    let mut path = tools.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").context("no PATH")?);
    Ok(path)
}

fn stand_in(folder: &Path, name: &str, text: &str) -> Result<()> {
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{text}"))?;
    Ok(std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))?)
}

/// What a command prints. It has to succeed.
pub async fn said(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(output.status.success(), "{command:?} fails: {}\n{}", text(&output.stdout), text(&output.stderr));
    Ok(text(&output.stdout))
}
