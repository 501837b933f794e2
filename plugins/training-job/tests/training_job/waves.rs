//! Jobs with more Pods than fit into one response: they come in waves, and the responses stay within what the host takes.

use crate::simulated_cluster::{ChildKey, SimulatedCluster, TrainingJobCluster};
use pilothouse_sdk::Error;
use pilothouse_sdk::raw::Response;
use serde_json::json;
use training_job::api::Phase;

/// The most bytes that the host takes.
const MAX_BYTES: usize = 1 << 20;

/// What the parts of a response take in memory besides their texts, for each child. A guess that is too high.
const BYTES_OF_A_CHILD: usize = 200;

fn bytes(response: &Response) -> usize {
    let children = response.children.iter().flatten().map(|child| child.object.len() + BYTES_OF_A_CHILD).sum::<usize>();
    children + response.status.as_deref().unwrap_or_default().len()
}

/// The first answer with Pods: their Service is there.
fn first_wave(cluster: &mut SimulatedCluster) -> Result<Response, Error> {
    let name = cluster.job["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name } });
    cluster.children.insert(ChildKey::new("Service", &name), service);
    Ok(cluster.call_plugin()?.response)
}

/// Reconciles, and returns the size of the last response.
fn settle(cluster: &mut SimulatedCluster) -> Result<usize, Error> {
    cluster.reconcile_until_stable()?;
    Ok(bytes(&cluster.call_plugin()?.response))
}

#[test]
fn a_thousand_workers_come_in_waves_and_stay() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::new("workers: 1000, gpuPerWorker: 8")?;
    cluster.job["metadata"]["name"] = json!("a".repeat(52));
    let first = first_wave(&mut cluster)?;
    let count = first.children.iter().flatten().count();
    assert!((50..500).contains(&count), "{count} children at first");
    assert!(bytes(&first) < MAX_BYTES / 2, "{} bytes", bytes(&first));
    assert!(settle(&mut cluster)? < MAX_BYTES / 2);
    let made: Vec<_> = cluster.pod_names().into_iter().map(str::to_owned).collect();
    assert_eq!((made.len(), cluster.event_count("WorkersCreated")), (1000, 1));
    cluster.set_phase_of_all_pods("Running");
    assert!(settle(&mut cluster)? < MAX_BYTES / 2);
    assert_eq!((cluster.phase()?, cluster.status()?.active), (Some(Phase::Running), 1000));
    assert_eq!(cluster.condition("Ready"), "True TrainingJobRunning");
    assert_eq!(cluster.pod_names(), made);
    Ok(())
}

#[test]
fn a_restart_of_a_thousand_workers_fits_into_each_response() -> Result<(), Error> {
    let mut cluster = SimulatedCluster::running("workers: 1000")?;
    let words = "e".repeat(4000);
    for number in 0..1000 {
        cluster.fail_pod(&format!("mnist-worker-{number}"), 1)?;
        cluster.child_mut("Pod", &format!("mnist-worker-{number}"))?["status"]["message"] = json!(words);
    }
    // All are told with the beginning of what they said.
    assert!(bytes(&cluster.call_plugin()?.response) < MAX_BYTES);
    assert!(settle(&mut cluster)? < MAX_BYTES);
    assert_eq!((cluster.status()?.restart_count, cluster.pod_names().len()), (1, 1000));
    Ok(())
}

/// A worker with a long command takes more room, and one that takes more than there is comes alone.
#[test]
fn the_number_of_pods_in_a_wave_follows_their_size() -> Result<(), Error> {
    for (length, expected) in [(10_000, 15..30), (300_000, 1..2)] {
        let mut cluster = SimulatedCluster::new("workers: 40")?;
        cluster.job["spec"]["command"] = json!(["sh", "-c", "x".repeat(length)]);
        let first = first_wave(&mut cluster)?;
        let pods = first.children.iter().flatten().filter(|child| child.object.len() > length).count();
        assert!(expected.contains(&pods), "{length}: {pods} Pods");
    }
    Ok(())
}

/// Few of them fit into a wave, and all waves belong to one reconcile.
#[test]
fn large_pods_come_in_one_reconcile() -> Result<(), Error> {
    for (length, workers) in [(27_000, 100), (100_000, 30), (200_000, 12)] {
        let mut cluster = SimulatedCluster::new(&format!("workers: {workers}"))?;
        let annotations = json!({ "example.com/notes": "x".repeat(length) });
        cluster.job["spec"]["podTemplate"] = json!({ "metadata": { "annotations": annotations } });
        cluster.reconcile()?;
        assert_eq!(cluster.pod_names().len(), workers, "{length}");
    }
    Ok(())
}

/// The variable of each would have 120 KB, and only two Pods would fit into a response.
#[test]
fn big_hyperparameters_of_many_workers_are_in_one_config_map() -> Result<(), Error> {
    let hyperparameters = "y".repeat(120_000);
    for (workers, is_shared) in [(2, false), (100, true)] {
        let mut cluster =
            SimulatedCluster::new(&format!("workers: {workers}, hyperparameters: {{x: '{hyperparameters}'}}"))?;
        let first = cluster.call_plugin()?.response;
        assert!(bytes(&first) < MAX_BYTES / 2, "{workers}: {} bytes", bytes(&first));
        settle(&mut cluster)?;
        assert_eq!(cluster.pod_names().len(), workers);
        let pod = cluster.child("Pod", "mnist-worker-1")?;
        let variables = pod["spec"]["containers"][0]["env"].as_array().cloned().unwrap_or_default();
        let variable =
            variables.iter().find(|variable| variable["name"] == "HYPERPARAMETERS").cloned().unwrap_or_default();
        let from = &variable["valueFrom"]["configMapKeyRef"];
        assert_eq!(from.is_object(), is_shared, "{workers}");
        if is_shared {
            let key = from["key"].as_str().unwrap_or_default();
            let config_map = cluster.child("ConfigMap", from["name"].as_str().unwrap_or_default())?;
            let text = config_map["data"][key].as_str().unwrap_or_default();
            assert_eq!(text, json!({ "x": hyperparameters }).to_string());
        }
    }
    Ok(())
}
