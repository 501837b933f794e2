//! Writes the CRD of `TrainingJob` to `crds/`. It never talks to a cluster.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds/trainingjobs.ml.example.com.yaml");
    std::fs::write(path, training_job::crd::yaml()?)?;
    Ok(())
}
