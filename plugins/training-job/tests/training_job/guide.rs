//! The guide's examples: they are jobs that start.

use crate::world::{World, parse};
use pilothouse_sdk::{Error, Verdict};
use serde_json::json;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/training-job.md");

#[test]
fn the_examples_start() -> Result<(), Error> {
    let guide = std::fs::read_to_string(GUIDE).map_err(|error| Error::Test(error.to_string()))?;
    let examples: Vec<_> = guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 3, "one for each framework, and an elastic one");
    for example in examples {
        let mut job = parse(example)?;
        job["metadata"]["namespace"] = json!("ml");
        let wanted = job["spec"]["workers"].as_u64().unwrap_or_default()
            + job["spec"]["parameterServers"].as_u64().unwrap_or_default();
        let mut world = World::with(job);
        let claim = |name| json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name } });
        world.found.extend(["imagenet", "checkpoints"].map(claim));
        world.settle()?;
        assert_eq!((&world.verdict, world.pods().len() as u64), (&Verdict::Done, wanted), "{example}");
    }
    Ok(())
}
