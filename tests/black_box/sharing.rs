//! Hosts that share the work by plugin: counts even out, one that fails is followed by the others, and nothing is written twice. Writes are
//! counted in the API server's audit log, where each host has its own user.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use pilothouse_control_plane::signal::Signal;
use pilothouse_tests::{
    artifacts,
    cluster::{HOST_USER, PATIENCE, SECOND_HOST_USER, THIRD_HOST_USER, condition},
    host::{Host, Setup},
    metrics::Samples,
    wait::{Look, eventually},
};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::{
    command::repacked,
    plugin_objects::{plugin, plugin_object, scripted_version, store, works},
    suite::{Suite, tests},
    test_env::{TestEnv, is_ready},
};

/// Durations by which a Lease does not run out within a test.
const LONG: [&str; 3] = ["10m", "5m", "500ms"];

/// Durations by which it soon does, and can still be renewed in time on a slow machine.
const SHORT: [&str; 3] = ["6s", "5s", "500ms"];

/// Those that hosts have.
const DEFAULT: [&str; 3] = ["15s", "10s", "2s"];

/// The users of the hosts.
const USERS: [&str; 3] = [HOST_USER, SECOND_HOST_USER, THIRD_HOST_USER];

/// How many plugins there are.
const PLUGINS: usize = 9;

/// How long a takeover may take.
const TAKEOVER: Duration = Duration::from_secs(20);

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        hosts_that_join_get_their_shares_and_none_writes_twice,
        the_plugins_of_a_killed_host_are_taken_over_within_twenty_seconds,
        a_host_that_is_asked_to_end_hands_its_plugins_over,
        a_host_that_was_stopped_writes_for_none_of_its_plugins,
        one_host_for_all_waits_for_hosts_that_share_and_they_for_it,
        leases_of_plugins_are_not_written_at_rest,
        the_host_that_works_for_a_plugin_tells_its_status,
    );
}

/// Several small plugins, each for a kind of its own.
struct Small {
    group: String,
    plugins: Vec<NamedTempFile>,
}

impl Small {
    /// Installs the kinds, and packs the plugins.
    async fn new(env: &TestEnv) -> Result<Self> {
        // CRDs belong to the whole cluster, so the group is the test's own.
        let group = format!("{}.pilothouse.dev", env.namespace.name);
        let text = std::fs::read_to_string(artifacts::repository().join("tests/guests/misbehaver/crd.yaml"))?;
        let crd: Value = serde_saphyr::from_str(&text)?;
        let (guest, mut plugins) = (artifacts::guest("misbehaver")?, Vec::new());
        for number in 0..PLUGINS {
            let mut crd = crd.clone();
            let (kind, plural) = (kind(number), plural(number));
            crd["metadata"]["name"] = json!(format!("{plural}.{group}"));
            crd["spec"]["group"] = json!(group);
            crd["spec"]["names"] = json!({"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()});
            env.namespace.apply(crd).await?;
            let plugin = repacked(&guest, |manifest| {
                manifest["name"] = json!(format!("small-{number}"));
                manifest["reconciles"] = json!({"apiVersion": format!("{group}/v1"), "kind": kind});
            });
            plugins.push(plugin.await?);
        }
        Ok(Self { group, plugins })
    }

    fn api(&self, env: &TestEnv, number: usize) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: self.group.clone(),
            version: "v1".to_owned(),
            api_version: format!("{}/v1", self.group),
            kind: kind(number),
            plural: plural(number),
        };
        Api::namespaced_with(env.namespace.client(), &env.namespace.name, &resource)
    }

    /// Installs the plugins in a host.
    fn install(&self, host: &Host) -> Result<()> {
        let mut numbered = self.plugins.iter().enumerate();
        numbered.try_for_each(|(number, plugin)| host.install(plugin.path(), &format!("small-{number}.wasm")))
    }

