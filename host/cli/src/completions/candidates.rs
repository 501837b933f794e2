//! What the last word of a command line can become. Pure: it knows the program's arguments, and no file and no cluster.

use std::fmt;

use clap::{Arg, Command};

/// What a word can become.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Candidates {
    /// The words, each with what it is about.
    words: Vec<(String, String)>,
    /// Whether the name of a file would do, too.
    files: bool,
}

/// The form of kubectl's plugins, which is that of cobra: a word a line, and a number that says whether files would do.
impl fmt::Display for Candidates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (word, about) in &self.words {
            match about.is_empty() {
                true => writeln!(f, "{word}")?,
                false => writeln!(f, "{word}\t{about}")?,
            }
        }
        writeln!(f, ":{}", if self.files { 0 } else { 4 })
    }
}

/// What the last of these words can become, all after the program's name.
pub(super) fn candidates(mut program: Command, words: &[String]) -> Candidates {
    program.build();
    let (last, before) = words.split_last().map_or(("", words), |(last, before)| (last.as_str(), before));
    let typed = Typed::read(&program, before);
    if let Some(option) = typed.option {
        return values(option, "", last);
    }
    if let Some((option, value)) = last.split_once('=').and_then(|(name, value)| Some((typed.named(name)?, value))) {
        return values(option, &last[..last.len() - value.len()], value);
    }
    if last.starts_with('-') {
        return Candidates { words: kept(typed.options(), last), files: false };
    }
    let commands = kept(typed.commands(), last);
    match typed.command.get_positionals().nth(typed.positionals) {
        Some(positional) if commands.is_empty() => values(positional, "", last),
        _ => Candidates { words: commands, files: false },
    }
}

/// What the words before the last one say.
struct Typed<'a> {
    command: &'a Command,
    /// The option whose value comes next.
    option: Option<&'a Arg>,
    /// How many positional arguments there are.
    positionals: usize,
}

impl<'a> Typed<'a> {
    fn read(program: &'a Command, words: &[String]) -> Self {
        let mut typed = Self { command: program, option: None, positionals: 0 };
        for word in words {
            if typed.option.take().is_some() {
                continue;
            }
            if word.starts_with('-') {
                typed.option = typed.named(word);
            } else if let Some(command) = typed.command.find_subcommand(word) {
                (typed.command, typed.positionals) = (command, 0);
            } else {
                typed.positionals += 1;
            }
        }
        typed
    }

    /// The option of this name that takes a value.
    fn named(&self, word: &str) -> Option<&'a Arg> {
        let is_named = |option: &&Arg| {
            let long = option.get_long().is_some_and(|name| word.strip_prefix("--") == Some(name));
            long || option.get_short().is_some_and(|name| word.strip_prefix('-') == Some(name.encode_utf8(&mut [0; 4])))
        };
        self.command.get_arguments().filter(|option| option.get_action().takes_values()).find(is_named)
    }

    fn options(&self) -> Vec<(String, String)> {
        let shown = self.command.get_arguments().filter(|option| !option.is_hide_set());
        shown.filter_map(|option| Some((format!("--{}", option.get_long()?), about(option.get_help())))).collect()
    }

    fn commands(&self) -> Vec<(String, String)> {
        let shown = self.command.get_subcommands().filter(|command| !command.is_hide_set());
        shown.map(|command| (command.get_name().to_owned(), about(command.get_about()))).collect()
    }
}

/// The values of an argument that begin so, each behind a prefix.
fn values(argument: &Arg, prefix: &str, typed: &str) -> Candidates {
    let possible = argument.get_possible_values();
    let files = possible.is_empty();
    let words = possible.iter().filter(|value| !value.is_hide_set());
    let words = words.map(|value| (value.get_name().to_owned(), about(value.get_help()))).collect();
    let words = kept(words, typed).into_iter().map(|(word, about)| (format!("{prefix}{word}"), about)).collect();
    Candidates { words, files }
}

fn kept(mut words: Vec<(String, String)>, typed: &str) -> Vec<(String, String)> {
    words.retain(|(word, _)| word.starts_with(typed));
    words
}

/// The first line of a help text.
fn about(help: Option<&clap::builder::StyledStr>) -> String {
    help.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with each form of argument.
    fn program() -> Command {
        let output = Arg::new("output").long("output").short('o').value_parser(["text", "json"]).help("Print as.");
        let dir = Arg::new("dir").long("dir");
        let list = Command::new("list").about("List all.\nOf them.").arg(output).arg(dir);
        let all = Arg::new("all").long("all").action(clap::ArgAction::SetTrue);
        let shell = Arg::new("shell").value_parser(["bash", "zsh"]);
        let say = Command::new("say").arg(shell).arg(Arg::new("file")).arg(all);
        Command::new("x").subcommand(list).subcommand(say).subcommand(Command::new("secret").hide(true))
    }

    #[test]
    fn the_last_word_is_completed() {
        for (words, printed) in [
            (&["l"][..], "list\tList all.\n:4\n"),
            (&["se"], ":4\n"),
            (&["list", "--o"], "--output\tPrint as.\n:4\n"),
            (&["list", "--output", ""], "text\njson\n:4\n"),
            (&["list", "-o", "j"], "json\n:4\n"),
            (&["list", "--output=j"], "--output=json\n:4\n"),
            (&["list", "--dir", ""], ":0\n"),
            (&["say", "z"], "zsh\n:4\n"),
            (&["say", "--all", "b"], "bash\n:4\n"),
            (&["say", "zsh", ""], ":0\n"),
        ] {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(candidates(program(), &words).to_string(), printed, "{words:?}");
        }
        let all = candidates(program(), &[]).to_string();
        assert!(all.contains("list\t") && all.contains("say\n") && !all.contains("secret"), "{all}");
    }
}
