//! Plugins that reconcile kinds that they do not own: children, labels and annotations on their objects, never a status. Each is installed by
//! command and works with an account of its own, with what `install` gives it and nothing more.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use pilothouse_tests::{
    artifacts,
    audit::Writes,
    cluster::{Cluster, PATIENCE, condition, install_crd, revision},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    deployed::{self, Deployed},
    plugin_accounts::{HOST, SCRIPTED, install, start, user},
    suite::{Suite, tests},
    test_env::{TestEnv, config_map, is_ready},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_namespace_gets_children_labels_and_annotations_from_an_account_of_the_decorator,
        a_stateful_set_gets_a_service_for_each_pod,
        two_decorators_of_one_kind_do_not_disturb_each_other,
        a_decorator_and_the_owner_of_a_kind_do_not_disturb_each_other,
        a_label_that_drifts_is_repaired_and_those_of_others_are_left_alone,
        what_somebody_else_has_set_is_not_taken,
        failures_are_events_and_never_a_status,
        a_child_of_the_objects_own_controller_is_not_taken,
        a_decorator_at_rest_writes_nothing_also_after_a_restart,
        an_object_that_is_deleted_takes_its_children_with_it,
        a_right_that_a_decorator_loses_is_an_event_and_comes_back,
        a_canary_of_a_decorator_is_refused_and_it_works_on,
    );
}

/// The annotation that the guest `decorator` reads.
pub const ANSWER: &str = "decorator.test/answer";

/// The label that a StatefulSet gives its Pods.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";

/// The annotation that the guest `decorator-second` reads.
pub const SECOND_ANSWER: &str = "second.test/answer";

pub async fn a_namespace_gets_children_labels_and_annotations_from_an_account_of_the_decorator(
    env: &mut TestEnv,
) -> Result<()> {
    let _deployed = start_with(env, &["decorator"]).await?;
    let other = other_namespace(env).await?;
    let deny = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "deny", "namespace": env.namespace.name},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    });
    let on_object = on_namespace(env, json!({"labels": {"tier": "gold"}, "annotations": {"example.com/by": "us"}}));
    decorate(env, ANSWER, &children([deny, on_object])).await?;
    let policy = env.namespace.until("NetworkPolicy", "deny", "to be there", |_| true).await?;
    ensure!(policy["metadata"]["ownerReferences"][0]["kind"] == "Namespace", "{policy}");
    let namespace = until_labelled(env, "tier", Some("gold")).await?;
    ensure!(namespace["metadata"]["annotations"]["example.com/by"] == "us", "{namespace}");
    let own = owned_by(&namespace, "pilothouse/decorator").context("the field manager owns nothing")?;
    let fields: Vec<_> = own["f:metadata"].as_object().into_iter().flatten().map(|(field, _)| field.as_str()).collect();
    ensure!(own.as_object().is_some_and(|own| own.len() == 1) && fields == ["f:annotations", "f:labels"], "{own}");
    let (account, host) = (writes(env, "pilothouse-plugin-decorator")?, writes(env, HOST)?);
    ensure!(account.iter().any(|write| write.starts_with("patch namespaces/ ")), "{account:?}");
    ensure!(!account.iter().any(|write| write.contains("/status")), "{account:?}");
    ensure!(!host.iter().any(|write| write.contains(" namespaces/") || write.contains("networkpolicies")), "{host:?}");
    let untouched = env.namespace.get("Namespace", &other).await?.context("no namespace")?;
    ensure!(untouched["metadata"]["labels"]["tier"].is_null(), "an object that is not selected: {untouched}");
    Ok(())
}

async fn a_stateful_set_gets_a_service_for_each_pod(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["service-per-pod"]).await?;
    env.namespace.apply(stateful_set("plain", 2, None)).await?;
    env.namespace.apply(stateful_set("db", 3, Some("80:8080"))).await?;
    for number in 0..3 {
        let service = format!("db-{number}");
        let found = env.namespace.until("Service", &service, "to be there", |_| true).await?;
        let spec = &found["spec"];
        ensure!(spec["selector"][POD_NAME] == service, "{found}");
        ensure!(spec["ports"][0]["port"] == 80 && spec["ports"][0]["targetPort"] == 8080, "{found}");
    }
    env.namespace.patch("StatefulSet", "db", json!({"spec": {"replicas": 1}})).await?;
    env.namespace.until_gone("Service", "db-2").await?;
    env.namespace.until_gone("Service", "db-1").await?;
    env.namespace.until("Service", "db-0", "to stay", |_| true).await?;
    env.namespace
        .patch("StatefulSet", "db", json!({"metadata": {"annotations": {"service-per-pod-ports": null}}}))
        .await?;
    env.namespace.until_gone("Service", "db-0").await?;
    let plain = env.namespace.get("Service", "plain-0").await?;
    ensure!(plain.is_none(), "that StatefulSet has no annotation: {plain:?}");
    Ok(())
}

