//! The examples of the guide `docs/training-job.md` are jobs that start.

use crate::simulated_cluster::{SimulatedCluster, TrainingJobCluster, parse};
use pilothouse_sdk::{Error, Verdict};
use serde_json::json;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/training-job.md");

#[test]
fn all_examples_start() -> Result<(), Error> {
    let guide = std::fs::read_to_string(GUIDE).map_err(|error| Error::Test(error.to_string()))?;
    let examples: Vec<_> = guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 7);
    for example in examples {
        let mut job = parse(example)?;
        job["metadata"]["namespace"] = json!("ml");
        let roles = job["spec"]["roles"].as_array().into_iter().flatten();
        let replicas = job["spec"]["workers"].as_u64().unwrap_or_default()
            + job["spec"]["parameterServers"].as_u64().unwrap_or_default()
            + roles.filter(|role| role["name"] != "ps").count() as u64
            + u64::from(job["spec"]["framework"] == "mpi");
        let mut cluster = SimulatedCluster::with_job(job);
        let claim = |name| json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name } });
        cluster.other_objects.extend(["imagenet", "checkpoints"].map(claim));
        cluster.reconcile_until_stable()?;
        // A launcher waits for its workers.
        cluster.set_phase_of_all_pods("Running");
        cluster.reconcile_until_stable()?;
        assert_eq!((&cluster.verdict, cluster.pod_names().len() as u64), (&Verdict::Done, replicas), "{example}");
    }
    Ok(())
}
