//! Leader election: one host works and the others stand by. The work moves to another host however the leader ends, and is never
//! done twice. Writes are counted in the API server's audit log, where each host has its own user.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use pilothouse_control_plane::{Part, signal::Signal};
use pilothouse_tests::{
    artifacts,
    cluster::{HOST_USER, PATIENCE, SECOND_HOST_USER, condition},
    host::Host,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    command::{pilothouse, repacked},
    suite::{Suite, tests},
    test_env::{TestEnv, at_rest, misbehaver},
};

/// A Lease that expires soon, but can still be renewed in time on a slow machine.
const SHORT: Lease = Lease { duration: "6s", renew_deadline: "5s", retry_period: "500ms" };

/// A Lease that does not expire within a test.
const LONG: Lease = Lease { duration: "10m", renew_deadline: "5m", retry_period: "500ms" };

/// The writes for one new object: two children and a status.
const WRITES: usize = 3;

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        only_the_leader_writes,
        a_newer_version_stands_by_and_takes_over,
        a_leader_that_is_asked_to_end_hands_over,
        a_killed_leader_is_followed_once_its_lease_ran_out,
        a_leader_that_was_stopped_does_not_write_again,
        a_leader_whose_lease_is_taken_ends,
        a_leader_without_an_api_server_ends,
        a_lease_that_somebody_touches_is_kept,
        durations_that_do_not_fit_are_refused,
    );
}

#[derive(Clone, Copy)]
struct Lease {
    duration: &'static str,
    renew_deadline: &'static str,
    retry_period: &'static str,
}

async fn only_the_leader_writes(env: &mut TestEnv) -> Result<()> {
    let mut second = two_hosts(env, LONG).await?;
    env.namespace.apply(object("one")).await?;
    reconciled(env, "one").await?;
    for (host, leads) in [(&env.host, 1.0), (&second, 0.0)] {
        ensure!(host.get("health", "/readyz").await?.0 == 200, "a host is not ready");
        let metrics = at_rest(host, PATIENCE).await?;
        let status = metrics.sum("leader_election_master_status", &[("name", "pilothouse")]);
        ensure!(status == leads, "a host says {status} of its leadership");
        let works = metrics.sum("controller_runtime_reconcile_total", &[]) > 0.0;
        ensure!(works == (leads == 1.0), "the wrong host reconciles");
    }
    written_once(env, &["one"]).await?;
    ensure!(
        work_of(env, SECOND_HOST_USER).await?.is_empty(),
        "the other host wrote {:?}",
        work_of(env, SECOND_HOST_USER).await?
    );
    second.stop().await
}

/// As in a rolling update: the new host has child kinds that the leader does not know. It is ready on standby, and records them
/// when it leads.
async fn a_newer_version_stands_by_and_takes_over(env: &mut TestEnv) -> Result<()> {
    let fewer = repacked(&artifacts::guest("misbehaver")?, |manifest| manifest["children"] = json!([])).await?;
    env.set_up_host(|setup| setup.arguments = arguments(&setup.namespace, LONG))?;
    env.host.install(fewer.path(), "misbehaver.wasm")?;
    env.start(&[]).await?;
    env.host.logged("this host leads").await?;
    let second = standing_by(env, LONG).await?;
    let early = env.writes_of(SECOND_HOST_USER).await?;
    ensure!(early.is_empty(), "the other host wrote {early:?}");
    env.host.stop().await?;
    env.namespace.apply(object("one")).await?;
    reconciled(env, "one").await?;
    ensure!(second.get("health", "/readyz").await?.0 == 200, "the new leader is not ready");
    written_once(env, &["one"]).await
}

/// The Lease lasts for minutes, so the other host can only lead because it was released.
async fn a_leader_that_is_asked_to_end_hands_over(env: &mut TestEnv) -> Result<()> {
    let second = two_hosts(env, LONG).await?;
    let names: Vec<_> = (0..20).map(|number| format!("object-{number}")).collect();
    let create = async |names: &[String]| {
        for name in names {
            env.namespace.apply(object(name)).await?;
        }
        Ok::<_, anyhow::Error>(())
    };
    let (before, during) = names.split_at(5);
    create(before).await?;
    // Created while the first host ends.
    env.host.signal(Signal::Terminate)?;
    create(during).await?;
    ensure!(env.host.ended().await? == Some(0), "the leader did not end well");
    env.host.logged("the Lease is given back").await?;
    second.logged("this host leads").await?;
    for name in &names {
        reconciled(env, name).await?;
    }
    written_once(env, &names).await?;
    let lease = lease(env).await?;
    ensure!(lease["leaseTransitions"] == 1, "the Lease counts other transitions: {lease}");
    ensure!(!work_of(env, SECOND_HOST_USER).await?.is_empty(), "the other host had nothing to do");
    Ok(())
}

