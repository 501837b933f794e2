//! The subcommands for users: what they print, and their error messages.

use std::{collections::BTreeMap, fs::File, path::Path, process::Stdio};

use anyhow::{Context, Result, bail, ensure};
use pilothouse_tests::{artifacts, bad_plugins::components::of_contract};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    command::{file, pilothouse},
    suite::{Suite, tests},
    test_env::{TestEnv, app},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        every_command_explains_itself,
        wrong_arguments_are_reported,
        inspect_prints_the_manifest,
        inspect_says_why_a_file_is_no_plugin,
        crd_prints_the_kinds_of_the_host,
        the_reference_is_what_the_commands_say,
        the_contract_on_the_page_is_the_one_of_the_wit,
        shells_and_kubectl_complete_the_arguments,
        rbac_prints_a_role_and_its_binding,
        what_cannot_be_printed_is_an_error_and_no_panic,
        render_prints_what_the_host_applies,
        render_says_what_is_wrong_with_an_object,
        run_says_what_is_wrong_with_a_kubeconfig,
        run_says_what_is_wrong_with_a_plugin_directory,
    );
}

async fn every_command_explains_itself(_: &mut TestEnv) -> Result<()> {
    for command in [
        &[][..],
        &["run"],
        &["inspect"],
        &["rbac"],
        &["render"],
        &["new"],
        &["build"],
        &["test"],
        &["bench"],
        &["pack"],
        &["push"],
        &["completions"],
    ] {
        let help = pilothouse(command.iter().chain([&"--help"])).await?.succeeded()?;
        ensure!(help.contains("Usage: pilothouse"), "{command:?}: {help}");
    }
    let version = pilothouse(["--version"]).await?.succeeded()?;
    ensure!(version.starts_with("pilothouse "), "{version}");
    Ok(())
}

async fn wrong_arguments_are_reported(_: &mut TestEnv) -> Result<()> {
    for wrong in [&["sail"][..], &["run", "--sail"], &["run"], &["inspect"], &["rbac"]] {
        let ended = pilothouse(wrong).await?;
        ensure!(ended.code == 2 && ended.errors.contains("Usage"), "{wrong:?}: {ended:?}");
    }
    Ok(())
}

async fn inspect_prints_the_manifest(_: &mut TestEnv) -> Result<()> {
    let plugin = artifacts::plugin("app-service")?;
    let printed = pilothouse([Path::new("inspect"), &plugin]).await?.succeeded()?;
    let manifest: Value = serde_saphyr::from_str(&printed).context("it is not YAML")?;
    ensure!(manifest["name"] == "app-service" && manifest["contract"] == "0.2.0", "{printed}");
    ensure!(manifest["reconciles"]["kind"] == "AppService", "{printed}");
    let kinds: Vec<_> = manifest["children"].as_array().into_iter().flatten().map(|child| &child["kind"]).collect();
    ensure!(kinds == ["Deployment", "Service"], "{printed}");
    let head = printed.lines().next().unwrap_or_default();
    let bytes = format!(", {} bytes", std::fs::metadata(&plugin)?.len());
    ensure!(head.starts_with("# sha256:") && head.ends_with(&bytes), "{printed}");
    Ok(())
}

/// The same as the file of the repository, which `make crds` makes of it.
async fn crd_prints_the_kinds_of_the_host(_: &mut TestEnv) -> Result<()> {
    let printed = pilothouse([Path::new("crd")]).await?.succeeded()?;
    let kept = std::fs::read_to_string(artifacts::repository().join("crds/plugins.pilothouse.dev.yaml"))?;
    ensure!(printed == kept, "crds/plugins.pilothouse.dev.yaml is not what the types say; run `make crds`");
    Ok(())
}

/// The page of the repository, which `make reference` makes. As a plugin of kubectl, the program is called so in it.
async fn the_reference_is_what_the_commands_say(_: &mut TestEnv) -> Result<()> {
    let printed = pilothouse(["reference"]).await?.succeeded()?;
    let kept = std::fs::read_to_string(artifacts::repository().join("docs/cli.md"))?;
    ensure!(printed == kept, "docs/cli.md is not what the commands say; run `make reference`");
    let folder = tempfile::tempdir()?;
    let reference = as_kubectl_plugin(folder.path())?.arg("reference").output().await?;
    let reference = String::from_utf8(reference.stdout)?;
    ensure!(reference.contains("\nkubectl pilothouse why [OPTIONS]"), "{reference}");
    Ok(())
}

