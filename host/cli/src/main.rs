//! The `pilothouse` binary: parses the command line and runs a subcommand. Each subcommand has a file of its own.

mod age;
mod approve;
mod bench;
mod build;
mod cache_dir;
mod capture;
mod cluster;
mod compile;
mod completions;
mod config_file;
mod confirm;
mod crd;
mod definition;
mod dev;
mod duration;
mod election;
mod inspect;
mod install;
mod kind_name;
mod list;
mod local_engine;
mod logging;
mod mebibytes;
mod memory;
mod named;
mod new;
mod offline;
mod output;
mod pack;
#[cfg(test)]
mod pages;
mod plan;
mod plugin_configs;
mod plugin_file;
mod preflight;
mod push;
mod rbac;
mod reference;
mod registry;
mod render;
mod run;
mod stop_signal;
mod table;
mod test;
mod uninstall;
mod why;
mod yaml;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use pilothouse_controller::errors::chain;

use self::output::PrintError;

/// Runs Kubernetes operators that are WebAssembly plugins.
///
/// Exit codes: 0 done, 1 failed (the last line says why), 2 wrong arguments; those of `plan` are its own.
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
    Uninstall(uninstall::Uninstall),
    Approve(approve::Approve),
    List(list::List),
    Why(why::Why),
    Inspect(inspect::Inspect),
    Crd(crd::Crd),
    Rbac(rbac::Rbac),
    Render(render::Render),
    Plan(Box<plan::Plan>),
    New(new::New),
    Build(build::Build),
    Dev(Box<dev::Dev>),
    Test(test::Test),
    Capture(capture::Capture),
    Bench(bench::Bench),
    Pack(pack::Pack),
    Push(push::Push),
    Preflight(preflight::Preflight),
    Completions(completions::Completions),
    #[command(hide = true)]
    Complete(completions::Complete),
    #[command(hide = true)]
    Reference(reference::Reference),
    #[command(hide = true)]
    Compile(compile::Compile),
}

fn main() -> ExitCode {
    keep_pages_small();
    let result = match arguments().command {
        Command::Run(command) => command.execute(),
        Command::Install(command) => command.execute(),
        Command::Uninstall(command) => command.execute(),
        Command::Approve(command) => command.execute(),
        Command::List(command) => command.execute(),
        Command::Why(command) => command.execute(),
        Command::Inspect(command) => command.execute(),
        Command::Crd(command) => command.execute(),
        Command::Rbac(command) => command.execute(),
        Command::Render(command) => command.execute(),
        Command::Plan(command) => return ended(command.execute()),
        Command::New(command) => command.execute(),
        Command::Build(command) => command.execute(),
        Command::Dev(command) => command.execute(),
        Command::Test(command) => command.execute(),
        Command::Capture(command) => command.execute(),
        Command::Bench(command) => command.execute(),
        Command::Pack(command) => command.execute(),
        Command::Push(command) => command.execute(),
        Command::Preflight(command) => command.execute(),
        Command::Completions(command) => command.execute(program()),
        Command::Complete(command) => command.execute(program()),
        Command::Reference(command) => command.execute(program()),
        Command::Compile(command) => command.execute(),
    };
    ended(result.map(|()| ExitCode::SUCCESS))
}

fn ended(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        // As `head` does once it has enough: nobody has to be told.
        Err(error) if matches!(error.downcast_ref(), Some(PrintError::Closed)) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// The command line. As `kubectl-pilothouse` in the PATH, this program is a plugin of `kubectl`, and its help says so.
fn program() -> clap::Command {
    let is_kubectl = std::env::args_os().next().is_some_and(|program| {
        std::path::Path::new(&program).file_stem().is_some_and(|name| name == "kubectl-pilothouse")
    });
    let command = Arguments::command();
    if is_kubectl { command.bin_name("kubectl pilothouse") } else { command }
}

/// Parses the command line.
fn arguments() -> Arguments {
    let parsed = program().try_get_matches().and_then(|matches| Arguments::from_arg_matches(&matches));
    parsed.unwrap_or_else(|error| refuse(&error))
}

/// Says what is wrong with the command line. The usual code for that means something else where it is `plan`.
fn refuse(error: &clap::Error) -> ! {
    let is_plan = std::env::args_os().nth(1).is_some_and(|command| command == "plan");
    if is_plan && error.exit_code() != 0 {
        // Without an error output there is nobody to tell.
        error.print().ok();
        std::process::exit(1);
    }
    error.exit()
}

/// Disables transparent huge pages. With them, the allocator's arenas would triple the memory of an idle host. If it fails, the host
/// only needs more memory.
fn keep_pages_small() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        eprintln!("warning: huge pages stay on: {error}");
    }
}
