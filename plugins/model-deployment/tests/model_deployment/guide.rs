//! The example of the guide `docs/llm-serving.md` is a model that is served, and its rules for an adapter serve the metrics that are read.

use crate::case::{parse, run};
use llm_serving::testing::Children;
use pilothouse_sdk::Error;
use pilothouse_sdk::testing::Case;
use serde_json::Value;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/llm-serving.md");

/// The examples of the kind.
fn examples(guide: &str) -> Result<Vec<Value>, Error> {
    let examples = guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let of_kind = examples.filter(|example| example.contains("kind: ModelDeployment\n"));
    let in_namespace = |example| {
        let mut object = parse(example)?;
        object["metadata"]["namespace"] = "ml".into();
        Ok(object)
    };
    of_kind.map(in_namespace).collect()
}

#[test]
fn the_example_is_served_and_its_metrics_have_rules() -> Result<(), Error> {
    let guide = std::fs::read_to_string(GUIDE).map_err(|error| Error::Test(error.to_string()))?;
    let children = Children::of(&run(Case::of(examples(&guide)?.first()))?)?;
    let metrics = children.only("HorizontalPodAutoscaler")?["spec"]["metrics"].as_array().cloned().unwrap_or_default();
    assert_eq!(metrics.len(), 2);
    for metric in metrics {
        let name = metric["external"]["metric"]["name"].as_str().unwrap_or_default();
        assert!(guide.contains(&format!("name: {{as: {name}}}")), "no rule serves {name}");
    }
    Ok(())
}

#[test]
fn the_example_on_several_nodes_is_a_group_of_pods() -> Result<(), Error> {
    let guide = std::fs::read_to_string(GUIDE).map_err(|error| Error::Test(error.to_string()))?;
    let children = Children::of(&run(Case::of(examples(&guide)?.last()))?)?;
    let set = &children.only("LeaderWorkerSet")?["spec"];
    assert_eq!((&set["replicas"], &set["leaderWorkerTemplate"]["size"]), (&2.into(), &2.into()));
    Ok(())
}