/// The page of the repository, which `make reference` makes of the WIT.
async fn the_contract_on_the_page_is_the_one_of_the_wit(_: &mut TestEnv) -> Result<()> {
    let printed = pilothouse(["reference", "--contract"]).await?.succeeded()?;
    let kept = std::fs::read_to_string(artifacts::repository().join("docs/contract.md"))?;
    ensure!(printed == kept, "docs/contract.md is not what the WIT says; run `make reference`");
    let wit = std::fs::read_to_string(artifacts::repository().join("wit/0.2/plugin.wit"))?;
    let words = wit.lines().filter_map(|line| line.trim().strip_prefix("/// ")?.split(['|', '`']).next());
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = joined(&kept);
    let missing: Vec<_> = words.filter(|line| !page.contains(joined(line).trim())).collect();
    ensure!(missing.is_empty(), "the page does not have {missing:#?}");
    Ok(())
}

/// bash completes with the script that is printed for it, and kubectl with what it finds in the PATH.
async fn shells_and_kubectl_complete_the_arguments(_: &mut TestEnv) -> Result<()> {
    for (shell, word) in
        [("elvish", "edit:"), ("fish", "complete -c"), ("powershell", "Register-"), ("zsh", "#compdef")]
    {
        let script = pilothouse(["completions", shell]).await?.succeeded()?;
        ensure!(script.contains(word) && script.contains("uninstall"), "{shell}: {script}");
    }
    let script = file(pilothouse(["completions", "bash"]).await?.succeeded()?.as_bytes())?;
    let complete = r#"source "$1"; COMP_WORDS=(pilothouse rend); COMP_CWORD=1; _pilothouse pilothouse rend pilothouse
                      echo "${COMPREPLY[@]}""#;
    let bash = Command::new("bash").args(["-c", complete, "bash"]).arg(script.path()).output().await?;
    ensure!(String::from_utf8_lossy(&bash.stdout) == "render\n", "{bash:?}");

    let folder = tempfile::tempdir()?;
    let mut named = as_kubectl_plugin(folder.path())?;
    let script = named.args(["completions", "kubectl"]).output().await?;
    let completer = folder.path().join("kubectl_complete-pilothouse");
    std::fs::write(&completer, script.stdout)?;
    let path = std::env::join_paths(
        std::iter::once(folder.path().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").context("no PATH")?)),
    )?;
    for (words, printed) in
        [(&["rend"][..], "render\t"), (&["list", "-o", "j"], "json\t"), (&["render", ""], ":0\n"), (&["wh"], "why\t")]
    {
        let ended = Command::new("sh").arg(&completer).args(words).env("PATH", &path).output().await?;
        let lines = String::from_utf8(ended.stdout)?;
        ensure!(lines.starts_with(printed), "{words:?}: {lines}");
    }
    Ok(())
}

/// The program under the name of a plugin of kubectl.
fn as_kubectl_plugin(folder: &Path) -> Result<Command> {
    let program = folder.join("kubectl-pilothouse");
    std::os::unix::fs::symlink(artifacts::host_binary()?, &program)?;
    Ok(Command::new(program))
}

/// `chart::rights` tests what is deployed, and `chart::running` that it is enough.
/// A full disk is told. Whoever has read enough, as `head`, need not be.
async fn what_cannot_be_printed_is_an_error_and_no_panic(_: &mut TestEnv) -> Result<()> {
    let plugin = artifacts::plugin("app-service")?;
    let object = file(app("web").to_string().as_bytes())?;
    let path = |path: &Path| path.as_os_str().to_owned();
    for arguments in [
        vec!["crd".into()],
        vec!["completions".into(), "bash".into()],
        vec!["inspect".into(), path(&plugin)],
        vec!["inspect".into(), path(&plugin), "-o".into(), "json".into()],
        vec!["rbac".into(), path(&plugin)],
        vec!["render".into(), path(&plugin), path(object.path())],
    ] {
        let (reader, closed) = std::io::pipe()?;
        drop(reader);
        for (output, told) in
            [(Stdio::from(File::options().write(true).open("/dev/full")?), true), (closed.into(), false)]
        {
            let mut command = Command::new(artifacts::host_binary()?);
            command.args(&arguments).stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
            let ended = command.kill_on_drop(true).spawn()?.wait_with_output().await?;
            let errors = String::from_utf8_lossy(&ended.stderr);
            ensure!(ended.status.code() == Some(1) && !errors.contains("panicked"), "{arguments:?}: {errors}");
            ensure!(errors.contains("error: failed to print: No space left") == told, "{arguments:?}: {errors}");
            ensure!(errors.contains("error:") == told, "{arguments:?}: {errors}");
        }
    }
    Ok(())
}

async fn rbac_prints_a_role_and_its_binding(_: &mut TestEnv) -> Result<()> {
    let plugin = artifacts::plugin("app-service")?;
    for (scope, kind) in [(&[][..], "ClusterRoleBinding"), (&["--namespace", "shop"], "RoleBinding")] {
        let arguments = [&["rbac", "--service-account", "system/host"], scope].concat();
        let printed = pilothouse(arguments.iter().map(Path::new).chain([&*plugin])).await?.succeeded()?;
        let objects: Vec<Value> = serde_saphyr::from_multiple(&printed).context("it is not YAML")?;
        let [role, binding] = &objects[..] else { bail!("not a role and a binding: {printed}") };
        ensure!(
            role["kind"] == "ClusterRole" && role["metadata"]["name"] == "pilothouse-plugin-app-service",
            "{printed}"
        );
        ensure!(binding["kind"] == kind && binding["roleRef"]["name"] == role["metadata"]["name"], "{printed}");
        ensure!(
            binding["metadata"].get("namespace").map(|namespace| namespace == "shop") == scope.first().map(|_| true)
        );
        ensure!(binding["subjects"][0] == json!({"kind": "ServiceAccount", "namespace": "system", "name": "host"}));
    }
    let ended = pilothouse(["rbac", "--service-account", "host", "x.wasm"]).await?;
    ensure!(ended.code == 2 && ended.errors.contains("named NAMESPACE/NAME, such as"), "{ended:?}");
    let no_plugin = file(b"no plugin")?;
    let ended = pilothouse([Path::new("rbac"), &plugin, no_plugin.path()]).await?;
    ensure!(ended.code == 1 && ended.errors.contains("not a whole WebAssembly file"), "{ended:?}");
    ensure!(ended.output.is_empty(), "half of the rights are printed: {ended:?}");
    Ok(())
}

async fn inspect_says_why_a_file_is_no_plugin(_: &mut TestEnv) -> Result<()> {
    let good = std::fs::read(artifacts::plugin("app-service")?)?;
    let cases = [
        (b"this is not WebAssembly".to_vec(), "not a whole WebAssembly file"),
        (good[..good.len() / 2].to_vec(), "not a whole WebAssembly file"),
        (b"\0asm\x01\0\0\0".to_vec(), "pilothouse pack"),
        (b"\0asm\x0d\0\x01\0".to_vec(), "without a manifest"),
        (of_contract(&good, "0.3.0")?, "built for contract 0.3.0"),
    ];
    for (bytes, message) in cases {
        let plugin = file(&bytes)?;
        let name = plugin.path().to_string_lossy().into_owned();
        pilothouse([Path::new("inspect"), plugin.path()]).await?.failed_with(&[message, &name])?;
    }
    pilothouse(["inspect", "no/such/file.wasm"]).await?.failed_with(&["no/such/file.wasm", "No such file"])
}

/// For the live object, it prints the same children as those in the cluster.
async fn render_prints_what_the_host_applies(env: &mut TestEnv) -> Result<()> {
    env.start_with_web().await?;
    let object = env.namespace.get("AppService", "web").await?.context("no AppService")?;
    let printed = render(env, &object).await?.succeeded()?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&printed).context("it is not YAML")?;
    let rendered: BTreeMap<_, _> =
        documents.iter().filter_map(|child| Some((child["kind"].as_str()?, child))).collect();
    ensure!(rendered.keys().eq(&["Deployment", "Service"]), "{printed}");
    for (kind, rendered) in rendered {
        let live = env.namespace.get(kind, "web").await?.context("no child")?;
        contains(&live, rendered, kind)?;
    }
    Ok(())
}

