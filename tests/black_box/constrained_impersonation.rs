//! What the host may do in the name of a plugin's account, on an API server that constrains impersonation, with what `pilothouse install` gives
//! it. Each request is a real one, with the token of the host's account.

use anyhow::{Context, Result, ensure};
use http::{Method, Request};
use kube::Client;
use pilothouse_control_plane::Assets;
use pilothouse_tests::{
    artifacts,
    cluster::{Cluster, PATIENCE, condition},
    thoroughness::Thoroughness,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    chart, decorators,
    deployed::{self, Deployed},
    plugin_accounts::{self, HOST, another_namespace, client, command, confine, deploy, install},
    plugin_objects::text,
    suite::{Suite, heavy_with},
    test_env::{TestEnv, app},
};

/// The account that `install` makes for the plugin app-service.
const ACCOUNT: &str = "pilothouse-plugin-app-service";

/// The arguments by which `install` says that the host may act as the account for all that that may do.
const UNCONSTRAINED: &[&str] = &["--impersonation", "unconstrained"];

pub fn register(suite: &mut Suite) {
    heavy_with!(
        suite,
        needed(),
        every_reference_plugin_works_with_what_it_needs,
        a_decorator_works_with_what_it_needs,
        what_is_taken_is_read_and_what_is_left_over_is_deleted,
        accounts_of_the_objects_namespaces_work,
        what_accounts_may_look_up_is_asked,
        the_host_acts_as_the_account_for_nothing_but_what_the_plugin_needs,
        in_one_namespace_the_host_acts_as_the_account_there_alone,
        what_an_api_server_does_not_constrain_is_told_mended_and_kept,
        a_plugin_of_the_chart_works_with_what_it_needs,
        nothing_is_left_of_the_rights_after_an_uninstallation,
    );
}

/// The API server takes minutes to build. Where nobody has asked for that, its tests are left out.
fn needed() -> Result<()> {
    let is_asked_for = Assets::has_newer_api_server() || Thoroughness::of_run() == Thoroughness::All;
    ensure!(is_asked_for, "the newer API server is not built; see make constrained-impersonation");
    Ok(())
}

/// Children, lookups, and what is between plugins.
async fn every_reference_plugin_works_with_what_it_needs(env: &mut TestEnv) -> Result<()> {
    env.on_newer_api_servers();
    plugin_accounts::every_reference_plugin_is_installed_with_what_it_needs(env).await?;
    let log = std::fs::read_to_string(env.cluster.plane.audit_log_path())?;
    let mut constrained = 0;
    for line in log.lines().filter(|line| line.contains("impersonatedUser")) {
        let entry: Value = serde_json::from_str(line)?;
        let how = &entry["authenticationMetadata"]["impersonationConstraint"];
        ensure!(how == "impersonate:serviceaccount", "the old rule let it: {entry}");
        constrained += 1;
    }
    ensure!(constrained > 0, "nothing was done in the name of an account");
    Ok(())
}

async fn a_decorator_works_with_what_it_needs(env: &mut TestEnv) -> Result<()> {
    env.on_newer_api_servers();
    decorators::a_namespace_gets_children_labels_and_annotations_from_an_account_of_the_decorator(env).await
}

/// Somebody else's child is read in the account's name to see whose it is; one that is not returned any more is deleted in it.
async fn what_is_taken_is_read_and_what_is_left_over_is_deleted(env: &mut TestEnv) -> Result<()> {
    env.on_newer_api_servers();
    decorators::two_decorators_of_one_kind_do_not_disturb_each_other(env).await
}

async fn accounts_of_the_objects_namespaces_work(env: &mut TestEnv) -> Result<()> {
    env.on_newer_api_servers();
    plugin_accounts::an_object_gets_what_its_own_namespace_allows(env).await
}

async fn what_accounts_may_look_up_is_asked(env: &mut TestEnv) -> Result<()> {
    env.on_newer_api_servers();
    plugin_accounts::a_lookup_that_the_account_may_not_make_is_denied(env).await
}

