//! The CRD: the file is up to date, and the columns show the SLA.

#[test]
fn the_file_is_up_to_date() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/modeldeployments.llm.example.com.yaml");
    let same = std::fs::read_to_string(path)? == model_deployment::crd::yaml()?;
    assert!(same, "make it anew: make crds");
    Ok(())
}

/// Users and their scripts depend on these names.
#[test]
fn columns_show_the_sla_and_the_latency() {
    let crd = model_deployment::crd::crd();
    let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array().into_iter().flatten();
    let shown: Vec<_> = columns.filter(|column| column["priority"] != 1).map(|column| &column["name"]).collect();
    assert_eq!(shown, ["Model", "Replicas", "Ready", "SLA", "Latency", "Age"]);
}
