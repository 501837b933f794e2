//! `pilothouse new`: makes the project of a plugin in a new folder. Builds nothing and contacts nobody.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use pilothouse_authoring::{CustomKind, Language, Project, Sdk};

use crate::output;

/// Make the project of a new plugin: its sources, the CRD of its kind, an object, and test cases.
///
/// It works as it is: `pilothouse build` makes the plugin, and `pilothouse test` runs its cases, without a cluster. Its objects become
/// Deployments; go on from there.
#[derive(Args)]
pub struct New {
    /// The plugin's name, and that of its folder.
    name: String,
    /// The language.
    #[arg(long)]
    lang: Lang,
    /// The kind that it reconciles, such as example.com/v1/Website.
    #[arg(long, value_name = "GROUP/VERSION/KIND")]
    kind: CustomKind,
    /// The folder. Default: the name, here.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Where a project in Rust takes the SDK from: `git`, `registry`, or a folder that has it.
    #[arg(long, value_name = "git|registry|FOLDER", default_value = "git")]
    sdk: String,
}

/// The languages of new projects.
#[derive(Clone, Copy, ValueEnum)]
enum Lang {
    Rust,
    Go,
    C,
    Python,
    Ts,
}

impl Lang {
    fn language(self) -> Language {
        match self {
            Self::Rust => Language::Rust,
            Self::Go => Language::Go,
            Self::C => Language::C,
            Self::Python => Language::Python,
            Self::Ts => Language::TypeScript,
        }
    }
}

impl New {
    /// Runs the command.
    ///
    /// # Errors
    /// If there can be no such plugin, or the folder exists.
    pub fn execute(self) -> anyhow::Result<()> {
        let sdk = self.sdk()?;
        let folder = self.dir.unwrap_or_else(|| PathBuf::from(&self.name));
        let project = Project { name: self.name, kind: self.kind, language: self.lang.language(), sdk };
        for file in project.create(&folder)? {
            output::print_line(folder.join(file).display())?;
        }
        let shown = folder.display();
        eprintln!("next: pilothouse build {shown} && pilothouse test {shown}; {shown}/README.md says more");
        Ok(())
    }

    fn sdk(&self) -> anyhow::Result<Sdk> {
        Ok(match &*self.sdk {
            "git" => Sdk::Git,
            "registry" => Sdk::Registry,
            folder => {
                Sdk::Folder(std::fs::canonicalize(folder).with_context(|| format!("there is no folder '{folder}'"))?)
            }
        })
    }
}
