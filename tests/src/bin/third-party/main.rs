//! `third-party NAME…`: builds programs of other projects that tests run, so that no test waits for its own. A test that finds none builds it, or is
//! shown as ignored.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use pilothouse_tests::third_party::{KEDA_OPERATOR, KUEUE, LWS_CONTROLLER, Program, REGISTRY};

/// Builds programs of other projects that tests run.
#[derive(Parser)]
#[command(name = "third-party", version)]
struct Arguments {
    /// What to build.
    #[arg(required = true)]
    programs: Vec<Name>,
}

/// A program.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// KEDA's operator.
    Keda,
    /// Kueue's controller.
    Kueue,
    /// LeaderWorkerSet's controller.
    Lws,
    /// The registry of the distribution project.
    Registry,
}

impl Name {
    fn program(self) -> Program {
        match self {
            Self::Keda => KEDA_OPERATOR,
            Self::Kueue => KUEUE,
            Self::Lws => LWS_CONTROLLER,
            Self::Registry => REGISTRY,
        }
    }
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
    for name in &arguments.programs {
        let began = std::time::Instant::now();
        name.program().build().await?;
        println!("third-party: {name:?}, {} s", began.elapsed().as_secs());
    }
    Ok(())
}
