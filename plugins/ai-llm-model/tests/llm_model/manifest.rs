//! What the manifest declares.

use serde_json::{Value, json};

#[test]
fn the_manifest_declares_the_kind_and_its_optional_children_as_lookups() -> Result<(), serde_json::Error> {
    let manifest: Value = serde_json::from_str(ai_llm_model::MANIFEST)?;
    assert_eq!(manifest["reconciles"], json!({ "apiVersion": "ai.example.com/v1", "kind": "LLMModel" }));
    // A child kind that is a lookup as well need not be installed.
    for kind in ["ServiceMonitor", "PodMonitor", "ResourceClaimTemplate"] {
        let has = |list: &str| manifest[list].as_array().into_iter().flatten().any(|listed| listed["kind"] == kind);
        assert!(has("children") && has("lookups"), "{kind}");
    }
    Ok(())
}