/// Checks that a live object has every field that was rendered, with the same value.
fn contains(live: &Value, rendered: &Value, path: &str) -> Result<()> {
    match (live, rendered) {
        (Value::Object(live), Value::Object(rendered)) => {
            for (key, value) in rendered {
                let live = live.get(key).with_context(|| format!("the live object has no {path}.{key}"))?;
                contains(live, value, &format!("{path}.{key}"))?;
            }
        }
        (Value::Array(live), Value::Array(rendered)) => {
            ensure!(live.len() == rendered.len(), "{path} has another length");
            for (index, (live, rendered)) in live.iter().zip(rendered).enumerate() {
                contains(live, rendered, &format!("{path}[{index}]"))?;
            }
        }
        (live, rendered) => ensure!(live == rendered, "{path} is {live}, but {rendered} was rendered"),
    }
    Ok(())
}

async fn render_says_what_is_wrong_with_an_object(env: &mut TestEnv) -> Result<()> {
    let mut other = app("web");
    other["kind"] = "Other".into();
    let mut nameless = app("web");
    nameless["metadata"] = Value::Object(Default::default());
    let mut without_metadata = app("web");
    without_metadata["metadata"] = Value::Null;
    for (object, words) in [
        (other, &["Other", "AppService"][..]),
        (nameless, &["metadata.name"]),
        (without_metadata, &["metadata"]),
        (Value::from("text"), &["apps.example.com/v1 AppService"]),
    ] {
        render(env, &object).await?.failed_with(words)?;
    }
    let plugin = artifacts::plugin("app-service")?;
    for (text, words) in [("a: [", &["is not YAML"][..]), ("", &["0 objects"])] {
        let object = file(text.as_bytes())?;
        pilothouse([Path::new("render"), &plugin, object.path()]).await?.failed_with(words)?;
    }
    // The schema of the CRD would refuse this object, and the plugin cannot parse it.
    let mut specless = app("web");
    specless["spec"] = Value::Null;
    let ended = render(env, &specless).await?;
    ensure!(!ended.errors.contains("verdict: done") && ended.output.is_empty(), "it rendered nonsense: {ended:?}");
    Ok(())
}

