//! `make manifests` and its check: writes the files of `deploy/` that are made of the charts and of `crds/`, or says which of them are
//! not as they have to be.

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use pilothouse_tests::{
    artifacts,
    manifests::{Made, made},
};

/// Makes the plain manifests in deploy/ from the charts, and the CRDs in the charts from crds/.
#[derive(Parser)]
#[command(name = "manifests", version)]
struct Arguments {
    /// Write nothing, and fail if a file is not as it has to be.
    #[arg(long)]
    check: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<()> {
    let mut others = Vec::new();
    for file in made().await? {
        let is = std::fs::read_to_string(&file.path).unwrap_or_default();
        if is == file.text {
            continue;
        }
        others.push(shown(&file));
        if !arguments.check {
            std::fs::write(&file.path, &file.text).with_context(|| format!("failed to write {}", shown(&file)))?;
        }
    }
    ensure!(!arguments.check || others.is_empty(), "made of something else now; run `make manifests`: {others:?}");
    others.iter().for_each(|file| println!("wrote {file}"));
    Ok(())
}

fn shown(file: &Made) -> String {
    let path = file.path.strip_prefix(artifacts::repository()).unwrap_or(&file.path);
    path.display().to_string()
}
