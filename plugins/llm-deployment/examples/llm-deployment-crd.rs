//! Writes the CRD of `LLMDeployment` to `crds/`. It never talks to a cluster.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/llmdeployments.llm.example.com.yaml");
    std::fs::write(path, llm_deployment::crd::yaml()?)?;
    Ok(())
}