    /// Creates an object of each kind whose name begins like this, and returns the names.
    async fn create(&self, env: &TestEnv, begin: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for number in 0..PLUGINS {
            let name = format!("{begin}-{number}");
            let object = json!({
                "apiVersion": format!("{}/v1", self.group), "kind": kind(number), "metadata": {"name": name},
                "spec": {"act": "several", "number": 2},
            });
            self.api(env, number).patch(&name, &PatchParams::apply("user"), &Patch::Apply(object)).await?;
            names.push(name);
        }
        Ok(names)
    }

    /// Waits until the objects with these names are ready.
    async fn reconciled(&self, env: &TestEnv, names: &[String]) -> Result<()> {
        for (number, name) in names.iter().enumerate() {
            let api = self.api(env, number);
            eventually(PATIENCE, &format!("{name} to be ready"), async || {
                let object = serde_json::to_value(api.get(name).await?)?;
                let ready = condition(&object, "Ready").clone();
                Ok(Look::of(ready["status"] == "True", ready))
            })
            .await?;
        }
        Ok(())
    }
}

fn kind(number: usize) -> String {
    format!("Small{number}")
}

fn plural(number: usize) -> String {
    format!("small{number}s")
}

/// One host has all, a second and a third one join and get their shares; meanwhile objects are created.
async fn hosts_that_join_get_their_shares_and_none_writes_twice(env: &mut TestEnv) -> Result<()> {
    let small = Small::new(env).await?;
    let first = sharing(env, &small, 0, DEFAULT).await?;
    until_shared(env, &[9]).await?;
    let mut names = small.create(env, "first").await?;
    let second = sharing(env, &small, 1, DEFAULT).await?;
    names.extend(small.create(env, "second").await?);
    until_shared(env, &[4, 5]).await?;
    let third = sharing(env, &small, 2, DEFAULT).await?;
    names.extend(small.create(env, "third").await?);
    until_shared(env, &[3, 3, 3]).await?;
    names.extend(small.create(env, "fourth").await?);
    for names in names.chunks(PLUGINS) {
        small.reconciled(env, names).await?;
    }
    for host in [&first, &second, &third] {
        ensure!(host.get("health", "/readyz").await?.0 == 200, "a host is not ready");
        let held = held_by(host).await?;
        ensure!(held.len() == 3, "a host tells of other Leases: {held:?}");
    }
    written_once(env, &names).await?;
    for user in USERS {
        ensure!(!work_of(env, user).await?.is_empty(), "{user} had nothing to do");
    }
    Ok(())
}

async fn the_plugins_of_a_killed_host_are_taken_over_within_twenty_seconds(env: &mut TestEnv) -> Result<()> {
    let small = Small::new(env).await?;
    let mut hosts = three(env, &small, DEFAULT).await?;
    let mut names = small.create(env, "before").await?;
    small.reconciled(env, &names).await?;
    let mut dead = hosts.pop().context("no host")?;
    let killed = Instant::now();
    dead.kill().await?;
    let during = small.create(env, "during").await?;
    until_shared(env, &[4, 5]).await?;
    let taken = killed.elapsed();
    small.reconciled(env, &during).await?;
    ensure!(taken <= TAKEOVER, "the plugins were taken over after {taken:?}");
    names.extend(during);
    written_once(env, &names).await
}

/// The Leases last for minutes, so the others can only have them because they were given up.
async fn a_host_that_is_asked_to_end_hands_its_plugins_over(env: &mut TestEnv) -> Result<()> {
    let small = Small::new(env).await?;
    let mut hosts = three(env, &small, LONG).await?;
    let mut names = small.create(env, "before").await?;
    let mut leaving = hosts.pop().context("no host")?;
    leaving.signal(Signal::Terminate)?;
    names.extend(small.create(env, "during").await?);
    ensure!(leaving.ended().await? == Some(0), "it did not end well");
    until_shared(env, &[4, 5]).await?;
    for names in names.chunks(PLUGINS) {
        small.reconciled(env, names).await?;
    }
    written_once(env, &names).await
}

