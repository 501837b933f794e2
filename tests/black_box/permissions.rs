//! Missing permissions: reported on the object, and over as soon as they are granted.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use pilothouse_control_plane::RESTRICTED;
use pilothouse_tests::{
    artifacts,
    cluster::{PATIENCE, condition},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    command::repacked,
    fault_reporting,
    suite::{Suite, tests},
    test_env::{TestEnv, app, is_ready, returning, scripted},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        missing_rights_are_reported_at_the_start,
        a_denied_write_is_reported_on_the_object,
        a_denied_status_is_reported_where_that_is_possible,
        a_denied_watch_is_reported_and_nothing_is_decided,
        without_its_record_of_kinds_the_host_makes_no_child,
        rights_that_nobody_has_to_give_are_named,
    );
}

/// The log names all missing rights at once, also those that are needed only later, and no right that is granted.
async fn missing_rights_are_reported_at_the_start(env: &mut TestEnv) -> Result<()> {
    let mut rules = vec![rule("*", "*", "get list watch"), rule("", "*", "*"), rule("apps", "deployments", "patch")];
    allow(env, &rules).await?;
    be_restricted(env, &[])?;
    env.start(&["app-service"]).await?;
    let missing = "the host lacks rights that the plugin needs: update on appservices/finalizers in the group \
                   'apps.example.com'; patch on appservices/status in the group 'apps.example.com'; create, delete on \
                   deployments in the group 'apps'; `pilothouse rbac`";
    env.host.logged(missing).await?;
    let rights = env.metrics().await?.sum("pilothouse_rights_missing", &[("plugin", "app-service")]);
    ensure!(rights == 4.0, "the metric says {rights}");

    rules.extend([rule("apps.example.com", "*", "*"), rule("apps", "*", "*")]);
    allow(env, &rules).await?;
    env.host.stop().await?;
    env.host.resume().await?;
    env.host.logged("the host has all rights that the plugin needs").await?;
    let rights = env.metrics().await?.sum("pilothouse_rights_missing", &[("plugin", "app-service")]);
    ensure!(rights == 0.0, "the metric says {rights}");
    Ok(())
}

/// The host may read everything, but not write Deployments.
async fn a_denied_write_is_reported_on_the_object(env: &mut TestEnv) -> Result<()> {
    let mut rules = vec![rule("*", "*", "get list watch"), rule("apps.example.com", "appservices/status", "patch")];
    rules.extend(["services", "events", "configmaps"].map(|resource| rule("", resource, "create patch")));
    allow(env, &rules).await?;
    be_restricted(env, &[])?;
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    let object = env.stalled("AppService", "web", "Forbidden").await?;
    let message = condition(&object, "Stalled")["message"].to_string();
    ensure!(
        message.contains("deployments.apps") && message.contains("cannot"),
        "it does not say what is denied: {message}"
    );
    fault_reporting::is_reported_everywhere(env, ("AppService", "web"), ("app-service", "0.1.0"), "Forbidden").await?;
    env.namespace.until("Service", "web", "to be created all the same", |_| true).await?;
    rules.push(rule("apps", "deployments", "create patch"));
    allow(env, &rules).await?;
    env.at_rest("web").await
}

/// The children are created, but the host may not write the status, so an Event and the log report that.
async fn a_denied_status_is_reported_where_that_is_possible(env: &mut TestEnv) -> Result<()> {
    let mut rules = vec![rule("*", "*", "get list watch"), rule("apps", "deployments", "create patch")];
    rules.extend(["services", "events", "configmaps"].map(|resource| rule("", resource, "create patch")));
    allow(env, &rules).await?;
    be_restricted(env, &[])?;
    env.start(&["app-service"]).await?;
    env.namespace.apply(app("web")).await?;
    let event = env.event("AppService", "web", "StatusForbidden").await?;
    ensure!(event["message"].to_string().contains("appservices/status"), "it does not say what is denied: {event}");
    env.host.logged("StatusForbidden").await?;
    let web = env.namespace.get("AppService", "web").await?.context("the object is gone")?;
    ensure!(web.get("status").is_none(), "somebody wrote a status: {web}");
    rules.push(rule("apps.example.com", "appservices/status", "patch"));
    allow(env, &rules).await?;
    env.at_rest("web").await
}

/// The host may not read Deployments. It does not know which ones exist, so it must not decide anything.
async fn a_denied_watch_is_reported_and_nothing_is_decided(env: &mut TestEnv) -> Result<()> {
    let mut rules =
        vec![rule("apps.example.com", "*", "*"), rule("", "*", "*"), rule("apps", "deployments", "create patch")];
    allow(env, &rules).await?;
    be_restricted(env, &[])?;
    env.install("app-service")?;
    env.host.resume().await?;
    env.namespace.apply(app("web")).await?;
    let object = env.stalled("AppService", "web", "ChildrenUnknown").await?;
    let message = condition(&object, "Stalled")["message"].to_string();
    ensure!(message.contains("deployments.apps"), "it does not say what is denied: {message}");
    let (code, body) = env.host.get("health", "/readyz").await?;
    ensure!(code == 503 && body.contains("Deployment"), "/readyz says {code} {body}");
    ensure!(env.namespace.list("Service").await?.is_empty(), "a child was created without knowing the others");
    rules.push(rule("apps", "deployments", "get list watch"));
    allow(env, &rules).await?;
    env.at_rest("web").await?;
    eventually(PATIENCE, "the host to be ready", async || {
        let (code, body) = env.host.get("health", "/readyz").await?;
        Ok(Look::of(code == 200, body))
    })
    .await
}

