//! Checks that the CRD in `crds/` is the one that the API types make.

#[test]
fn the_file_is_up_to_date() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/llmdeployments.llm.example.com.yaml");
    let same = std::fs::read_to_string(path)? == llm_deployment::crd::yaml()?;
    assert!(same, "make it anew: make crds");
    Ok(())
}