/// The host is suspended for longer than its Lease. When it continues, it has work to do and must not do it.
async fn a_host_that_was_stopped_writes_for_none_of_its_plugins(env: &mut TestEnv) -> Result<()> {
    let small = Small::new(env).await?;
    let mut hosts = three(env, &small, SHORT).await?;
    let mut names = small.create(env, "before").await?;
    small.reconciled(env, &names).await?;
    let mut stopped = hosts.pop().context("no host")?;
    let written = work_of(env, THIRD_HOST_USER).await?;
    stopped.freeze().await?;
    let during = small.create(env, "during").await?;
    until_shared(env, &[4, 5]).await?;
    stopped.signal(Signal::Continue)?;
    ensure!(stopped.ended().await? == Some(1), "it goes on");
    ensure!(stopped.log().contains("lost the Lease"), "it does not say why");
    small.reconciled(env, &during).await?;
    let now = work_of(env, THIRD_HOST_USER).await?;
    ensure!(now == written, "it wrote {:#?}", &now[written.len()..]);
    names.extend(during);
    written_once(env, &names).await
}

/// As when the mode is changed in a roll-out: both ways, the old hosts end first.
async fn one_host_for_all_waits_for_hosts_that_share_and_they_for_it(env: &mut TestEnv) -> Result<()> {
    let small = Small::new(env).await?;
    let mut one = start(env, &small, 0, "--leader-elect", LONG).await?;
    one.logged("this host leads").await?;
    let mut names = small.create(env, "one").await?;
    let mut several = sharing(env, &small, 1, SHORT).await?;
    several.logged("works for all plugins").await?;
    small.reconciled(env, &names).await?;
    ensure!(work_of(env, SECOND_HOST_USER).await?.is_empty(), "both write");
    one.stop().await?;
    until_shared(env, &[9]).await?;
    let mut other = sharing(env, &small, 0, SHORT).await?;
    until_shared(env, &[4, 5]).await?;
    names.extend(small.create(env, "several").await?);
    small.reconciled(env, &names[PLUGINS..]).await?;
    let next = start(env, &small, 2, "--leader-elect", SHORT).await?;
    next.logged("standing by").await?;
    // The host that leads loses its Lease, as if it had failed. The one that stands still cannot take it.
    other.freeze().await?;
    let gone = json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 1}});
    env.namespace.patch("Lease", "pilothouse", gone).await?;
    ensure!(several.ended().await? == Some(1), "the host that led goes on");
    next.logged("waits for the end of hosts that share").await?;
    other.signal(Signal::Continue)?;
    ensure!(other.ended().await? == Some(1), "the other host goes on");
    // Which of both is seen first depends on for how long it stood still.
    let why = ["another host works for all plugins", "it was not renewed within"];
    ensure!(why.iter().any(|why| other.log().contains(why)), "it does not say why: {}", other.log());
    next.logged("this host leads").await?;
    names.extend(small.create(env, "next").await?);
    small.reconciled(env, &names[2 * PLUGINS..]).await?;
    written_once(env, &names).await
}

/// However many plugins there are: hosts renew one Lease each, and that of the host that leads.
async fn leases_of_plugins_are_not_written_at_rest(env: &mut TestEnv) -> Result<()> {
    let small = Small::new(env).await?;
    let hosts = three(env, &small, DEFAULT).await?;
    let mut before = Vec::new();
    for user in USERS {
        before.push(env.writes_of(user).await?.len());
    }
    until_renewed(env, 10).await?;
    let is_of_plugin = |write: &String| write.contains(" leases/ pilothouse.kind.");
    for (user, before) in USERS.into_iter().zip(before) {
        let since = env.writes_of(user).await?.split_off(before);
        let of_plugins: Vec<_> = since.iter().filter(|write| is_of_plugin(write)).collect();
        ensure!(of_plugins.is_empty(), "Leases of plugins were written by {user}: {of_plugins:#?}");
    }
    drop(hosts);
    Ok(())
}

