//! `pilothouse reference`: prints all commands and their arguments as Markdown, from what `--help` is made of, or the contract, from its WIT.
//! `docs/cli.md` and `docs/contract.md` are kept so.

use std::fmt::{self, Write};

use clap::{Arg, Args, Command};

use crate::output;

/// Prints the reference of all commands, or that of the contract, as Markdown.
#[derive(Args)]
pub struct Reference {
    /// The contract between host and plugin, in the newest version.
    #[arg(long)]
    contract: bool,
}

impl Reference {
    /// Runs the command, for the program under a name.
    ///
    /// # Errors
    /// If nobody takes what it prints.
    pub fn execute(&self, mut program: Command) -> anyhow::Result<()> {
        if self.contract {
            return Ok(output::print(pilothouse_pack::contract_reference()?)?);
        }
        program.build();
        let mut text = String::new();
        write_program(&mut text, &program)?;
        Ok(output::print(text)?)
    }
}

fn write_program(out: &mut String, program: &Command) -> fmt::Result {
    let name = program.get_bin_name().unwrap_or_else(|| program.get_name());
    writeln!(out, "# The commands of `{name}`\n")?;
    writeln!(out, "Made by `make reference` of what `{name} COMMAND --help` shows.\n")?;
    writeln!(out, "{}\n", long_about(program))?;
    let commands: Vec<_> =
        program.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help").collect();
    writeln!(out, "| command | what it does |\n|---|---|")?;
    for command in &commands {
        let (name, about) = (command.get_name(), command.get_about().map(ToString::to_string).unwrap_or_default());
        writeln!(out, "| [`{name}`](#{name}) | {} |", about.replace('|', "\\|").trim_end_matches('.'))?;
    }
    commands.into_iter().try_for_each(|command| write_command(out, command))
}

fn write_command(out: &mut String, command: &Command) -> fmt::Result {
    writeln!(out, "\n## {}\n\n{}", command.get_name(), long_about(command))?;
    let usage = command.clone().render_usage().to_string();
    writeln!(out, "\n```\n{}\n```", usage.trim_start_matches("Usage: "))?;
    let shown = |argument: &&Arg| !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str());
    let arguments: Vec<_> = command.get_arguments().filter(shown).collect();
    for argument in &arguments {
        write!(out, "\n- {}", head(argument))?;
        let help = argument.get_long_help().or_else(|| argument.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        write!(out, ": {}", with_stop(&help.split_whitespace().collect::<Vec<_>>().join(" ")))?;
        write!(out, "{}", remarks(argument))?;
    }
    writeln!(out, "{}", if arguments.is_empty() { "\nIt has no arguments." } else { "" })
}

/// The description of a command. Lines with an indentation are an example.
fn long_about(command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default();
    let mut text = String::new();
    let mut is_example = false;
    for line in about.lines() {
        let continues = line.starts_with("  ");
        if continues != is_example && (continues || line.is_empty()) {
            text += "```\n";
            is_example = continues;
        }
        text += line.strip_prefix("  ").unwrap_or(line);
        text.push('\n');
    }
    if is_example {
        text += "```\n";
    }
    text.trim_end().to_owned()
}

/// How an argument is written.
fn head(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
    if argument.is_positional() {
        return format!("`{value}`");
    }
    let takes = argument.get_action().takes_values();
    let short = argument.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    let long = argument.get_long().unwrap_or_default();
    format!("{short}`--{long}{}`", if takes { format!(" {value}") } else { String::new() })
}

/// What there is to say beside its help: possible values, the default, and the variable of the environment.
fn remarks(argument: &Arg) -> String {
    let mut text = String::new();
    let list = |values: Vec<String>| values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    let possible = argument.get_possible_values();
    let possible: Vec<_> =
        possible.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name().to_owned()).collect();
    if !possible.is_empty() && argument.get_action().takes_values() {
        text += &format!(" One of {}.", list(possible));
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy().into()).collect();
    if !defaults.is_empty() && argument.get_action().takes_values() && !argument.is_hide_default_value_set() {
        text += &format!(" Default: {}.", list(defaults));
    }
    if let Some(variable) = argument.get_env() {
        text += &format!(" Also from the environment: `{}`.", variable.to_string_lossy());
    }
    text
}

fn with_stop(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '?', '!']) { text.to_owned() } else { format!("{text}.") }
}
