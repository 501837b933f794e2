//! A project in a folder of its own, and the commands of its author, each with its time. It knows no language's tools.

use std::{
    fs::OpenOptions,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    artifacts::{host_binary, repository},
    languages::Language,
};

/// A project.
pub struct Project {
    language: Language,
    folder: TempDir,
    has_tools: bool,
    times: Vec<(&'static str, Duration)>,
}

impl Project {
    /// Makes a new one, in a folder outside of the repository.
    ///
    /// # Errors
    /// If the command fails.
    pub fn new(language: Language) -> Result<Self> {
        let mut project = Self { language, folder: tempfile::tempdir()?, has_tools: true, times: Vec::new() };
        let (sdk, root) = (repository().join("plugins/sdk"), project.root());
        let mut command = project.command("new")?;
        command.args(["web-site", "--lang", language.name(), "--kind", "example.com/v1/Website"]);
        project.run("new", command.arg("--sdk").arg(sdk).arg("--dir").arg(&root))?;
        Ok(project)
    }

    /// Makes one for the kind of an existing CRD, a file of `tests/fixtures/crds`.
    ///
    /// # Errors
    /// If the command fails.
    pub fn of_crd(language: Language, file: &str) -> Result<Self> {
        let mut project = Self { language, folder: tempfile::tempdir()?, has_tools: true, times: Vec::new() };
        let (sdk, root) = (repository().join("plugins/sdk"), project.root());
        let mut command = project.command("new")?;
        command.args(["web-site", "--lang", language.name(), "--from-crd"]);
        command.arg(repository().join("tests/fixtures/crds").join(file));
        project.run("new", command.arg("--sdk").arg(sdk).arg("--dir").arg(&root))?;
        Ok(project)
    }

    /// Gives it what a user would install into it.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn equip(self) -> Result<Self> {
        self.language.equip(&self.root())?;
        Ok(self)
    }

    /// The same sources in another folder.
    ///
    /// # Errors
    /// If they cannot be copied.
    pub fn copy(&self) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let copied = Command::new("cp").arg("-a").arg(self.root()).arg(folder.path()).status()?;
        ensure!(copied.success(), "the sources cannot be copied");
        let copy = Self { language: self.language, folder, has_tools: self.has_tools, times: Vec::new() };
        std::fs::remove_dir_all(copy.root().join("build"))?;
        Ok(copy)
    }

    /// What `pilothouse build` says of the plugin.
    ///
    /// # Errors
    /// If it is not built, with what the command prints.
    pub fn build(&mut self) -> Result<Value> {
        let mut command = self.command("build")?;
        let printed = self.run("build", command.args(["-o", "json"]).arg(self.root()))?;
        serde_json::from_str::<Value>(&printed).with_context(|| printed.clone())
    }

    /// What `pilothouse test` prints.
    ///
    /// # Errors
    /// If a case fails.
    pub fn test(&mut self) -> Result<String> {
        let mut command = self.command("test")?;
        self.run("test", command.arg(self.root()))
    }

    /// What `pilothouse test` prints of the same component, if an instance of it may answer so many calls.
    ///
    /// # Errors
    /// If a case fails.
    pub fn test_with_calls_per_instance(&mut self, calls: u32) -> Result<String> {
        let built = self.root().join("build/web-site.wasm");
        let mut inspect = self.command("inspect")?;
        let printed = self.run("inspect", inspect.args(["-o", "json"]).arg(&built))?;
        let mut manifest = serde_json::from_str::<Value>(&printed)?["manifest"].take();
        manifest["callsPerInstance"] = calls.into();
        let (packed, file) = (self.folder.path().join("packed.wasm"), self.folder.path().join("manifest.json"));
        std::fs::write(&file, manifest.to_string())?;
        let mut pack = self.command("pack")?;
        self.run("pack", pack.arg(&built).arg("--manifest").arg(&file).arg("-o").arg(&packed))?;
        let mut test = self.command("test")?;
        self.run("test", test.arg("--plugin").arg(&packed).arg(self.root().join("cases")))
    }

    /// Puts a file in the place of one of its own.
    ///
    /// # Errors
    /// If it cannot be copied.
    pub fn replace(&self, from: &Path, to: &str) -> Result<()> {
        std::fs::copy(from, self.root().join(to)).with_context(|| from.display().to_string())?;
        Ok(())
    }

    /// Adds a mistake to its sources.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn break_sources(&mut self) -> Result<&mut Self> {
        self.append(self.language.source(), self.language.mistake())?;
        Ok(self)
    }

    /// Saves a file with another text in it.
    ///
    /// # Errors
    /// If it does not have the text.
    pub fn edit(&self, file: &str, from: &str, to: &str) -> Result<()> {
        let path = self.root().join(file);
        let text = std::fs::read_to_string(&path)?;
        ensure!(text.contains(from), "'{}' has no {from:?}", path.display());
        Ok(std::fs::write(path, text.replace(from, to))?)
    }

    /// Saves its source so that it names the container of its Deployments in another way.
    ///
    /// # Errors
    /// If that is not called so now.
    pub fn rename_container(&self, from: &str, to: &str) -> Result<()> {
        let field = |name: &str| self.language.container().replace("app", name);
        self.edit(self.language.source(), &field(from), &field(to))
    }

    /// Adds text to the end of a file, which need not be there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&self, file: &str, text: &str) -> Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(self.root().join(file))?;
        Ok(writeln!(file, "\n{text}")?)
    }

    /// Puts the example of its language (`plugins/examples`) in the place of its own sources, with the cases of all languages.
    ///
    /// # Errors
    /// If a file cannot be copied.
    pub fn become_example(&self) -> Result<()> {
        let examples = repository().join("plugins/examples");
        let source = self.language.source();
        self.replace(&examples.join(self.language.name()).join(source), source)?;
        self.replace(&examples.join("plugin.yaml"), "plugin.yaml")?;
        self.replace(&examples.join("cases/website.yaml"), "cases/first.yaml")
    }

    /// From now on the PATH is empty.
    pub fn hide_tools(&mut self) {
        self.has_tools = false;
    }

    /// What its commands took.
    pub fn times(&self) -> String {
        let times: Vec<_> =
            self.times.iter().map(|(what, took)| format!("{what} {:.1} s", took.as_secs_f64())).collect();
        times.join(", ")
    }

    /// Its folder.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("web-site")
    }

    fn command(&self, subcommand: &str) -> Result<Command> {
        let mut command = Command::new(host_binary()?);
        command.arg(subcommand).current_dir(self.folder.path()).env("CARGO_TARGET_DIR", self.language.folder());
        if !self.has_tools {
            command.env("PATH", Path::new(""));
        }
        Ok(command)
    }

    fn run(&mut self, what: &'static str, command: &mut Command) -> Result<String> {
        let started = Instant::now();
        let Output { status, stdout, stderr } = command.output()?;
        self.times.push((what, started.elapsed()));
        let (printed, errors) = (String::from_utf8(stdout)?, String::from_utf8_lossy(&stderr).into_owned());
        ensure!(status.success(), "`pilothouse {what}` ended with {status}: {errors}{printed}");
        Ok(printed)
    }
}
