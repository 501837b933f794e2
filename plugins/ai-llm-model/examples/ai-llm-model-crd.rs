//! Writes the CRD of `LLMModel` to `crds/`. It never talks to a cluster.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/llmmodels.ai.example.com.yaml");
    std::fs::write(path, ai_llm_model::crd::yaml()?)?;
    Ok(())
}
