//! Values and names that are right and look like something else to YAML or to Kubernetes, and values that are wrong: what a chart takes the API
//! server takes, too, and what it refuses it refuses with a message that names the value.

use anyhow::{Context, Result, ensure};
use kube::api::PatchParams;
use pilothouse_tests::{
    cluster::{create_namespace, install_crd},
    helm::{Helm, Release},
    third_party::PROMETHEUS_RULE,
};
use serde_json::{Value, json};

use super::{
    plugin_schema::{plugin, plugins},
    reference_plugins,
};
use crate::{
    command::pilothouse,
    deployed::apply,
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// Namespaces whose names are a number, a truth and nothing to YAML.
const NAMESPACES: [&str; 3] = ["123", "on", "null"];

/// Cut to 40 characters, it ends with two dashes.
const LONG: &str = "abcdefghijabcdefghijabcdefghijabcdefgh--pilothouse";

/// What calls, and plugins between them, may have.
const MEMORY: &str = "callMemoryMebibytes=1000000,pluginMemoryMebibytes=2000000";

/// A claim that is made for each Pod.
const CLAIM_OF_ITS_OWN: &str = r#"cache={"ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec":
    {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}}}"#;

/// Where Pods go, in fields that few use.
const ODD_PLACEMENT: &str = r#"affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference":
    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}}]}, "podAffinity":
    {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "namespaceSelector": {}, "matchLabelKeys": ["a"],
    "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]}}"#;

/// Peers in all of their forms.
const ODD_PEERS: &str = r#"networkPolicy={"metricsFrom": [{"namespaceSelector": {"matchLabels": {"a": "b"}}, "podSelector": {}}], "extraEgress":
    [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}], "ports": [{"port": 5000, "endPort": 5010, "protocol": "TCP"}]}]}"#;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        the_api_server_takes_odd_names_of_releases,
        the_api_server_takes_odd_values,
        a_namespace_that_looks_like_nothing_is_watched,
        wrong_values_are_refused_by_name,
        what_is_taken_away_is_the_default_or_refused,
        the_cache_is_one_volume,
        files_of_plugins_are_a_volume_that_is_read,
        what_no_kind_of_kubernetes_has_is_refused,
        more_arguments_are_those_with_which_a_host_starts,
        two_plugins_never_share_a_name_or_an_account,
    );
}

async fn the_api_server_takes_odd_names_of_releases(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml"]).await?;
    for (chart, name) in [
        ("pilothouse", "123"),
        ("pilothouse", "1e3"),
        ("pilothouse", "my.pilothouse"),
        ("pilothouse", "1pilothouse"),
        ("pilothouse", LONG),
        ("llm-operator", "123"),
        ("llm-operator", "1e3"),
        ("llm-operator", "on"),
    ] {
        is_taken(env, chart, name, &[]).await?;
    }
    Ok(())
}