/// The record of kinds, which tells later which children to prune, is written before the first child.
async fn without_its_record_of_kinds_the_host_makes_no_child(env: &mut TestEnv) -> Result<()> {
    let mut rules = vec![
        rule("apps.example.com", "*", "*"),
        rule("apps", "*", "*"),
        rule("", "services", "*"),
        rule("", "events", "*"),
    ];
    allow(env, &rules).await?;
    be_restricted(env, &[])?;
    env.install("app-service")?;
    env.host.resume().await?;
    env.namespace.apply(app("web")).await?;
    eventually(PATIENCE, "the host to say what it may not do", async || {
        let (code, body) = env.host.get("health", "/readyz").await?;
        Ok(Look::of(code == 503 && body.contains("'pilothouse-kinds'") && body.contains("configmaps"), body))
    })
    .await?;
    ensure!(env.namespace.list("Service").await?.is_empty(), "a child was created without a record of its kind");
    rules.push(rule("", "configmaps", "get create patch"));
    allow(env, &rules).await?;
    env.at_rest("web").await?;
    let record = env.namespace.get("ConfigMap", "pilothouse-kinds").await?.context("there is no record")?;
    let kinds = &record["data"][format!("{}_AppService.apps.example.com", env.namespace.name)];
    ensure!(*kinds == "apps/v1 Deployment\nv1 Service\n", "{record}");
    Ok(())
}

/// Sets the host up as a user with only those rights that the test grants, and with the test's namespace as its own.
pub fn be_restricted(env: &mut TestEnv, arguments: &[&str]) -> Result<()> {
    let kubeconfig = env.cluster.plane.kubeconfig_for(RESTRICTED)?;
    let own = env.namespace.name.clone();
    env.set_up_host(|setup| {
        setup.kubeconfig = kubeconfig;
        setup.arguments = arguments.iter().map(ToString::to_string).collect();
        setup.arguments.extend(["--host-namespace".to_owned(), own]);
    })
}

/// The API server lets nobody give rights that he does not have, which is no policy of somebody's: a right helps, and it is named.
async fn rights_that_nobody_has_to_give_are_named(env: &mut TestEnv) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let mut rules =
        vec![rule("*", "*", "get list watch"), rule("test.pilothouse.dev", "*", "*"), rule(group, "*", "create patch")];
    rules.extend(["events", "configmaps"].map(|resource| rule("", resource, "create patch")));
    allow(env, &rules).await?;
    be_restricted(env, &[])?;
    let granted = json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["delete"]}]);
    let role =
        json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": "web"}, "rules": granted});
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": "web"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "somebody"}],
    });
    // With these children alone: the guest itself may have some that are in no namespace.
    let kinds = ["Role", "RoleBinding"].map(|kind| json!({"apiVersion": format!("{group}/v1"), "kind": kind}));
    let narrowed = |manifest: &mut Value| (manifest["children"], manifest["lookups"]) = (json!(kinds), json!([]));
    let packed = repacked(&artifacts::guest("scripted")?, narrowed).await?;
    env.host.install(packed.path(), "scripted.wasm")?;
    env.host.resume().await?;
    env.host.ready().await?;
    for (name, child, lacking) in [("role", &role, r#"Resources:["deployments"]"#), ("binding", &binding, "Verbs:")] {
        env.namespace.apply(scripted(name, returning([child.clone()]))).await?;
        let object = env.stalled("Scripted", name, "Forbidden").await?;
        let message = condition(&object, "Ready")["message"].as_str().unwrap_or_default().to_owned();
        let words = ["it would give rights that the account which writes it does not have", "`escalate`", lacking];
        ensure!(words.iter().all(|words| message.contains(words)) && !message.contains('\n'), "{message}");
    }
    rules.extend([rule("apps", "deployments", "delete")]);
    allow(env, &rules).await?;
    env.namespace.until("Role", "web", "to be made", |_| true).await?;
    env.namespace.until("Scripted", "role", "to be ready", is_ready).await.map(drop)
}

/// Grants the restricted user exactly these rights in the test's namespace.
pub async fn allow(env: &TestEnv, rules: &[PolicyRule]) -> Result<()> {
    let (client, namespace) = (env.namespace.client(), &*env.namespace.name);
    let apply = PatchParams::apply("tests").force();
    let meta = json!({"name": "host", "namespace": namespace});
    let (group, version) = ("rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1");
    let role = json!({"apiVersion": version, "kind": "Role", "metadata": meta, "rules": rules});
    Api::<Role>::namespaced(client.clone(), namespace).patch("host", &apply, &Patch::Apply(role)).await?;
    let binding = json!({
        "apiVersion": version, "kind": "RoleBinding", "metadata": meta,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "host"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": RESTRICTED}],
    });
    Api::<RoleBinding>::namespaced(client, namespace).patch("host", &apply, &Patch::Apply(binding)).await?;
    Ok(())
}

pub fn rule(group: &str, resources: &str, verbs: &str) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resources.to_owned()]),
        verbs: verbs.split(' ').map(str::to_owned).collect(),
        ..PolicyRule::default()
    }
}