pub async fn two_decorators_of_one_kind_do_not_disturb_each_other(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["decorator", "decorator-second"]).await?;
    let (first, second) = (answer(env, "first", "one"), answer(env, "second", "two"));
    decorate(env, ANSWER, &first).await?;
    decorate(env, SECOND_ANSWER, &second).await?;
    let before = env.namespace.until("ConfigMap", "first", "to be there", |_| true).await?;
    env.namespace.until("ConfigMap", "second", "to be there", |_| true).await?;
    until_labelled(env, "first", Some("one")).await?;
    until_labelled(env, "second", Some("two")).await?;
    // One takes its own away, and the other's stay.
    decorate(env, SECOND_ANSWER, &children([])).await?;
    env.namespace.until_gone("ConfigMap", "second").await?;
    let namespace = until_labelled(env, "second", None).await?;
    ensure!(namespace["metadata"]["labels"]["first"] == "one", "{namespace}");
    let after = env.namespace.get("ConfigMap", "first").await?.context("the first one's child is gone")?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew");
    // Both want the same child, and then the same label with another value: the first one keeps them, and the second one says so.
    decorate(
        env,
        SECOND_ANSWER,
        &children([map_in(env, "first", json!({"by": "second"})), on_namespace(env, json!({}))]),
    )
    .await?;
    event(env, "NameConflict", "by plugin 'decorator'").await?;
    decorate(env, SECOND_ANSWER, &children([on_namespace(env, json!({"labels": {"first": "other"}}))])).await?;
    event(env, "MetadataConflict", "set by plugin 'decorator'").await?;
    let namespace = until_labelled(env, "first", Some("one")).await?;
    ensure!(
        revision(&env.namespace.get("ConfigMap", "first").await?.context("gone")?)? == revision(&before)?,
        "{namespace}"
    );
    Ok(())
}

async fn a_decorator_and_the_owner_of_a_kind_do_not_disturb_each_other(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["scripted", "decorator-scripted"]).await?;
    let on_object = json!({
        "apiVersion": "test.pilothouse.dev/v1", "kind": "Scripted",
        "metadata": {"name": "shop", "labels": {"decorated": "yes"}},
    });
    let decoration = children([config_map("extra", json!({"by": "decorator"})), on_object]);
    let object = |wanted: Value| {
        json!({
            "apiVersion": "test.pilothouse.dev/v1", "kind": "Scripted",
            "metadata": {"name": "shop", "annotations": {ANSWER: decoration.to_string()}},
            "spec": {"response": {"children": wanted, "status": {"phase": "Up"}}},
        })
    };
    let own = |name: &str| json!([{"object": config_map(name, json!({"by": "owner"}))}]);
    env.namespace.apply(object(own("one"))).await?;
    env.namespace.until("ConfigMap", "extra", "to be there", |_| true).await?;
    env.namespace.until("ConfigMap", "one", "to be there", |_| true).await?;
    let shown = |object: &Value| {
        object["metadata"]["labels"]["decorated"] == "yes" && condition(object, "Ready")["status"] == "True"
    };
    env.namespace.until("Scripted", "shop", "to be decorated and ready", shown).await?;
    // The owner's next answer prunes its own child only.
    env.namespace.apply(object(own("two"))).await?;
    env.namespace.until_gone("ConfigMap", "one").await?;
    let there = env.namespace.until("ConfigMap", "extra", "to stay", |_| true).await?;
    ensure!(there["metadata"]["labels"]["pilothouse.dev/decorator"] == "decorator-scripted", "{there}");
    // The decorator's next answer prunes its own.
    env.namespace.patch("Scripted", "shop", json!({"metadata": {"annotations": {ANSWER: null}}})).await?;
    env.namespace.until_gone("ConfigMap", "extra").await?;
    let undecorated = |object: &Value| object["metadata"]["labels"]["decorated"].is_null();
    env.namespace.until("Scripted", "shop", "to be as it was", undecorated).await?;
    env.namespace.until("ConfigMap", "two", "to stay", |_| true).await?;
    let by_decorator = writes(env, "pilothouse-plugin-decorator-scripted")?;
    ensure!(!by_decorator.iter().any(|write| write.contains("/status")), "{by_decorator:?}");
    Ok(())
}

