//! The Pods that the charts make, and what is around them: probes, grace, budget, network, nodes and security, as values. What the API server
//! says to all that is elsewhere.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::helm::{Helm, Release};
use serde_json::{Value, json};

use super::CHARTS;
use crate::{
    command::pilothouse,
    plugin_objects::text,
    suite::{Suite, tests},
    test_env::TestEnv,
};

/// How long a host ends what is under way, in s.
const DRAIN: i64 = 25;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_host_is_given_time_to_start_and_to_end,
        the_budget_lets_one_host_go_at_a_time,
        the_network_policy_lets_in_who_reads_metrics,
        two_hosts_run_on_two_nodes,
        hosts_that_never_share_a_node_are_replaced_one_by_one,
        a_host_may_nothing_on_its_node,
    );
}

async fn a_host_is_given_time_to_start_and_to_end(_: &mut TestEnv) -> Result<()> {
    let patient = ["--set", "probes.startupSeconds=301,probes.livenessSeconds=95,terminationGracePeriodSeconds=90"];
    let help = pilothouse(["run", "--help"]).await?.succeeded()?;
    for (chart, values, startup, liveness, grace) in
        [("pilothouse", &[][..], 60, 60, 45), ("llm-operator", &[], 60, 60, 45), ("pilothouse", &patient, 301, 95, 90)]
    {
        let objects = rendered(chart, values).await?;
        let pod = pod_of(&objects)?;
        let container = &pod["spec"]["containers"][0];
        for (probe, path) in
            [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")]
        {
            let get = &container[probe]["httpGet"];
            ensure!(*get == json!({"path": path, "port": "health"}), "{chart}: the {probe} asks {get}");
        }
        for (probe, wanted) in [("startupProbe", startup), ("livenessProbe", liveness)] {
            let patience = patience(&container[probe])?;
            ensure!((wanted..wanted + 10).contains(&patience), "{chart}: the {probe} waits {patience} s");
        }
        let given = pod["spec"]["terminationGracePeriodSeconds"].as_i64().context("no grace")?;
        ensure!(given == grace && given > DRAIN, "{chart}: it has {given} s to end");
        for (name, argument) in [("metrics", "--metrics-address"), ("health", "--health-address")] {
            let port = port_of(container, name)?;
            let shown = help.split(argument).nth(1).with_context(|| format!("no {argument}"))?;
            let default = shown.split("default: ").nth(1).and_then(|rest| rest.split(']').next()).unwrap_or_default();
            ensure!(
                default.ends_with(&format!(":{port}")),
                "{chart}: {name} is {port}, and a host listens at {default}"
            );
        }
    }
    Ok(())
}

async fn the_budget_lets_one_host_go_at_a_time(_: &mut TestEnv) -> Result<()> {
    for (values, expected) in
        [(&[][..], 1), (&["--set", "replicas=1"], 0), (&["--set", "podDisruptionBudget.enabled=false"], 0)]
    {
        let objects = rendered("pilothouse", values).await?;
        let budgets: Vec<_> = of_kind(&objects, "PodDisruptionBudget").collect();
        ensure!(budgets.len() == expected, "{values:?}: {budgets:?}");
        for budget in budgets {
            ensure!(budget["spec"]["maxUnavailable"] == 1, "{budget}");
            selects_the_pods(&budget["spec"]["selector"], &objects)?;
        }
    }
    Ok(())
}

async fn the_network_policy_lets_in_who_reads_metrics(_: &mut TestEnv) -> Result<()> {
    let objects = rendered("pilothouse", &[]).await?;
    let policy = of_kind(&objects, "NetworkPolicy").next().context("no policy")?;
    let spec = &policy["spec"];
    selects_the_pods(&spec["podSelector"], &objects)?;
    ensure!(spec["policyTypes"] == json!(["Ingress", "Egress"]), "{policy}");
    ensure!(spec["ingress"] == json!([{"ports": [{"port": "metrics"}]}]), "{policy}");
    let names = json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]);
    let servers = json!([{"port": 443, "protocol": "TCP"}, {"port": 6443, "protocol": "TCP"}]);
    ensure!(spec["egress"] == json!([{"ports": names}, {"ports": servers}]), "{policy}");

    let peer = json!({"namespaceSelector": {"matchLabels": {"name": "monitoring"}}});
    let more = json!({"ports": [{"port": 5000, "protocol": "TCP"}]});
    let from = format!("networkPolicy.metricsFrom=[{peer}]");
    let to = format!("networkPolicy.extraEgress=[{more}]");
    let objects = rendered("pilothouse", &["--set-json", &from, "--set-json", &to]).await?;
    let policy = of_kind(&objects, "NetworkPolicy").next().context("no policy")?;
    ensure!(policy["spec"]["ingress"][0]["from"] == json!([peer]), "{policy}");
    ensure!(policy["spec"]["egress"][2] == more, "{policy}");

    let objects = rendered("pilothouse", &["--set", "networkPolicy.enabled=false"]).await?;
    ensure!(of_kind(&objects, "NetworkPolicy").next().is_none(), "it is there all the same");
    Ok(())
}