async fn a_killed_leader_is_followed_once_its_lease_ran_out(env: &mut TestEnv) -> Result<()> {
    let second = two_hosts(env, SHORT).await?;
    env.namespace.apply(object("before")).await?;
    reconciled(env, "before").await?;
    env.host.kill().await?;
    let left = lease(env).await?;
    env.namespace.apply(object("after")).await?;
    second.logged("this host leads").await?;
    reconciled(env, "after").await?;
    written_once(env, &["before", "after"]).await?;
    let taken = lease(env).await?;
    let waited = time(&taken["acquireTime"])?.duration_since(time(&left["renewTime"])?);
    ensure!(waited.as_secs() >= 6, "the Lease was taken after {waited:?}");
    Ok(())
}

/// The leader is suspended for longer than its Lease. When it continues, it has work to do and must not do it.
async fn a_leader_that_was_stopped_does_not_write_again(env: &mut TestEnv) -> Result<()> {
    let second = two_hosts(env, SHORT).await?;
    env.namespace.apply(object("before")).await?;
    reconciled(env, "before").await?;
    let written = work_of(env, HOST_USER).await?;
    env.host.freeze().await?;
    env.namespace.apply(object("during")).await?;
    second.logged("this host leads").await?;
    env.namespace.apply(object("after")).await?;
    env.host.signal(Signal::Continue)?;
    ended_without_its_lease(env, "was not renewed within").await?;
    for name in ["during", "after"] {
        reconciled(env, name).await?;
    }
    let now = work_of(env, HOST_USER).await?;
    ensure!(now == written, "the old leader wrote {:#?}", &now[written.len()..]);
    written_once(env, &["before", "during", "after"]).await
}

async fn a_leader_whose_lease_is_taken_ends(env: &mut TestEnv) -> Result<()> {
    elected(env, LONG).await?;
    let taken = json!({"spec": {"holderIdentity": "somebody"}});
    env.namespace.patch("Lease", "pilothouse", taken).await?;
    ended_without_its_lease(env, "'somebody' holds it now").await
}

async fn a_leader_without_an_api_server_ends(env: &mut TestEnv) -> Result<()> {
    env.move_to_api_server_with(&["tests/guests/misbehaver/crd.yaml"]).await?;
    elected(env, SHORT).await?;
    env.cluster.plane.stop_part(Part::ApiServer).await?;
    ended_without_its_lease(env, "was not renewed within").await
}

/// After somebody else's write, the next renewal is a conflict. The leader reads the Lease and goes on.
async fn a_lease_that_somebody_touches_is_kept(env: &mut TestEnv) -> Result<()> {
    elected(env, LONG).await?;
    env.touch("Lease", "pilothouse", "once").await?;
    eventually(PATIENCE, "a renewal on the slow path", async || {
        let slow = env.metrics().await?.sum("leader_election_slowpath_total", &[("name", "pilothouse")]);
        Ok(Look::of(slow == 1.0, slow))
    })
    .await?;
    env.namespace.apply(object("one")).await?;
    reconciled(env, "one").await?;
    let lease = lease(env).await?;
    ensure!(lease["leaseTransitions"] == 0, "the Lease counts transitions: {lease}");
    env.host.stop().await
}

async fn durations_that_do_not_fit_are_refused(env: &mut TestEnv) -> Result<()> {
    let unfit = Lease { duration: "5s", renew_deadline: "5s", retry_period: "1s" };
    let setup = env.namespace.setup();
    let paths =
        [("--plugins", &env.host.plugins()), ("--kubeconfig", &setup.kubeconfig), ("--cache-dir", &setup.cache)];
    let paths = paths.iter().flat_map(|(flag, path)| [(*flag).to_owned(), path.display().to_string()]);
    let all = ["run".to_owned()].into_iter().chain(paths).chain(arguments(&setup.namespace, unfit));
    pilothouse(all).await?.failed_with(&["shorter than the lease duration", "--leader-elect-renew-deadline"])
}