async fn a_label_that_drifts_is_repaired_and_those_of_others_are_left_alone(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["decorator"]).await?;
    label(env, json!({"theirs": "kept"})).await?;
    decorate(env, ANSWER, &answer(env, "ours", "one")).await?;
    until_labelled(env, "ours", Some("one")).await?;
    for drift in [json!({"ours": "changed"}), json!({"ours": null})] {
        label(env, drift).await?;
        let namespace = until_labelled(env, "ours", Some("one")).await?;
        ensure!(namespace["metadata"]["labels"]["theirs"] == "kept", "{namespace}");
    }
    label(env, json!({"theirs": "changed"})).await?;
    decorate(env, ANSWER, &answer(env, "another", "two")).await?;
    until_labelled(env, "another", Some("two")).await?;
    let namespace = until_labelled(env, "ours", None).await?;
    ensure!(namespace["metadata"]["labels"]["theirs"] == "changed", "{namespace}");
    Ok(())
}

async fn what_somebody_else_has_set_is_not_taken(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["decorator"]).await?;
    label(env, json!({"team": "theirs"})).await?;
    decorate(env, ANSWER, &answer(env, "team", "ours")).await?;
    event(env, "MetadataConflict", "the label 'team' of Namespace").await?;
    until_labelled(env, "team", Some("theirs")).await?;
    // Once they give it up, it is ours.
    label(env, json!({"team": null})).await?;
    until_labelled(env, "team", Some("ours")).await.map(drop)
}

async fn failures_are_events_and_never_a_status(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["decorator"]).await?;
    let before = env.namespace.get("Namespace", &env.namespace.name).await?.context("no namespace")?["status"].clone();
    for (answer, reason, words) in [
        (json!({"children": [], "status": {"phase": "X"}}), "PluginContractViolated", "does not own them"),
        (json!({"verdict": {"invalid": "the answer is 42"}, "children": []}), "Invalid", "the answer is 42"),
        (
            json!({"children": [{"object": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "another"}}}]}),
            "ChildKindNotDeclared",
            "v1 Namespace",
        ),
        (json!({"children": [], "events": [{"reason": "Looked", "message": "at it"}]}), "Looked", "at it"),
    ] {
        decorate(env, ANSWER, &answer).await?;
        event(env, reason, words).await?;
    }
    let after = env.namespace.get("Namespace", &env.namespace.name).await?.context("no namespace")?;
    ensure!(after["status"] == before, "{after}");
    for account in ["pilothouse-plugin-decorator", HOST] {
        let all = writes(env, account)?;
        ensure!(!all.iter().any(|write| write.contains("namespaces/status")), "{all:?}");
    }
    Ok(())
}

/// Pods of a StatefulSet have it as their controller, as a decorator's children do.
async fn a_child_of_the_objects_own_controller_is_not_taken(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["service-per-pod"]).await?;
    let set = env.namespace.apply(stateful_set("db", 1, None)).await?;
    let theirs = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "db-0", "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": set["metadata"]["uid"], "controller": true,
        }]},
        "spec": {"ports": [{"port": 1}]},
    });
    let before = env.namespace.apply(theirs).await?;
    env.namespace.apply(stateful_set("db", 1, Some("80:8080"))).await?;
    env.event("StatefulSet", "db", "NameConflict").await?;
    let after = env.namespace.get("Service", "db-0").await?.context("it is gone")?;
    ensure!(revision(&after)? == revision(&before)?, "it was written: {after}");
    Ok(())
}

async fn a_decorator_at_rest_writes_nothing_also_after_a_restart(env: &mut TestEnv) -> Result<()> {
    let deployed = start_with(env, &["decorator"]).await?;
    decorate(env, ANSWER, &answer(env, "ours", "one")).await?;
    until_labelled(env, "ours", Some("one")).await?;
    env.namespace.until("ConfigMap", "ours", "to be there", |_| true).await?;
    env.metrics_at_rest().await?;
    let account = "pilothouse-plugin-decorator";
    let before = writes(env, account)?;
    // A change that asks for nothing, and a restart.
    label(env, json!({"touched": "yes"})).await?;
    env.metrics_at_rest().await?;
    env.host.stop().await?;
    env.set_up_host(|setup| *setup = deployed.setup())?;
    env.host.resume().await?;
    env.host.ready().await?;
    env.metrics_at_rest().await?;
    let after = writes(env, account)?;
    ensure!(after == before, "before {before:?}, after {after:?}");
    Ok(())
}