async fn render(env: &TestEnv, object: &Value) -> Result<crate::command::Ended> {
    let object = file(object.to_string().as_bytes())?;
    let (plugin, cache) = (artifacts::plugin("app-service")?, env.namespace.setup().cache);
    pilothouse([Path::new("render"), &plugin, object.path(), Path::new("--cache-dir"), &cache]).await
}

async fn run_says_what_is_wrong_with_a_kubeconfig(env: &mut TestEnv) -> Result<()> {
    let malformed = file(b"clusters: [")?;
    let nothing = file(b"apiVersion: v1\nkind: Config\n")?;
    for kubeconfig in [Path::new("no/such/kubeconfig"), malformed.path(), nothing.path()] {
        let plugins = env.host.plugins();
        let arguments = [Path::new("run"), Path::new("--plugins"), &plugins, Path::new("--kubeconfig"), kubeconfig];
        let name = kubeconfig.to_string_lossy();
        pilothouse(arguments).await?.failed_with(&[&name, "kubeconfig"])?;
    }
    Ok(())
}

async fn run_says_what_is_wrong_with_a_plugin_directory(env: &mut TestEnv) -> Result<()> {
    let kubeconfig = env.namespace.setup().kubeconfig;
    let plain = file(b"")?;
    for plugins in [Path::new("no/such/directory"), plain.path()] {
        let mut arguments =
            vec![Path::new("run"), Path::new("--plugins"), plugins, Path::new("--kubeconfig"), &kubeconfig];
        arguments.extend(["--health-address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0"].map(Path::new));
        let name = plugins.to_string_lossy();
        pilothouse(arguments).await?.failed_with(&[&name, "--plugins"])?;
    }
    Ok(())
}