/// Starts the environment's host, which leads, and a second one, which stands by.
async fn two_hosts(env: &mut TestEnv, lease: Lease) -> Result<Host> {
    elected(env, lease).await?;
    standing_by(env, lease).await
}

/// Starts the environment's host and waits until it leads.
async fn elected(env: &mut TestEnv, lease: Lease) -> Result<()> {
    env.set_up_host(|setup| setup.arguments = arguments(&setup.namespace, lease))?;
    env.start(&["misbehaver"]).await?;
    env.host.logged("this host leads").await
}

/// Starts a second host with a user of its own.
async fn standing_by(env: &TestEnv, lease: Lease) -> Result<Host> {
    let mut setup = env.namespace.setup();
    setup.kubeconfig = env.cluster.plane.kubeconfig_for(SECOND_HOST_USER)?;
    setup.arguments = arguments(&setup.namespace, lease);
    let mut host = Host::prepare(setup)?;
    host.install(&artifacts::guest("misbehaver")?, "misbehaver.wasm")?;
    host.resume().await?;
    host.ready().await?;
    host.logged("standing by").await?;
    Ok(host)
}

fn arguments(namespace: &Option<String>, lease: Lease) -> Vec<String> {
    let Lease { duration, renew_deadline, retry_period } = lease;
    let mut arguments = vec![
        "--leader-elect".to_owned(),
        format!("--leader-elect-lease-duration={duration}"),
        format!("--leader-elect-renew-deadline={renew_deadline}"),
        format!("--leader-elect-retry-period={retry_period}"),
    ];
    arguments.extend(namespace.iter().map(|namespace| format!("--host-namespace={namespace}")));
    arguments
}

/// An object with two children.
fn object(name: &str) -> Value {
    let mut object = misbehaver(name, "several");
    object["spec"]["number"] = json!(2);
    object
}

async fn reconciled(env: &TestEnv, name: &str) -> Result<()> {
    let ready = |object: &Value| condition(object, "Ready")["status"] == "True";
    env.namespace.until("Misbehaver", name, "to be ready", ready).await?;
    Ok(())
}

/// The writes of a host for objects, without its Lease and its record of kinds.
async fn work_of(env: &TestEnv, user: &str) -> Result<Vec<String>> {
    let own = |write: &String| write.contains(" leases/ ") || write.contains(" pilothouse-kinds ");
    Ok(env.writes_of(user).await?.into_iter().filter(|write| !own(write)).collect())
}

/// Checks that both hosts together wrote each object's children and status once, and nothing else.
async fn written_once(env: &TestEnv, names: &[impl AsRef<str>]) -> Result<()> {
    let mut writes = work_of(env, HOST_USER).await?;
    writes.extend(work_of(env, SECOND_HOST_USER).await?);
    for name in names.iter().map(AsRef::as_ref) {
        for target in
            [format!("configmaps/ {name}-0 "), format!("configmaps/ {name}-1 "), format!("misbehavers/status {name} ")]
        {
            let count = writes.iter().filter(|write| write.contains(&target)).count();
            ensure!(count == 1, "{count} writes of {target}: {writes:#?}");
        }
    }
    ensure!(writes.len() == WRITES * names.len(), "other writes too: {writes:#?}");
    Ok(())
}

async fn lease(env: &TestEnv) -> Result<Value> {
    let lease = env.namespace.get("Lease", "pilothouse").await?.context("there is no Lease")?;
    Ok(lease["spec"].clone())
}

fn time(value: &Value) -> Result<Timestamp> {
    Ok(value.as_str().context("no time")?.parse()?)
}

async fn ended_without_its_lease(env: &mut TestEnv, why: &str) -> Result<()> {
    let code = env.host.ended().await?;
    ensure!(code == Some(1), "the leader ended with {code:?}");
    let log = env.host.log();
    ensure!(log.contains("lost the Lease") && log.contains(why), "it does not say why: {log}");
    Ok(())
}
