//! Writes the CRD of `AppService` to `crds/`. It never talks to a cluster.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/appservices.apps.example.com.yaml");
    std::fs::write(path, app_service::crd::yaml()?)?;
    Ok(())
}