/// `Plugin`s belong to the whole cluster, so two hosts tell of them: each of those that it works for, and the one that leads of those that nobody
/// works for.
async fn the_host_that_works_for_a_plugin_tells_its_status(env: &mut TestEnv) -> Result<()> {
    let crds = [
        "crds/plugins.pilothouse.dev.yaml",
        "crds/appservices.apps.example.com.yaml",
        "tests/guests/scripted/crd.yaml",
    ];
    env.move_to_api_server_with(&crds).await?;
    let mut hosts = Vec::new();
    for number in 0..2 {
        let mut setup = setup(env, number, "--leader-elect=per-plugin", SHORT)?;
        setup.arguments.push("--plugin-objects".to_owned());
        let mut host = Host::prepare(setup)?;
        host.resume().await?;
        host.ready().await?;
        hosts.push(host);
    }
    for (name, component) in [("web", plugin()?), ("scripted", scripted_version("0.1.0").await?)] {
        store(env, name, &[&component]).await?;
        env.namespace.apply(plugin_object(name, json!({"source": {"configMap": {"name": name}}}))).await?;
        env.namespace.until("Plugin", name, "to be ready", is_ready).await?;
    }
    let broken = json!({"source": {"configMap": {"name": "none"}}});
    env.namespace.apply(plugin_object("broken", broken)).await?;
    let is_told = |object: &Value| condition(object, "Loaded")["status"] == "False";
    env.namespace.until("Plugin", "broken", "to be told of", is_told).await?;
    until_shared(env, &[1, 1]).await?;
    works(env, "before").await?;
    let counts = |total: u64| move |object: &Value| object["status"]["objects"]["total"] == total;
    env.namespace.until("Plugin", "web", "to count one object", counts(1)).await?;
    // Nobody writes over what the other one has said.
    let before = env.namespace.list("Plugin").await?;
    until_renewed(env, 20).await?;
    let after = env.namespace.list("Plugin").await?;
    let revisions =
        |all: &[Value]| all.iter().map(|object| object["metadata"]["resourceVersion"].clone()).collect::<Vec<_>>();
    ensure!(revisions(&before) == revisions(&after), "a status is written at rest: {before:#?} {after:#?}");
    let web = "pilothouse.kind.appservice.apps.example.com";
    let works_for_web = match held_by(&hosts[0]).await?.contains(web) {
        true => &mut hosts[0],
        false => &mut hosts[1],
    };
    ensure!(held_by(works_for_web).await?.contains(web), "nobody works for it");
    works_for_web.kill().await?;
    works(env, "after").await?;
    env.namespace.until("Plugin", "web", "to count two objects", counts(2)).await?;
    until_shared(env, &[2]).await
}

/// The Leases of plugins that a host says it has.
async fn held_by(host: &Host) -> Result<BTreeSet<String>> {
    let samples = Samples::parse(&host.metrics().await?)?;
    let held = samples.matching("leader_election_master_status", &[]).filter(|sample| sample.value == 1.0);
    let names = held.filter_map(|sample| sample.label("name").map(str::to_owned));
    Ok(names.filter(|name| name.starts_with("pilothouse.kind.")).collect())
}

/// Waits until hosts have renewed their Leases so many times.
async fn until_renewed(env: &TestEnv, times: usize) -> Result<()> {
    let renewals = async || {
        let mut count = 0;
        for user in USERS {
            let writes = env.writes_of(user).await?;
            count += writes.iter().filter(|write| write.starts_with("update leases/ pilothouse.host.")).count();
        }
        Ok::<_, anyhow::Error>(count)
    };
    let before = renewals().await?;
    eventually(PATIENCE, &format!("{times} renewals of hosts' Leases"), async || {
        let count = renewals().await? - before;
        Ok(Look::of(count >= times, count))
    })
    .await
}

