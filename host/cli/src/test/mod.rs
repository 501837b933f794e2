//! `pilothouse test`: runs the test cases of a plugin, without a cluster.

pub(crate) mod files;
pub(crate) mod versions;

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, bail};
use clap::Args;
use pilothouse_controller::errors::chain;
use pilothouse_engine::Reconciler;
use pilothouse_offline::cases::{self, Case, Rewrite, report, rewrite};

use self::{files::CaseFiles, versions::Versions};
use crate::{cache_dir::CacheDir, config_file::read_config, logging::Logging, offline::Output, output};

/// Run the test cases of a plugin, without a cluster.
///
/// A case is a YAML document: the object and what the plugin can see besides, and the answer that is expected. A plugin's cases lie
/// in the folder `cases` beside its sources. The plugin runs under the host's limits, and its answer passes the host's own checks.
/// Each call is made twice, and once with the children in the opposite order: a plugin must be a function of its request.
///
///   object: {apiVersion: example.com/v1, kind: Greeting, metadata: {name: first}, spec: {name: world}}
///   expect:
///     verdict: done
///     children:
///     - {apiVersion: v1, kind: ConfigMap, metadata: {name: first}, data: {greeting: "Hello, world!"}}
///
/// Only what `expect` names is compared, but lists as a whole; with `match: exact` everything is. A case without `expect` gets
/// one from --update. docs/authoring.md has the whole format. Exit codes: 0 all cases passed, 1 one did not or is malformed, 2 wrong
/// arguments.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Test {
    /// Folders of plugins, folders with case files, or case files.
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,
    /// The plugin. Default: the one in the folder `build` beside the folder of the cases.
    #[arg(long, value_name = "FILE.wasm")]
    plugin: Option<PathBuf>,
    /// YAML or JSON file with the plugin's configuration in all cases, or with a Plugin that has it. A plugin whose kinds come from its
    /// configuration needs it, unless each case has one of its own, or composition.yaml lies beside the folder of the cases.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write what the plugin answers now into the cases that fail for another answer, or that expect nothing yet.
    #[arg(long)]
    update: bool,
    /// Also write the results as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print as.
    #[arg(long, short, default_value = "text")]
    output: Output,
    #[command(flatten)]
    cache_dir: CacheDir,
    #[command(flatten)]
    logging: Logging,
}

impl Test {
    /// Runs the command.
    ///
    /// # Errors
    /// If a case does not pass, or there is nothing to run.
    pub fn execute(&self) -> anyhow::Result<()> {
        self.logging.start()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")?;
        runtime.block_on(self.run())
    }

    async fn run(&self) -> anyhow::Result<()> {
        let mut results = Vec::new();
        let mut malformed = 0;
        let config = self.config.as_deref().map(read_config).transpose()?;
        for CaseFiles { plugin, files } in files::find(&self.paths, self.plugin.as_deref())? {
            let mut versions = Versions::load(&plugin, &self.cache_dir, config.as_ref()).await?;
            for file in files {
                match self.run_file(&mut versions, &file).await {
                    Ok(of_file) => {
                        self.print(&of_file)?;
                        results.extend(of_file);
                    }
                    Err(error) => {
                        // The others are worth to be seen, too.
                        eprintln!("error: {}", chain(error.as_ref()));
                        malformed += 1;
                    }
                }
            }
        }
        if let Some(junit) = &self.junit {
            std::fs::write(junit, report::junit(&results))
                .with_context(|| format!("failed to write '{}'", junit.display()))?;
        }
        let failed = report::failed(&results);
        let (all, passed) = (results.len(), results.len() - failed);
        match self.output {
            Output::Text => output::print_line(format_args!("{all} cases: {passed} passed, {failed} failed"))?,
            Output::Json => output::print_line(report::json(&results))?,
        }
        match (failed, malformed) {
            (0, 0) => Ok(()),
            (failed, 0) => bail!("{failed} of {all} cases failed"),
            (0, malformed) => bail!("{malformed} case files cannot be used"),
            (failed, malformed) => bail!("{failed} of {all} cases failed, and {malformed} case files cannot be used"),
        }
    }

    async fn run_file(&self, versions: &mut Versions<'_>, file: &Path) -> anyhow::Result<Vec<report::Result>> {
        let results = run_configured(versions, file).await?;
        let rewrites: Vec<_> = results.iter().flat_map(|result| result.ran.rewrites.clone()).collect();
        if !self.update || rewrites.is_empty() {
            return Ok(results);
        }
        write_expectations(file, rewrites)?;
        run_configured(versions, file).await
    }

    fn print(&self, results: &[report::Result]) -> anyhow::Result<()> {
        match self.output {
            Output::Text => Ok(results.iter().map(report::Result::text).try_for_each(output::print)?),
            Output::Json => Ok(()),
        }
    }
}

/// Runs the cases of a file, each with the configuration that it has.
///
/// # Errors
/// If the file holds no cases.
pub(crate) async fn run_cases(plugin: &dyn Reconciler, file: &Path) -> anyhow::Result<Vec<report::Result>> {
    let mut results = Vec::new();
    for case in cases::read(file)? {
        results.push(run_case(plugin, case).await);
    }
    Ok(results)
}

/// Runs the cases of a file, each with the version for its configuration, or for that of its project.
///
/// # Errors
/// If the file holds no cases, or a configuration cannot be used.
pub(crate) async fn run_configured(versions: &mut Versions<'_>, file: &Path) -> anyhow::Result<Vec<report::Result>> {
    let mut results = Vec::new();
    let project = files::composition(file)?.as_deref().map(read_config).transpose()?;
    for mut case in cases::read(file)? {
        let plugin = versions.of(&mut case, project.as_ref()).await?;
        results.push(run_case(plugin, case).await);
    }
    Ok(results)
}

async fn run_case(plugin: &dyn Reconciler, case: Case) -> report::Result {
    let started = Instant::now();
    let ran = cases::run(plugin, &case).await;
    report::Result { name: case.name, place: case.place, duration: started.elapsed(), ran }
}

fn write_expectations(file: &Path, rewrites: Vec<Rewrite>) -> anyhow::Result<()> {
    let (text, number) = (std::fs::read_to_string(file)?, rewrites.len());
    let text = match rewrite(&text, rewrites) {
        Ok(text) => text,
        Err(place) => {
            bail!("{place}: this case or step is written in braces; write it line by line, so that --update can")
        }
    };
    std::fs::write(file, text).with_context(|| format!("failed to write '{}'", file.display()))?;
    eprintln!("updated: {} ({number} expectations)", file.display());
    Ok(())
}
