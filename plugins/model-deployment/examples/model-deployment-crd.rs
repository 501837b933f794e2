//! Writes the CRD of `ModelDeployment` to `crds/`. It never talks to a cluster.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/modeldeployments.llm.example.com.yaml");
    std::fs::write(path, model_deployment::crd::yaml()?)?;
    Ok(())
}