async fn an_object_that_is_deleted_takes_its_children_with_it(env: &mut TestEnv) -> Result<()> {
    // With garbage collection.
    env.move_to(Cluster::quiet().await?).await?;
    let crd = artifacts::repository().join("crds/plugins.pilothouse.dev.yaml");
    install_crd(&env.namespace.client(), &crd).await?;
    deployed::apply_manifest(env).await?;
    let deployed = Deployed::read(env, &env.namespace.name, HOST).await?;
    env.set_up_host(|setup| *setup = deployed.setup())?;
    env.host.resume().await?;
    env.host.ready().await?;
    install(env, &artifacts::example("service-per-pod")?, &[]).await?.succeeded()?;
    env.namespace.apply(stateful_set("db", 2, Some("80:8080"))).await?;
    env.namespace.until("Service", "db-1", "to be there", |_| true).await?;
    env.namespace.delete("StatefulSet", "db").await?;
    env.namespace.until_gone("Service", "db-1").await?;
    env.namespace.until_gone("Service", "db-0").await?;
    let left = env.namespace.list("StatefulSet").await?;
    ensure!(left.is_empty(), "a decorator holds no object: {left:?}");
    Ok(())
}

async fn a_right_that_a_decorator_loses_is_an_event_and_comes_back(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["decorator"]).await?;
    let role = "pilothouse-plugin-decorator.account";
    let roles: Api<k8s_openapi::api::rbac::v1::ClusterRole> = Api::all(env.namespace.client());
    let rules = roles.get(role).await?.rules.context("no rules")?;
    let mut less = rules.clone();
    let is_namespaces = |resources: &Option<Vec<String>>| {
        resources.as_ref().is_some_and(|resources| resources.contains(&"namespaces".to_owned()))
    };
    less.retain(|rule| !is_namespaces(&rule.resources));
    ensure!(less.len() + 1 == rules.len(), "it has one rule on namespaces: {rules:?}");
    put(&roles, role, &json!(less)).await?;
    // The API server takes its time to notice that a right is gone.
    eventually(PATIENCE, "the account to have lost the right", async || {
        decorate(env, ANSWER, &answer(env, &format!("l{}", fastrand::u32(..)), "one")).await?;
        let found = events(env).await?;
        let is_it = |event: &Event| event.reason.as_deref() == Some("Forbidden");
        Ok(Look::of(found.iter().any(is_it), found.len()))
    })
    .await?;
    decorate(env, ANSWER, &answer(env, "ours", "one")).await?;
    put(&roles, role, &json!(rules)).await?;
    until_labelled(env, "ours", Some("one")).await.map(drop)
}

async fn a_canary_of_a_decorator_is_refused_and_it_works_on(env: &mut TestEnv) -> Result<()> {
    let _deployed = start_with(env, &["decorator"]).await?;
    let canary = json!({"strategy": "Canary", "steps": [{"objects": 1, "seconds": 1}]});
    env.namespace.patch("Plugin", "decorator", json!({"spec": {"rollout": canary}})).await?;
    let is_refused = |plugin: &Value| condition(plugin, "Loaded")["reason"] == "CanaryImpossible";
    let plugin = env.namespace.until("Plugin", "decorator", "to be refused a canary", is_refused).await?;
    ensure!(plugin.to_string().contains("use the strategy Immediate"), "{plugin}");
    decorate(env, ANSWER, &answer(env, "ours", "one")).await?;
    until_labelled(env, "ours", Some("one")).await?;
    env.namespace.patch("Plugin", "decorator", json!({"spec": {"rollout": null}})).await?;
    env.namespace.until("Plugin", "decorator", "to be loaded again", is_ready).await.map(drop)
}

async fn put(roles: &Api<k8s_openapi::api::rbac::v1::ClusterRole>, role: &str, rules: &Value) -> Result<()> {
    roles.patch(role, &PatchParams::default(), &Patch::Merge(json!({"rules": rules}))).await?;
    Ok(())
}

/// Starts a host as it is deployed, and installs guests with accounts of their own.
pub async fn start_with(env: &mut TestEnv, guests: &[&str]) -> Result<Deployed> {
    let deployed = start(env).await?;
    for guest in guests {
        let grants: &[&str] = if *guest == "scripted" { SCRIPTED } else { &[] };
        install(env, &artifacts::any_plugin(guest)?, grants).await?.succeeded()?;
    }
    label(env, json!({"decorated": "yes"})).await?;
    Ok(deployed)
}

