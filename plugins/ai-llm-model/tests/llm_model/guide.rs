//! The examples of the guide `docs/llm-serving.md` are models that are served.

use crate::case::{claim, of, parse, run};
use llm_serving::testing::Children;
use pilothouse_sdk::Error;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/llm-serving.md");

#[test]
fn all_examples_are_served() -> Result<(), Error> {
    let guide = std::fs::read_to_string(GUIDE).map_err(|error| Error::Test(error.to_string()))?;
    let examples = guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let examples: Vec<_> = examples.filter(|example| example.starts_with("apiVersion: ai.example.com/v1\n")).collect();
    assert_eq!(examples.len(), 2, "the seed's, and one for production");
    for example in examples {
        let object = parse(example)?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let children = Children::of(&run(of(name, &object["spec"]).found(claim("models")))?)?;
        assert!(children.only("Deployment").is_ok(), "{example}");
    }
    Ok(())
}

#[test]
fn the_example_of_a_configuration_is_one() -> Result<(), Error> {
    let guide = std::fs::read_to_string(GUIDE).map_err(|error| Error::Test(error.to_string()))?;
    let config = guide.split("```yaml\nimages:").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
    let config = parse(&format!("images:{config}"))?;
    let answer = run(crate::case::case("engine: tgi, gpuCount: 2, port: 8080")?.config(config))?;
    let container = Children::of(&answer)?.only("Deployment")?["spec"]["template"]["spec"]["containers"][0].clone();
    assert_eq!(
        container["args"],
        serde_json::json!(["--model-id", "/mnt/models", "--num-shard", "2", "--port", "8080"])
    );
    Ok(())
}