/// The account may do everything here, so that what is refused is refused to the host. The old rule, which `install` writes on demand, shows
/// that it would not be otherwise.
async fn the_host_acts_as_the_account_for_nothing_but_what_the_plugin_needs(env: &mut TestEnv) -> Result<()> {
    let host = ActingHost::start(env, &[]).await?;
    install(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    let own = env.namespace.name.clone();
    let account = deployed::user(&own, ACCOUNT);
    make_almighty(env, &account).await?;
    let whom = [("impersonate-user", &*account)];

    let (deployments, core) =
        (format!("/apis/apps/v1/namespaces/{own}/deployments"), format!("/api/v1/namespaces/{own}"));
    let applied = format!("{deployments}/made?fieldManager=tests&force=true");
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let may_all = review("*");
    eventually(PATIENCE, "the account to be almighty", async || {
        let answer = host.asks(&whom, Method::POST, reviews, &may_all).await?;
        Ok(Look::of(answer.1.contains(r#""allowed":true"#), answer))
    })
    .await?;
    for (method, path, body, code) in [
        (Method::PATCH, applied.clone(), deployment(), 201),
        (Method::GET, format!("{deployments}/made"), Value::Null, 200),
        (Method::GET, format!("{core}/services/none"), Value::Null, 404),
        (Method::POST, reviews.to_owned(), review("pods"), 201),
        (Method::DELETE, format!("{deployments}/made"), Value::Null, 200),
    ] {
        let answer = host.asks(&whom, method.clone(), &path, &body).await?;
        ensure!(answer.0 == code, "{method} {path}: {answer:?}");
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "made"}});
    let access = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    for (method, path, body) in [
        (Method::GET, deployments.clone(), Value::Null),
        (Method::GET, format!("{deployments}?watch=true"), Value::Null),
        (Method::POST, deployments.clone(), deployment()),
        (Method::PUT, format!("{deployments}/made"), deployment()),
        (Method::DELETE, deployments.clone(), Value::Null),
        (Method::PATCH, format!("{deployments}/made/scale"), json!({"spec": {"replicas": 0}})),
        (Method::PATCH, format!("{deployments}/made/status"), json!({})),
        (Method::GET, format!("{core}/secrets/made"), Value::Null),
        (Method::POST, format!("{core}/secrets"), secret),
        (Method::PATCH, format!("{core}/configmaps/made"), json!({})),
        (Method::GET, format!("{core}/pods"), Value::Null),
        (Method::POST, format!("{core}/serviceaccounts/{ACCOUNT}/token"), json!({})),
        (Method::GET, format!("/apis/apps.example.com/v1/namespaces/{own}/appservices/shop"), Value::Null),
        (Method::DELETE, format!("/api/v1/namespaces/{own}"), Value::Null),
        (Method::GET, "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(), Value::Null),
        (Method::POST, access.to_owned(), review("pods")),
        (Method::GET, "/metrics".to_owned(), Value::Null),
    ] {
        host.is_refused(&whom, method, &path, &body).await?;
    }
    for whom in [
        vec![("impersonate-user", &*deployed::user(&own, "default"))],
        vec![("impersonate-user", &*deployed::user(&own, HOST))],
        vec![("impersonate-user", &*deployed::user("kube-system", ACCOUNT))],
        vec![("impersonate-user", "admin")],
        vec![("impersonate-user", "admin"), ("impersonate-group", "system:masters")],
        vec![("impersonate-user", "system:node:any")],
        vec![("impersonate-user", &account), ("impersonate-group", "system:masters")],
        vec![("impersonate-user", &account), ("impersonate-uid", "1")],
        vec![("impersonate-user", &account), ("impersonate-extra-scopes", "all")],
    ] {
        host.is_refused(&whom, Method::GET, &format!("{deployments}/made"), &Value::Null).await?;
    }

    let pods = format!("{core}/pods");
    let answers = async |code: u16| {
        eventually(PATIENCE, "the rule to be another one", async || {
            let answer = host.asks(&whom, Method::GET, &pods, &Value::Null).await?;
            Ok(Look::of(answer.0 == code, answer))
        })
        .await
    };
    install(env, &artifacts::plugin("app-service")?, UNCONSTRAINED).await?.succeeded()?;
    answers(200).await?;
    install(env, &artifacts::plugin("app-service")?, &["--impersonation", "auto"]).await?.succeeded()?;
    answers(403).await
}

async fn in_one_namespace_the_host_acts_as_the_account_there_alone(env: &mut TestEnv) -> Result<()> {
    let host = ActingHost::start_in_own_namespace(env).await?;
    let own = env.namespace.name.clone();
    env.namespace.apply(app("shop")).await?;
    env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    let (account, theirs) = (deployed::user(&own, ACCOUNT), another_namespace(env).await?);
    make_almighty(env, &account).await?;
    let whom = [("impersonate-user", &*account)];
    let made = |namespace: &str| format!("/apis/apps/v1/namespaces/{namespace}/deployments/made?fieldManager=tests");
    let answer = host.asks(&whom, Method::PATCH, &made(&own), &deployment()).await?;
    ensure!(answer.0 == 201, "{answer:?}");
    host.is_refused(&whom, Method::PATCH, &made(&theirs), &deployment()).await?;
    host.is_refused(&whom, Method::GET, &made(&theirs), &Value::Null).await?;
    host.is_refused(&whom, Method::DELETE, &made(&theirs), &Value::Null).await
}

/// The version says that it does, and the feature gate is off.
async fn what_an_api_server_does_not_constrain_is_told_mended_and_kept(env: &mut TestEnv) -> Result<()> {
    let _host = ActingHost::start(env, &["--feature-gates=ConstrainedImpersonation=false"]).await?;
    install(env, &artifacts::plugin("app-service")?, &[]).await?.succeeded()?;
    env.namespace.apply(app("shop")).await?;
    let forbidden = |object: &Value| {
        let ready = condition(object, "Ready");
        ready["reason"] == "Forbidden" && text(&ready["message"]).contains("cannot impersonate")
    };
    env.namespace.until("AppService", "shop", "to say that the host may not", forbidden).await?;
    install(env, &artifacts::plugin("app-service")?, UNCONSTRAINED).await?.succeeded()?;
    env.namespace.until("Deployment", "shop", "to be there", |_| true).await?;
    // Whoever installs the next version need not know.
    for (arguments, expected) in [
        (&[][..], "impersonate"),
        (&["--impersonation", "auto"], "impersonate:serviceaccount"),
        (&[], "impersonate:serviceaccount"),
    ] {
        install(env, &artifacts::plugin("app-service")?, arguments).await?.succeeded()?;
        let verb = verb(env).await?;
        ensure!(verb == expected, "after {arguments:?}: {verb}");
    }
    Ok(())
}

/// Helm asks the cluster for its version, too.
async fn a_plugin_of_the_chart_works_with_what_it_needs(env: &mut TestEnv) -> Result<()> {
    env.on_newer_api_servers();
    chart::running::a_verb_taken_out_of_the_charts_rights_is_told_and_comes_back(env).await?;
    let verb = verb(env).await?;
    ensure!(verb == "impersonate:serviceaccount", "the chart gives the host {verb}");
    Ok(())
}

async fn nothing_is_left_of_the_rights_after_an_uninstallation(env: &mut TestEnv) -> Result<()> {
    let _host = ActingHost::start_in_own_namespace(env).await?;
    let rights = async || -> Result<Vec<String>> {
        let mut names = Vec::new();
        for kind in ["ClusterRole", "Role", "RoleBinding"] {
            let of_plugin = |it: &Value| it["metadata"]["labels"]["pilothouse.dev/component-of"] == "app-service";
            let found = env.namespace.list(kind).await?.into_iter().filter(of_plugin);
            names.extend(found.map(|it| format!("{kind} {}", text(&it["metadata"]["name"]))));
        }
        Ok(names)
    };
    let before = rights().await?;
    for name in ["requests", "requests.cluster-scoped"] {
        let role = format!("ClusterRole {ACCOUNT}.{name}");
        ensure!(before.contains(&role), "there is no {role}: {before:?}");
    }
    command(env, &["uninstall", "app-service", "--yes"]).await?.succeeded()?;
    let left = rights().await?;
    ensure!(left.is_empty(), "left: {left:?}");
    Ok(())
}

/// The verb by which the host may act as the account.
async fn verb(env: &TestEnv) -> Result<String> {
    let role = env.namespace.get("Role", &format!("{ACCOUNT}.impersonation")).await?.context("no role")?;
    Ok(text(&role["rules"][0]["verbs"][0]).to_owned())
}

/// The host's account, and a host that runs with its token.
struct ActingHost {
    deployed: Deployed,
    client: Client,
    user: String,
}

impl ActingHost {
    /// Moves to a newer API server with these arguments, and starts the host there.
    async fn start(env: &mut TestEnv, arguments: &[&str]) -> Result<Self> {
        env.move_to(Cluster::newer(arguments).await?).await?;
        let deployed = deploy(env).await?;
        let client = client(&deployed.kubeconfig()).await?;
        let user = deployed.user();
        Ok(Self { deployed, client, user })
    }

    /// The same with a host that has no rights but in the test's namespace, and the plugin app-service.
    async fn start_in_own_namespace(env: &mut TestEnv) -> Result<Self> {
        let host = Self::start(env, &[]).await?;
        let own = confine(env, &host.deployed).await?;
        install(env, &artifacts::plugin("app-service")?, &["--namespace", &own]).await?.succeeded()?;
        Ok(host)
    }

    /// The code and the words of the answer to a request that the host makes with these headers.
    async fn asks(&self, headers: &[(&str, &str)], method: Method, path: &str, body: &Value) -> Result<(u16, String)> {
        let kind = if path.contains("fieldManager") { "apply-patch+yaml" } else { "merge-patch+json" };
        let kind = if method == Method::PATCH { kind } else { "json" };
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("content-type", format!("application/{kind}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
        let answer = self.client.send(request.body(body.into())?).await?;
        let code = answer.status().as_u16();
        let words = answer.into_body().collect_bytes().await?;
        Ok((code, String::from_utf8_lossy(&words).into_owned()))
    }

    /// Whether it is the host that may not impersonate, and not the account that may not do it.
    async fn is_refused(&self, headers: &[(&str, &str)], method: Method, path: &str, body: &Value) -> Result<()> {
        let (code, words) = self.asks(headers, method.clone(), path, body).await?;
        let is_of_host = words.contains("impersonate") && words.contains(&self.user);
        ensure!(code == 403 && is_of_host, "{headers:?} {method} {path}: {code} {words}");
        Ok(())
    }
}

/// Gives an account all rights.
async fn make_almighty(env: &TestEnv, account: &str) -> Result<()> {
    let [_, _, namespace, name] = account.split(':').collect::<Vec<_>>()[..] else {
        return Err(anyhow::anyhow!("'{account}' is no account"));
    };
    let subject = json!({"kind": "ServiceAccount", "namespace": namespace, "name": name});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "almighty"},
        "roleRef": role, "subjects": [subject],
    });
    deployed::apply(env, &binding, &kube::api::PatchParams::apply("tests").force()).await
}

fn deployment() -> Value {
    let labels = json!({"app": "made"});
    let pod =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "example.com/made:1"}]}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "made"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
    })
}

/// What the host asks about lookups: whether the account may do everything with a resource.
fn review(resource: &str) -> Value {
    let attributes = json!({"verb": "*", "group": "*", "resource": resource});
    json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    })
}