/// Three hosts that have three plugins each.
async fn three(env: &TestEnv, small: &Small, durations: [&str; 3]) -> Result<Vec<Host>> {
    let mut hosts = Vec::new();
    for number in 0..USERS.len() {
        hosts.push(sharing(env, small, number, durations).await?);
    }
    until_shared(env, &[3, 3, 3]).await?;
    Ok(hosts)
}

/// Starts a host that shares the work, with a user of its own.
async fn sharing(env: &TestEnv, small: &Small, number: usize, durations: [&str; 3]) -> Result<Host> {
    start(env, small, number, "--leader-elect=per-plugin", durations).await
}

async fn start(env: &TestEnv, small: &Small, number: usize, mode: &str, durations: [&str; 3]) -> Result<Host> {
    let mut host = Host::prepare(setup(env, number, mode, durations)?)?;
    small.install(&host)?;
    host.resume().await?;
    host.ready().await?;
    Ok(host)
}

fn setup(env: &TestEnv, number: usize, mode: &str, durations: [&str; 3]) -> Result<Setup> {
    let mut setup = env.namespace.setup();
    setup.kubeconfig = env.cluster.plane.kubeconfig_for(USERS[number])?;
    let [duration, renew_deadline, retry_period] = durations;
    setup.arguments = vec![
        mode.to_owned(),
        format!("--leader-elect-lease-duration={duration}"),
        format!("--leader-elect-renew-deadline={renew_deadline}"),
        format!("--leader-elect-retry-period={retry_period}"),
        format!("--host-namespace={}", env.namespace.name),
    ];
    Ok(setup)
}

/// Waits until hosts that are alive have so many Leases of plugins each, from the fewest to the most.
async fn until_shared(env: &TestEnv, counts: &[usize]) -> Result<()> {
    eventually(3 * PATIENCE, &format!("shares of {counts:?}"), async || {
        let leases = env.namespace.list("Lease").await?;
        let named = |begin: &str| leases.iter().filter(move |lease| is_named(lease, begin)).collect::<Vec<_>>();
        let holder = |lease: &&Value| lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        let alive: BTreeSet<_> = named("pilothouse.host.").iter().map(holder).collect();
        let mut shares = BTreeMap::<_, usize>::new();
        for holder in named("pilothouse.kind.").iter().map(holder).filter(|holder| alive.contains(holder)) {
            *shares.entry(holder).or_default() += 1;
        }
        let mut shares: Vec<_> = shares.into_values().collect();
        shares.sort_unstable();
        Ok(Look::of(shares == counts, shares))
    })
    .await
}

fn is_named(lease: &Value, begin: &str) -> bool {
    lease["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(begin))
}

/// The writes of a host for objects, without Leases and its record of kinds.
async fn work_of(env: &TestEnv, user: &str) -> Result<Vec<String>> {
    let own = |write: &String| write.contains(" leases/ ") || write.contains(" pilothouse-kinds ");
    Ok(env.writes_of(user).await?.into_iter().filter(|write| !own(write)).collect())
}

/// Checks that all hosts together wrote each object's two children and its status once, and nothing else.
async fn written_once(env: &TestEnv, names: &[String]) -> Result<()> {
    let mut writes = Vec::new();
    for user in USERS {
        writes.extend(work_of(env, user).await?);
    }
    for name in names {
        for target in [format!("configmaps/ {name}-0 "), format!("configmaps/ {name}-1 "), format!("s/status {name} ")]
        {
            let count = writes.iter().filter(|write| write.contains(&target)).count();
            ensure!(count == 1, "{count} writes of {target}: {writes:#?}");
        }
    }
    ensure!(writes.len() == 3 * names.len(), "other writes too: {writes:#?}");
    Ok(())
}
