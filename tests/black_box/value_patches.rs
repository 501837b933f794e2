//! Changes of values alone, which the host writes as merge patches: what they leave alone, and what they must not leave behind.

use anyhow::{Context, Result, ensure};
use axum::http::{Method, StatusCode};
use pilothouse_tests::{
    cluster::PATIENCE,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use crate::{
    suite::{Suite, tests},
    test_env::{TestEnv, deployment, is_ready, misbehaver, returning, scripted},
};

pub fn register(suite: &mut Suite) {
    tests!(
        suite,
        a_change_of_values_is_a_patch_and_a_change_of_fields_an_apply,
        a_field_goes_whose_value_a_patch_had_changed,
        a_field_goes_whose_value_a_patch_had_changed_before_the_host_was_killed,
        what_others_added_to_a_keyed_list_stays_when_an_element_changes,
        a_field_that_goes_with_a_new_value_of_another_goes,
        a_mark_of_an_earlier_host_is_no_drift,
        what_was_written_before_its_schema_was_known_is_no_drift,
    );
}

/// Who wrote what is the API server's to say: a patch is an update of our field manager.
async fn a_change_of_values_is_a_patch_and_a_change_of_fields_an_apply(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    let created = with_data(env, json!({"key": "one"})).await?;
    ensure!(updated_by_us(&created).is_null(), "a child is created by an apply: {created}");
    let changed = with_data(env, json!({"key": "two"})).await?;
    ensure!(!updated_by_us(&changed)["f:data"]["f:key"].is_null(), "it was not patched: {changed}");
    let more = with_data(env, json!({"key": "two", "more": "one"})).await?;
    ensure!(updated_by_us(&more).is_null(), "what a patch owned is the applies' again: {more}");

    env.namespace.patch("ConfigMap", "child", json!({"data": {"more": "by hand"}})).await?;
    let is_repaired = |child: &Value| child["data"]["more"] == "one";
    let repaired = env.namespace.until("ConfigMap", "child", "to be repaired", is_repaired).await?;
    ensure!(!updated_by_us(&repaired)["f:data"]["f:more"].is_null(), "it was not repaired by a patch: {repaired}");
    Ok(())
}

/// What a patch owns stays when an apply no longer has it, unless somebody sees to it.
async fn a_field_goes_whose_value_a_patch_had_changed(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    with_data(env, json!({"kept": "one", "dropped": "one"})).await?;
    with_data(env, json!({"kept": "two", "dropped": "two"})).await?;
    env.namespace.patch("ConfigMap", "child", json!({"data": {"theirs": "yes"}})).await?;
    let child = with_data(env, json!({"kept": "two"})).await?;
    ensure!(child["data"] == json!({"kept": "two", "theirs": "yes"}), "{child}");
    Ok(())
}

async fn a_field_goes_whose_value_a_patch_had_changed_before_the_host_was_killed(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    with_data(env, json!({"kept": "one", "dropped": "one"})).await?;
    with_data(env, json!({"kept": "two", "dropped": "two"})).await?;
    env.host.kill().await?;
    env.namespace.apply(object(json!({"kept": "two"}))).await?;
    env.host.resume().await?;
    let is_gone = |child: &Value| child["data"] == json!({"kept": "two"});
    env.namespace.until("ConfigMap", "child", "to lose a field", is_gone).await?;
    Ok(())
}

/// A merge patch has a list in full: with what was there when it was planned, or the API server refuses it.
async fn what_others_added_to_a_keyed_list_stays_when_an_element_changes(env: &mut TestEnv) -> Result<()> {
    env.start(&["scripted"]).await?;
    let with_image = |image: &str| deployment("child", json!({"name": "child", "image": image}));
    returns(env, with_image("example.com/child:1")).await?;
    let sidecar = json!({"name": "sidecar", "image": "example.com/sidecar:1"});
    let both = json!([sidecar, {"name": "child", "image": "example.com/child:1", "tty": true}]);
    env.namespace.patch("Deployment", "child", json!({"spec": {"template": {"spec": {"containers": both}}}})).await?;
    let after = returns(env, with_image("example.com/child:2")).await?;
    let containers = &after["spec"]["template"]["spec"]["containers"];
    ensure!(containers[0]["name"] == "sidecar" && containers[0]["image"] == "example.com/sidecar:1", "{after}");
    ensure!(containers[1]["image"] == "example.com/child:2" && containers[1]["tty"] == true, "{after}");
    Ok(())
}

/// A patch of the value alone would leave the other field.
async fn a_field_that_goes_with_a_new_value_of_another_goes(env: &mut TestEnv) -> Result<()> {
    env.start(&["misbehaver"]).await?;
    with_data(env, json!({"kept": "one", "dropped": "one"})).await?;
    let child = with_data(env, json!({"kept": "two"})).await?;
    ensure!(child["data"] == json!({"kept": "two"}), "{child}");
    Ok(())
}

/// An earlier host wrote no outline, and a later one may count fields in another way. The body is the same.
async fn a_mark_of_an_earlier_host_is_no_drift(env: &mut TestEnv) -> Result<()> {
    const APPLIED: &str = "pilothouse.dev/applied";
    env.start(&["misbehaver"]).await?;
    let child = with_data(env, json!({"key": "one"})).await?;
    let mark = child["metadata"]["annotations"][APPLIED].as_str().context("it has no mark")?;
    let (digest, _) = mark.split_once('-').with_context(|| format!("{mark} has no outline"))?;
    let mut value = 1;
    for earlier in [digest.to_owned(), format!("{digest}-000000000000")] {
        env.host.stop().await?;
        let annotations = json!({"metadata": {"annotations": {APPLIED: earlier}}});
        let marked = env.namespace.patch("ConfigMap", "child", annotations).await?;
        restarted(env).await?;
        ensure!(env.drift_repaired("misbehaver").await? == 0.0, "{earlier} counts as drift");
        let after = env.namespace.get("ConfigMap", "child").await?.context("the child is gone")?;
        ensure!(after == marked, "{earlier} was written for its own sake: {after}");

        value += 1;
        let changed = with_data(env, json!({"key": value.to_string()})).await?;
        ensure!(updated_by_us(&changed)["f:data"].is_null(), "nobody knew that no field goes: {changed}");
        // The next round begins with what the first one began with.
        let back = with_data(env, json!({"key": "one"})).await?;
        ensure!(back["metadata"]["annotations"][APPLIED] == mark, "it has another mark: {back}");
        ensure!(!updated_by_us(&back)["f:data"]["f:key"].is_null(), "it was not patched: {back}");
    }
    Ok(())
}

/// The mark of a child follows from what the plugin returned, and not from what the host knew of its kind.
async fn what_was_written_before_its_schema_was_known_is_no_drift(env: &mut TestEnv) -> Result<()> {
    let proxy = env.behind_proxy(&env.upstream().await?).await?;
    proxy.faults().fail(Method::GET, "openapi", StatusCode::SERVICE_UNAVAILABLE);
    env.start(&["misbehaver"]).await?;
    let created = with_data(env, json!({"key": "one"})).await?;
    let unknown = with_data(env, json!({"key": "two"})).await?;
    ensure!(updated_by_us(&unknown).is_null(), "it was patched without a schema: {unknown}");

    env.host.stop().await?;
    proxy.faults().heal();
    restarted(env).await?;
    ensure!(env.drift_repaired("misbehaver").await? == 0.0, "it counts as drift");
    let after = env.namespace.get("ConfigMap", "child").await?.context("the child is gone")?;
    ensure!(after == unknown, "it was written: {after}");

    // The host reads the schema at its leisure.
    let changed = eventually(PATIENCE, "a change that is patched", async || {
        let changed = with_data(env, json!({"key": "one"})).await?;
        if !updated_by_us(&changed)["f:data"]["f:key"].is_null() {
            return Ok(Look::Found(changed));
        }
        with_data(env, json!({"key": "two"})).await?;
        Ok(Look::NotYet(changed.to_string()))
    })
    .await?;
    let mark = |child: &Value| child["metadata"]["annotations"]["pilothouse.dev/applied"].clone();
    ensure!(mark(&changed) == mark(&created), "the same has two marks: {changed}");
    Ok(())
}

/// Starts the host again, which has looked at the object after that.
async fn restarted(env: &mut TestEnv) -> Result<()> {
    env.host.resume().await?;
    env.host.ready().await?;
    eventually(PATIENCE, "a reconcile of the object", async || {
        let reconciles = env.reconciles("misbehaver").await?;
        Ok(Look::of(reconciles >= 1.0, reconciles))
    })
    .await
    .map(drop)
}

fn object(data: Value) -> Value {
    let mut object = misbehaver("child", "well");
    object["spec"]["data"] = data;
    object
}

/// Gives the object this data, and the child as it is once the host is done with it.
async fn with_data(env: &TestEnv, data: Value) -> Result<Value> {
    env.namespace.apply(object(data)).await?;
    env.namespace.until("Misbehaver", "child", "to be ready", is_ready).await?;
    env.metrics_at_rest().await?;
    env.namespace.get("ConfigMap", "child").await?.context("the child is gone")
}

async fn returns(env: &TestEnv, child: Value) -> Result<Value> {
    env.namespace.apply(scripted("web", returning([child]))).await?;
    env.namespace.until("Scripted", "web", "to be ready", is_ready).await?;
    env.namespace.get("Deployment", "child").await?.context("the child is gone")
}

/// The fields of a child that belong to the host by patches; null if there are none.
fn updated_by_us(child: &Value) -> Value {
    let entries = child["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut ours = entries.filter(|entry| {
        entry["manager"].as_str().is_some_and(|manager| manager.starts_with("pilothouse"))
            && entry["operation"] == "Update"
    });
    ours.next().map(|entry| entry["fieldsV1"].clone()).unwrap_or_default()
}
