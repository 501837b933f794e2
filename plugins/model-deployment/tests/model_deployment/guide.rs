//! The example of the guide `docs/llm-serving.md` is a model that is served, and its rules for an adapter serve the metrics that are read.

use crate::case::{parse, run};
use llm_serving::testing::Children;
use pilothouse_sdk::Error;
use pilothouse_sdk::testing::Case;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/llm-serving.md");

#[test]
fn the_example_is_served_and_its_metrics_have_rules() -> Result<(), Error> {
    let guide = std::fs::read_to_string(GUIDE).map_err(|error| Error::Test(error.to_string()))?;
    let mut examples = guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let example = examples.find(|example| example.contains("kind: ModelDeployment\n")).unwrap_or_default();
    let mut object = parse(example)?;
    object["metadata"]["namespace"] = "ml".into();
    let children = Children::of(&run(Case::of(object))?)?;
    let metrics = children.only("HorizontalPodAutoscaler")?["spec"]["metrics"].as_array().cloned().unwrap_or_default();
    assert_eq!(metrics.len(), 2);
    for metric in metrics {
        let name = metric["external"]["metric"]["name"].as_str().unwrap_or_default();
        assert!(guide.contains(&format!("name: {{as: {name}}}")), "no rule serves {name}");
    }
    Ok(())
}