async fn two_hosts_run_on_two_nodes(_: &mut TestEnv) -> Result<()> {
    let (preferred, required) =
        ("preferredDuringSchedulingIgnoredDuringExecution", "requiredDuringSchedulingIgnoredDuringExecution");
    for (values, rule) in [
        (&[][..], Some(preferred)),
        (&["--set", "antiAffinity=Required"], Some(required)),
        (&["--set", "antiAffinity=None"], None),
    ] {
        let objects = rendered("pilothouse", values).await?;
        let affinity = &pod_of(&objects)?["spec"]["affinity"];
        let rules = affinity["podAntiAffinity"].as_object().into_iter().flatten();
        let rules: Vec<_> = rules.map(|(rule, terms)| (rule.as_str(), &terms[0])).collect();
        match (&rules[..], rule) {
            ([], None) => ensure!(affinity.is_null(), "{affinity}"),
            ([(found, term)], Some(expected)) if *found == expected => {
                let term = if expected == preferred { &term["podAffinityTerm"] } else { *term };
                ensure!(term["topologyKey"] == "kubernetes.io/hostname", "{affinity}");
                selects_the_pods(&term["labelSelector"], &objects)?;
            }
            _ => anyhow::bail!("{values:?}: {affinity}"),
        }
    }
    let own = json!({"nodeAffinity": {}});
    let objects = rendered("pilothouse", &["--set-json", &format!("affinity={own}")]).await?;
    let affinity = &pod_of(&objects)?["spec"]["affinity"];
    ensure!(*affinity == own, "somebody else's comes in its place: {affinity}");
    Ok(())
}

/// On as many nodes as hosts, one more would find no node, and the roll-out would wait for it for ever.
async fn hosts_that_never_share_a_node_are_replaced_one_by_one(_: &mut TestEnv) -> Result<()> {
    for (antiaffinity, surge, unavailable) in [("Preferred", 1, 0), ("None", 1, 0), ("Required", 0, 1)] {
        let objects = rendered("pilothouse", &["--set", &format!("antiAffinity={antiaffinity}")]).await?;
        let deployment = of_kind(&objects, "Deployment").next().context("no Deployment")?;
        let update = &deployment["spec"]["strategy"]["rollingUpdate"];
        ensure!(*update == json!({"maxSurge": surge, "maxUnavailable": unavailable}), "{antiaffinity}: {update}");
    }
    Ok(())
}

async fn a_host_may_nothing_on_its_node(_: &mut TestEnv) -> Result<()> {
    for chart in CHARTS {
        let objects = rendered(chart, &[]).await?;
        let spec = &pod_of(&objects)?["spec"];
        let (pod, container) = (&spec["securityContext"], &spec["containers"][0]["securityContext"]);
        ensure!(
            pod["runAsNonRoot"] == true && pod["runAsUser"] == 65532 && pod["runAsGroup"] == 65532,
            "{chart}: {pod}"
        );
        ensure!(pod["seccompProfile"]["type"] == "RuntimeDefault", "{chart}: {pod}");
        let expected = json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        });
        ensure!(*container == expected, "{chart}: {container}");
        for field in ["hostNetwork", "hostPID", "hostIPC"] {
            ensure!(spec[field].is_null(), "{chart} has {field}");
        }
        let volumes: Vec<_> = spec["volumes"].as_array().into_iter().flatten().collect();
        ensure!(!volumes.iter().any(|volume| !volume["hostPath"].is_null()), "{chart}: {volumes:?}");
    }
    Ok(())
}

async fn rendered(chart: &str, values: &[&str]) -> Result<Vec<Value>> {
    Helm::get().await?.objects(Release { chart, name: "pilothouse", namespace: "test", values }).await
}

fn of_kind<'o>(objects: &'o [Value], kind: &str) -> impl Iterator<Item = &'o Value> {
    objects.iter().filter(move |object| text(&object["kind"]) == kind)
}

/// The template of the Pods.
fn pod_of(objects: &[Value]) -> Result<&Value> {
    Ok(&of_kind(objects, "Deployment").next().context("no Deployment")?["spec"]["template"])
}

/// Whether a selector is about the Pods.
fn selects_the_pods(selector: &Value, objects: &[Value]) -> Result<()> {
    let labels = &pod_of(objects)?["metadata"]["labels"];
    let wanted = selector["matchLabels"].as_object().filter(|wanted| !wanted.is_empty()).context("it selects all")?;
    ensure!(wanted.iter().all(|(key, value)| labels[key] == *value), "it selects {selector}, and they have {labels}");
    Ok(())
}

/// How long a probe may fail before it counts, in s. A period of 10 s is the default of Kubernetes.
fn patience(probe: &Value) -> Result<i64> {
    let failures = probe["failureThreshold"].as_i64().context("no threshold")?;
    Ok(failures * probe["periodSeconds"].as_i64().unwrap_or(10))
}

fn port_of(container: &Value, name: &str) -> Result<i64> {
    let mut ports = container["ports"].as_array().into_iter().flatten();
    let port = ports.find(|port| port["name"] == name).with_context(|| format!("no port {name}"))?;
    port["containerPort"].as_i64().context("no number")
}