/// Has a decorator answer this for the test's namespace.
pub async fn decorate(env: &TestEnv, annotation: &str, answer: &Value) -> Result<()> {
    let annotations = json!({"metadata": {"annotations": {annotation: answer.to_string()}}});
    env.namespace.patch("Namespace", &env.namespace.name, annotations).await.map(drop)
}

/// Sets labels of the test's namespace as a user does.
pub async fn label(env: &TestEnv, labels: Value) -> Result<()> {
    let patch = json!({"metadata": {"labels": labels}});
    env.namespace.patch("Namespace", &env.namespace.name, patch).await.map(drop)
}

/// The answer with a ConfigMap and a label of one name.
pub fn answer(env: &TestEnv, name: &str, value: &str) -> Value {
    let map = map_in(env, name, json!({"value": value}));
    children([map, on_namespace(env, json!({"labels": {name: value}}))])
}

/// A ConfigMap in the test's namespace, as a child of a cluster-scoped object.
fn map_in(env: &TestEnv, name: &str, data: Value) -> Value {
    let mut map = config_map(name, data);
    map["metadata"]["namespace"] = json!(env.namespace.name);
    map
}

/// An answer with these children.
pub fn children(children: impl IntoIterator<Item = Value>) -> Value {
    let children: Vec<_> = children.into_iter().map(|child| json!({"object": child})).collect();
    json!({"children": children})
}

/// The test's namespace with this in its metadata, as a decorator returns it.
pub fn on_namespace(env: &TestEnv, mut metadata: Value) -> Value {
    metadata["name"] = json!(env.namespace.name);
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

/// Waits until the test's namespace has a label with this value, or does not have it.
pub async fn until_labelled(env: &TestEnv, label: &str, value: Option<&str>) -> Result<Value> {
    let what = format!("to have {label}={value:?}");
    let holds = |object: &Value| object["metadata"]["labels"][label].as_str() == value;
    env.namespace.until("Namespace", &env.namespace.name, &what, holds).await
}

/// The Events about the test's namespace. Those about cluster-scoped objects are in the namespace default.
async fn events(env: &TestEnv) -> Result<Vec<Event>> {
    let about = format!("involvedObject.kind=Namespace,involvedObject.name={}", env.namespace.name);
    let all =
        Api::<Event>::namespaced(env.namespace.client(), "default").list(&ListParams::default().fields(&about)).await;
    Ok(all?.items)
}

pub async fn event(env: &TestEnv, reason: &str, words: &str) -> Result<()> {
    eventually(PATIENCE, &format!("an Event {reason}"), async || {
        let found = events(env).await?;
        let is_it = |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.message.as_deref().is_some_and(|message| message.contains(words))
        };
        Ok(Look::of(found.iter().any(is_it), found.iter().map(|event| event.message.clone()).collect::<Vec<_>>()))
    })
    .await
}

/// The writes of an account in the test's namespace, and on it.
pub fn writes(env: &TestEnv, account: &str) -> Result<Vec<String>> {
    let log = env.cluster.plane.audit_log_path();
    Ok(Writes::read(&log, &user(env, account), &env.namespace.name)?
        .answered
        .into_iter()
        .map(|(_, write)| write)
        .collect())
}

/// The fields that a manager owns by server-side apply.
fn owned_by(object: &Value, manager: &str) -> Option<Value> {
    let all = object["metadata"]["managedFields"].as_array()?;
    all.iter().find(|entry| entry["manager"] == manager).map(|entry| entry["fieldsV1"].clone())
}

fn stateful_set(name: &str, replicas: u32, ports: Option<&str>) -> Value {
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "db", "image": "db:1"}]},
            },
        },
    });
    if let Some(ports) = ports {
        set["metadata"]["annotations"] = json!({"service-per-pod-label": POD_NAME, "service-per-pod-ports": ports});
    }
    set
}

/// A namespace that has the answer but not the label by which objects are decorated.
async fn other_namespace(env: &TestEnv) -> Result<String> {
    let name = format!("{}-b", &env.namespace.name[..env.namespace.name.floor_char_boundary(60)]);
    let answer = children([json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"tier": "gold"}},
    })]);
    let annotations = json!({ANSWER: answer.to_string()});
    let metadata = json!({"name": name, "annotations": annotations});
    env.namespace.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})).await?;
    Ok(name)
}