async fn the_api_server_takes_odd_values(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["crds/plugins.pilothouse.dev.yaml"]).await?;
    install_crd(&env.namespace.client(), &PROMETHEUS_RULE.fetch().await?).await?;
    for namespace in NAMESPACES {
        create_namespace(&env.namespace.client(), namespace).await?;
        let watched = format!("watchNamespace={namespace}");
        is_taken(env, "pilothouse", "web", &["--values", &reference_plugins()?, "--set-string", &watched]).await?;
        is_taken(env, "llm-operator", "web", &["--set-string", &watched]).await?;
    }
    let odd = plugins(&[
        plugin("123", &json!({"reconciles": {"group": "", "kind": "On", "resource": "on"}})),
        plugin("web", &json!({"account": {"name": "on"}, "digest": null, "limits": null, "rollout": null})),
    ]);
    let rule = r#"prometheusRule={"enabled": true, "runbookUrl": "https://example.com/a?b=c:d", "selector": "job=\"a: b #c\""}"#;
    for (chart, values) in [
        ("pilothouse", ["--set-json", odd.as_str()]),
        ("pilothouse", ["--set-json", rule]),
        ("pilothouse", ["--set-json", r#"podAnnotations={"kubectl.kubernetes.io/default-container": "sidecar"}"#]),
        ("pilothouse", ["--set", MEMORY]),
        ("pilothouse", ["--set", "priorityClassName=on,serviceAccount.name=on"]),
        ("pilothouse", ["--set-json", r#"extraArgs=["--watch-renewal=2m"]"#]),
        ("pilothouse", ["--set-json", CLAIM_OF_ITS_OWN]),
        ("pilothouse", ["--set-json", ODD_PLACEMENT]),
        ("pilothouse", ["--set-json", ODD_PEERS]),
        ("llm-operator", ["--set-json", r#"resources={"limits": {"memory": "1Gi", "example.com/odd": 1}}"#]),
        (
            "llm-operator",
            ["--set-json", r#"tolerations=[{"operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}]"#],
        ),
        ("llm-operator", ["--set", "pluginsConfigMap=on"]),
        ("llm-operator", ["--set", "logLevel=off"]),
        ("llm-operator", ["--set-json", r#"logLevel="info,pilothouse_controller=debug""#]),
    ] {
        is_taken(env, chart, "web", &values).await?;
    }
    let objects = rendered("pilothouse", &["--set", MEMORY]).await?;
    let arguments = pod_of(&objects)?["containers"][0]["args"].to_string();
    for argument in ["--call-memory=1000000", "--plugin-memory=2000000"] {
        ensure!(arguments.contains(argument), "{argument}: {arguments}");
    }
    Ok(())
}

/// Without a value, a host would watch all namespaces.
async fn a_namespace_that_looks_like_nothing_is_watched(_: &mut TestEnv) -> Result<()> {
    for chart in super::CHARTS {
        let objects = rendered(chart, &["--set-string", "watchNamespace=null"]).await?;
        let variables = &pod_of(&objects)?["containers"][0]["env"];
        let watched = json!({"name": "WATCH_NAMESPACE", "value": "null"});
        ensure!(variables.as_array().is_some_and(|all| all.contains(&watched)), "{chart}: {variables}");
    }
    Ok(())
}

async fn wrong_values_are_refused_by_name(_: &mut TestEnv) -> Result<()> {
    for (chart, values, words) in [
        ("pilothouse", r#"fullnameOverride="1abc""#, "fullnameOverride"),
        ("pilothouse", r#"resync="0s""#, "/resync"),
        ("pilothouse", r#"resync="99999999999999999999h""#, "/resync"),
        ("pilothouse", r#"resync="1m1h""#, "/resync"),
        ("pilothouse", r#"serviceAccount.name="a..b""#, "/serviceAccount/name"),
        ("pilothouse", r#"serviceAccount.name="a.-b""#, "/serviceAccount/name"),
        ("pilothouse", r#"resources.requests.memory="lots""#, "/resources/requests/memory"),
        ("pilothouse", r#"extraArgs=["--request-timeout=banana"]"#, "--request-timeout is a duration"),
        ("pilothouse", r#"extraArgs=["--request-timeout="]"#, "--request-timeout has no value"),
        ("pilothouse", r#"extraArgs=["--watch-renewal", "0s"]"#, "--watch-renewal is a duration"),
        ("pilothouse", r#"extraArgs=["--config=foo"]"#, "--config is NAME=FILE"),
        (
            "pilothouse",
            r#"extraArgs=["--leader-elect-lease-duration=10s"]"#,
            "shorter than --leader-elect-lease-duration, 10s",
        ),
        (
            "pilothouse",
            r#"extraArgs=["--leader-elect-renew-deadline", "20s"]"#,
            "shorter than --leader-elect-lease-duration, 15s",
        ),
        (
            "pilothouse",
            r#"extraArgs=["--leader-elect-retry-period=5001ms"]"#,
            "at least twice --leader-elect-retry-period",
        ),
        ("pilothouse", r#"fullnameOverride="a.b""#, "fullnameOverride"),
        ("pilothouse", r#"fullnameOverride="abcdefghijabcdefghijabcdefghijabcdefghij0""#, "fullnameOverride"),
        ("pilothouse", r#"watchNamespace="a.b""#, "watchNamespace"),
        ("pilothouse", r#"impersonation="None""#, "impersonation"),
        ("pilothouse", r#"log.level="nonsense""#, "/log/level"),
        ("pilothouse", r#"prometheusRule.runbookUrl="a: b""#, "runbookUrl"),
        ("pilothouse", r#"prometheusRule.selector="a\nb""#, "selector"),
        ("pilothouse", r#"prometheusRule.selector="}""#, "prometheusRule.selector: label matchers are expected"),
        ("pilothouse", r#"podLabels={"app.kubernetes.io/instance": "x"}"#, "podLabels"),
        ("pilothouse", r#"podLabels={"a b": "x"}"#, "a b"),
        ("pilothouse", r#"podLabels={"a": "x y"}"#, "podLabels"),
        ("pilothouse", r#"serviceMonitor.labels={"app.kubernetes.io/name": "x"}"#, "serviceMonitor.labels"),
        ("pilothouse", r#"extraArgs=["--concurrency=9"]"#, "--concurrency"),
        ("pilothouse", r#"extraArgs=["--resync", "9h"]"#, "--resync"),
        ("pilothouse", r#"extraArgs=["--log-level=debug"]"#, "log.level"),
        ("pilothouse", r#"extraArgs=["--metrics-address=0.0.0.0:1"]"#, "--metrics-address"),
        ("llm-operator", r#"logLevel="nonsense""#, "logLevel"),
        ("llm-operator", r#"watchNamespace="a.b""#, "watchNamespace"),
        ("llm-operator", r#"nodeSelector={"a": "x y"}"#, "nodeSelector"),
    ] {
        let said = refused(chart, &["--set-json", values]).await?;
        ensure!(said.contains(words), "{chart} with {values}: {said}");
    }
    Ok(())
}

/// `null` in values takes the default of the chart away.
async fn what_is_taken_away_is_the_default_or_refused(_: &mut TestEnv) -> Result<()> {
    for (chart, value) in [
        ("pilothouse", "image"),
        ("pilothouse", "replicas"),
        ("pilothouse", "log"),
        ("pilothouse", "log.level"),
        ("pilothouse", "serviceAccount"),
        ("pilothouse", "probes"),
        ("pilothouse", "probes.livenessSeconds"),
        ("pilothouse", "networkPolicy"),
        ("pilothouse", "networkPolicy.egressPorts"),
        ("pilothouse", "podDisruptionBudget"),
        ("pilothouse", "serviceMonitor"),
        ("pilothouse", "prometheusRule"),
        ("pilothouse", "dashboard"),
        ("llm-operator", "image"),
        ("llm-operator", "logLevel"),
    ] {
        let said = refused(chart, &["--set", &format!("{value}=null")]).await?;
        let name = value.rsplit('.').next().unwrap_or(value);
        ensure!(said.contains("missing") && said.contains(name), "{chart} without {value}: {said}");
    }
    let none = rendered("pilothouse", &["--set", "registrySecrets=null"]).await?;
    ensure!(!json!(none).to_string().contains(r#"["secrets"]"#), "it may read Secrets");
    for value in [
        "resources",
        "affinity",
        "nodeSelector",
        "tolerations",
        "podLabels",
        "podAnnotations",
        "plugins",
        "extraArgs",
        "watchNamespace",
        "impersonation",
        "fullnameOverride",
        "dashboard.labels",
        "prometheusRule.selector",
        "callMemoryMebibytes",
        "pluginMemoryMebibytes",
    ] {
        let objects = rendered("pilothouse", &["--set", &format!("{value}=null")]).await?;
        pod_of(&objects).with_context(|| format!("without {value}"))?;
    }
    Ok(())
}

async fn the_cache_is_one_volume(_: &mut TestEnv) -> Result<()> {
    let default = json!({"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}});
    let claim = json!({"name": "cache", "persistentVolumeClaim": {"claimName": "plugins"}});
    for (value, volume) in [
        ("replicas=2", &default),
        ("cache=null", &default),
        ("cache.emptyDir.sizeLimit=2Gi", &json!({"name": "cache", "emptyDir": {"sizeLimit": "2Gi"}})),
        ("cache.persistentVolumeClaim.claimName=plugins", &claim),
    ] {
        let objects = rendered("pilothouse", &["--set", value]).await?;
        let volumes = &pod_of(&objects)?["volumes"];
        ensure!(*volumes == json!([volume]), "{value}: {volumes}");
    }
    let two =
        refused("pilothouse", &["--set-json", r#"cache={"emptyDir": {}, "hostPath": {"path": "/cache"}}"#]).await?;
    ensure!(two.contains("cache"), "{two}");
    // A misspelt one would be dropped, and leave an emptyDir without a limit; one that is only read from is no cache.
    for wrong in ["persistentVolumeClaims.claimName=plugins", "configMap.name=plugins", "emptyDir.sizeLimits=2Gi"] {
        let said = refused("pilothouse", &["--set", &format!("cache.{wrong}")]).await?;
        let is_named = wrong.split(['.', '=']).any(|part| said.contains(&format!("'{part}' not allowed")));
        ensure!(is_named && said.contains("/cache"), "{wrong}: {said}");
    }
    for read_only in [
        r#"{"persistentVolumeClaim": {"claimName": "plugins", "readOnly": true}}"#,
        r#"{"csi": {"driver": "example.com", "readOnly": true}}"#,
    ] {
        let said = refused("pilothouse", &["--set-json", &format!("cache={read_only}")]).await?;
        ensure!(said.contains("readOnly"), "{read_only}: {said}");
    }
    Ok(())
}

async fn files_of_plugins_are_a_volume_that_is_read(env: &mut TestEnv) -> Result<()> {
    let without = rendered("pilothouse", &[]).await?;
    ensure!(!pod_of(&without)?.to_string().contains("plugin-files"), "a volume that nobody asked for");
    let image = r#"pluginFiles={"image": {"reference": "registry.example.com/team/plugins:1"}}"#;
    let file = r#"plugins=[{"name": "web", "reconciles": {"group": "a.example.com", "kind": "Web", "resource": "webs"},
        "source": {"directory": {"fileName": "web.wasm"}}}]"#;
    let objects = rendered("pilothouse", &["--set-json", image, "--set-json", file]).await?;
    let pod = pod_of(&objects)?;
    let volume = json!({"name": "plugin-files", "image": {"reference": "registry.example.com/team/plugins:1"}});
    ensure!(pod["volumes"].as_array().is_some_and(|all| all.contains(&volume)), "{}", pod["volumes"]);
    let (host, mount) =
        (&pod["containers"][0], json!({"name": "plugin-files", "mountPath": "/plugin-files", "readOnly": true}));
    ensure!(host["volumeMounts"].as_array().is_some_and(|all| all.contains(&mount)), "{}", host["volumeMounts"]);
    let argument = json!("--plugin-files=/plugin-files");
    ensure!(host["args"].as_array().is_some_and(|all| all.contains(&argument)), "{}", host["args"]);
    for (values, words) in [
        (file, "Say in pluginFiles which volume has it"),
        (r#"pluginFiles={"emptyDir": {}}"#, "emptyDir"),
        (r#"pluginFiles={"image": {}, "hostPath": {"path": "/plugins"}}"#, "pluginFiles"),
    ] {
        let said = refused("pilothouse", &["--set-json", values]).await?;
        ensure!(said.contains(words), "{values}: {said}");
    }
    is_taken(env, "pilothouse", "files", &["--set-json", r#"pluginFiles={"configMap": {"name": "plugins"}}"#]).await
}

/// The API server drops what it does not know, with a warning that nobody sees: a limit that is misspelt is none.
async fn what_no_kind_of_kubernetes_has_is_refused(_: &mut TestEnv) -> Result<()> {
    for (chart, values, field) in [
        ("pilothouse", r#"resources={"limit": {"memory": "1Gi"}}"#, "limit"),
        ("pilothouse", r#"affinity={"nodeAfinity": {}}"#, "nodeAfinity"),
        ("pilothouse", r#"tolerations=[{"keys": "gpu"}]"#, "keys"),
        (
            "pilothouse",
            r#"topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "selector": {}}]"#,
            "selector",
        ),
        ("pilothouse", r#"networkPolicy.metricsFrom=[{"namespaces": {}}]"#, "namespaces"),
        ("pilothouse", r#"networkPolicy.extraEgress=[{"peers": []}]"#, "peers"),
        ("llm-operator", r#"resources={"limit": {"memory": "1Gi"}}"#, "limit"),
        ("llm-operator", r#"tolerations=[{"keys": "gpu"}]"#, "keys"),
    ] {
        let said = refused(chart, &["--set-json", values]).await?;
        ensure!(said.contains(&format!("'{field}' not allowed")), "{chart} with {values}: {said}");
    }
    Ok(())
}

/// Each option of `pilothouse run` is taken or the chart's own, and nothing else is taken: a Pod with it would never start.
async fn more_arguments_are_those_with_which_a_host_starts(_: &mut TestEnv) -> Result<()> {
    let with = |arguments: &[&str]| format!("extraArgs={}", json!(arguments));
    let wrong = refused("pilothouse", &["--set-json", &with(&["--help"])]).await?;
    let list = wrong.split_once("More arguments can be ").context("it does not say which there are")?.1;
    let list = list.lines().next().unwrap_or_default();
    let taken: Vec<_> = list.split_whitespace().map(|name| name.trim_end_matches(',')).collect();
    let help = pilothouse(["run", "--help"]).await?.succeeded()?;
    let first_word =
        |line: &str| line.trim_start().trim_start_matches("-h, ").split_whitespace().next().map(str::to_owned);
    let options = help.lines().filter_map(first_word).filter(|word| word.starts_with("--") && word != "--help");
    let options: Vec<_> =
        options.map(|option| option.split(['=', '[']).next().unwrap_or_default().to_owned()).collect();
    ensure!(options.len() > 15, "the help has hardly any options: {options:?}");
    for option in &options {
        // The election's durations have to fit together.
        let value = match option.as_str() {
            "--config" => "web=/etc/web.yaml",
            "--leader-elect-retry-period" => "1s",
            _ => "12s",
        };
        let values = with(&[&format!("{option}={value}")]);
        match rendered("pilothouse", &["--set-json", &values]).await {
            Ok(_) => ensure!(taken.contains(&option.as_str()), "{option} is not named: {wrong}"),
            Err(said) => {
                let said = said.to_string();
                ensure!(said.contains("the chart"), "{option} is neither taken nor the chart's own: {said}");
            }
        }
    }
    for name in taken {
        ensure!(options.iter().any(|option| option == name), "the host has no {name}");
    }
    for (arguments, words) in [
        (&["-h"][..], "with '-h' no host starts"),
        (&["--version"], "no host starts"),
        (&["--plugin=/x"], "no host starts"),
        (&["x"], "no host starts"),
        (&["--watch-renewal"], "--watch-renewal has no value"),
        (&["--watch-renewal", "--request-timeout=2m"], "--watch-renewal has no value"),
        (&["--watch-renewal=2m", "--watch-renewal", "3m"], "--watch-renewal is there twice"),
    ] {
        let said = refused("pilothouse", &["--set-json", &with(arguments)]).await?;
        ensure!(said.contains(words), "{arguments:?}: {said}");
    }
    let election = [
        "--leader-elect-lease-duration=1m30s",
        "--leader-elect-renew-deadline",
        "1m",
        "--leader-elect-retry-period=30s",
    ];
    for arguments in [&["--watch-renewal", "2m"][..], &["--config=a=/b", "--config=c=/d"], &election] {
        rendered("pilothouse", &["--set-json", &with(arguments)]).await?;
    }
    Ok(())
}

/// `pilothouse uninstall` finds by the name what to delete, the account, too.
async fn two_plugins_never_share_a_name_or_an_account(_: &mut TestEnv) -> Result<()> {
    let with = |name: &str, account: &str| plugin(name, &json!({"account": {"name": account}}));
    let web = || plugin("web", &json!({}));
    for (given, words) in [
        ([web(), web()], "'web' is there twice"),
        ([with("web", "shared"), with("shop", "shared")], "'web' and 'shop' have one account, 'shared'"),
        ([with("shop", "pilothouse-plugin-web"), web()], "have one account"),
        ([with("shop", "pilothouse"), web()], "the host's own"),
        ([with("shop", "pilothouse-preflight"), web()], "is the account of the preflight"),
        (
            [
                plugin(
                    "shop",
                    &json!({"decorates": true, "rollout": {"strategy": "Canary", "steps": [{"objects": 1, "seconds": 1}]}}),
                ),
                web(),
            ],
            "no canary of such",
        ),
    ] {
        let values = ["--set-json", &plugins(&given), "--set", "preflight.enabled=true"];
        let said = refused("pilothouse", &values).await?;
        ensure!(said.contains(words), "{given:?}: {said}");
    }
    let preflight = plugins(&[plugin("preflight", &json!({}))]);
    for (given, value, words) in [
        (plugins(&[web()]), "fullnameOverride=pilothouse-plugin-web", "fullnameOverride"),
        (preflight, "fullnameOverride=pilothouse-plugin", "would be the name of the preflight"),
        (plugins(&[]), "serviceAccount.name=pilothouse-preflight", "is the account of the preflight"),
    ] {
        let values = ["--set-json", &given, "--set", "preflight.enabled=true", "--set", value];
        let said = refused("pilothouse", &values).await?;
        ensure!(said.contains(words), "{value}: {said}");
    }
    // One of that name in the namespace of each object is made by who owns it, with the rights that he wants.
    let of_object = |name: &str| plugin(name, &json!({"account": {"name": "tenant", "namespace": "Object"}}));
    rendered("pilothouse", &["--set-json", &plugins(&[of_object("web"), of_object("shop")])]).await.map(drop)
}

/// Whether the API server would take all that a chart renders to.
async fn is_taken(env: &TestEnv, chart: &str, name: &str, values: &[&str]) -> Result<()> {
    let release = Release { chart, name, namespace: &env.namespace.name, values };
    for object in Helm::get().await?.objects(release).await? {
        let taken = apply(env, &object, &PatchParams::apply("tests").dry_run()).await;
        taken.with_context(|| format!("{chart} as {name} with {values:?}: {object}"))?;
    }
    Ok(())
}

async fn rendered(chart: &str, values: &[&str]) -> Result<Vec<Value>> {
    Helm::get().await?.objects(Release { chart, name: "pilothouse", namespace: "test", values }).await
}

/// What Helm says to values that it refuses.
async fn refused(chart: &str, values: &[&str]) -> Result<String> {
    let refused = rendered(chart, values).await.err().with_context(|| format!("{chart} takes {values:?}"))?;
    let said = refused.to_string();
    ensure!(!said.contains("nil pointer") && !said.contains("YAML parse error"), "{chart} with {values:?}: {said}");
    Ok(said)
}

fn pod_of(objects: &[Value]) -> Result<&Value> {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").context("no Deployment")?;
    Ok(&deployment["spec"]["template"]["spec"])
}
