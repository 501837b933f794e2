//! The plugins in `examples/`, which are outside the workspace, as a user's plugin would be. Checks that the built files are
//! plugins with the manifests and results that their READMEs promise. Needs no cluster. `scripts/test.sh` runs the examples' own
//! tests.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};

use crate::artifacts::{example, host_binary, repository};

#[test]
fn greeting_is_a_plugin_with_a_manifest() -> Result<()> {
    let manifest: serde_json::Value =
        serde_saphyr::from_str(&pilothouse(&["inspect".as_ref(), &example("greeting")?])?)?;
    ensure!(manifest["name"] == "greeting" && manifest["reconciles"]["kind"] == "Greeting", "{manifest}");
    Ok(())
}

#[test]
fn greeting_renders_its_sample() -> Result<()> {
    let sample = repository().join("examples/greeting/greeting.yaml");
    let rendered = pilothouse(&["render".as_ref(), &example("greeting")?, &sample])?;
    ensure!(rendered.contains("greeting: Hello, world!"), "{rendered}");
    Ok(())
}

/// What a command of the host prints.
fn pilothouse(arguments: &[&Path]) -> Result<String> {
    let output = Command::new(host_binary()?).args(arguments).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    Ok(text(&output.stdout))
}
