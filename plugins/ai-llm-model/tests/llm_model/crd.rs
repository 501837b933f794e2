//! The CRD: the file is up to date, and names, columns and subresources are those that the seed's commands need.

use serde_json::json;

#[test]
fn the_file_is_up_to_date() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/llmmodels.ai.example.com.yaml");
    let same = std::fs::read_to_string(path)? == ai_llm_model::crd::yaml()?;
    assert!(same, "make it anew: make crds");
    Ok(())
}

/// Users and their scripts depend on these names.
#[test]
fn names_and_the_default_view_stay_the_same() {
    let crd = ai_llm_model::crd::crd();
    assert_eq!(crd["metadata"]["name"], "llmmodels.ai.example.com");
    let names = json!({
        "kind": "LLMModel", "listKind": "LLMModelList", "plural": "llmmodels", "singular": "llmmodel", "shortNames": ["llm"],
    });
    assert_eq!(crd["spec"]["names"], names);
    let version = &crd["spec"]["versions"][0];
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    let shown: Vec<_> = columns.filter(|column| column["priority"] != 1).map(|column| &column["name"]).collect();
    assert_eq!(shown, ["MODEL"], "`kubectl get llmmodels` prints NAME and MODEL, and nothing else");
    assert!(version["subresources"]["status"].is_object() && version["subresources"]["scale"].is_object());
}
