//! `docs/tutorial.md`, word by word: its commands are run, its files are saved, and what it says that they print is printed.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{
    artifacts::{host_binary, repository},
    blocks::blocks,
    languages::Language,
};
use tempfile::TempDir;

/// The project of the page.
const PROJECT: &str = "web";

/// The folder in which the reader works.
struct Reader {
    folder: TempDir,
    commands: usize,
}

/// What the page has in its blocks is what comes.
pub fn the_tutorial_is_right() -> Result<()> {
    let page = fs::read_to_string(repository().join("docs/tutorial.md"))?;
    let mut reader = Reader { folder: tempfile::tempdir()?, commands: 0 };
    let mut printed = String::new();
    for (language, text) in blocks(&page) {
        match language {
            "sh" => printed = reader.run(text)?,
            // What the block before it prints.
            "text" => ensure!(printed.contains(text.trim()), "{text:?} is not printed:\n{printed}"),
            // What needs a cluster, which `dev` has tests of its own with.
            "console" => {}
            _ => reader.save(text)?,
        }
    }
    ensure!(reader.commands == 8, "the page is written in another way: {} commands", reader.commands);
    Ok(())
}

impl Reader {
    fn root(&self) -> PathBuf {
        self.folder.path().join(PROJECT)
    }

    /// Runs the commands of a block. One that is to fail says so behind it.
    fn run(&mut self, text: &str) -> Result<String> {
        let mut printed = String::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (command, comment) = line.split_once('#').unwrap_or((line, ""));
            let arguments: Vec<_> = command.split_whitespace().skip(1).collect();
            ensure!(command.starts_with("pilothouse "), "another command: {command}");
            let mut program = Command::new(host_binary()?);
            program.args(&arguments).current_dir(self.folder.path());
            program.env("CARGO_TARGET_DIR", Language::Rust.folder());
            let is_new = arguments.first() == Some(&"new");
            if is_new {
                program.arg("--sdk").arg(repository().join("plugins/sdk"));
            }
            let output = program.output()?;
            let said = format!("{}{}", String::from_utf8(output.stdout)?, String::from_utf8_lossy(&output.stderr));
            let fails = comment.trim().starts_with("fails");
            ensure!(output.status.success() != fails, "`{command}` ended with {}: {said}", output.status);
            if is_new {
                Language::Rust.equip(&self.root())?;
            }
            printed += &said;
            self.commands += 1;
        }
        Ok(printed)
    }

    /// Saves a file, whose name is in its first line.
    fn save(&self, text: &str) -> Result<()> {
        let (first, rest) = text.split_once('\n').context("an empty block")?;
        let (_, name) = first.split_once("file: ").with_context(|| format!("a block without a file: {first}"))?;
        Ok(fs::write(self.root().join(name), rest)?)
    }
}
