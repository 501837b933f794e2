//! The `pilothouse` binary: parses the command line and runs a subcommand. Each subcommand has a file of its own.

mod cache_dir;
mod compile;
mod crd;
mod duration;
mod election;
mod inspect;
mod install;
mod logging;
mod pack;
mod plugin_file;
mod rbac;
mod render;
mod run;
mod yaml;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// mimalloc returns memory to the system sooner than the default allocator, which matters for an idle operator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs Kubernetes operators that are WebAssembly plugins.
///
/// Exit codes: 0 done, 1 failed (the last line says why), 2 wrong arguments.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<run::Run>),
    Install(install::Install),
    Inspect(inspect::Inspect),
    Crd(crd::Crd),
    Rbac(rbac::Rbac),
    Render(render::Render),
    Pack(pack::Pack),
    #[command(hide = true)]
    Compile(compile::Compile),
}

fn main() -> ExitCode {
    keep_pages_small();
    let result = match Arguments::parse().command {
        Command::Run(command) => command.execute(),
        Command::Install(command) => command.execute(),
        Command::Inspect(command) => command.execute(),
        Command::Crd(command) => command.execute(),
        Command::Rbac(command) => command.execute(),
        Command::Render(command) => command.execute(),
        Command::Pack(command) => command.execute(),
        Command::Compile(command) => command.execute(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Disables transparent huge pages. With them, the allocator's arenas would triple the memory of an idle host. If it fails, the host
/// only needs more memory.
fn keep_pages_small() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        eprintln!("warning: huge pages stay on: {error}");
    }
}
