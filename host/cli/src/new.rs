//! `pilothouse new`: makes the project of a plugin in a new folder. Runs nothing but Helm, and contacts nobody.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use pilothouse_authoring::{Composition, CustomKind, Definition, Language, Origin, Project, Sdk};

use crate::output;

/// Make the project of a new plugin: its sources, the CRD of its kind, an object, and test cases.
///
/// It works as it is: `pilothouse build` makes the plugin, and `pilothouse test` runs its cases, without a cluster. Its objects become
/// Deployments; go on from there.
///
/// With --from-crd FILE, the kind is that of an existing CRD: the file becomes the project's crd.yaml as it is, its spec becomes types of the
/// language, the object is made of its schema, and its objects become ConfigMaps that show their spec.
///
/// With --from-yaml or --from-chart, the children of the first version are manifests that exist, in a kind without code (`--lang compose`).
/// What usually varies becomes fields of the spec; with several sets of manifests, what differs between them; with a chart, its values.
#[derive(Args)]
pub struct New {
    /// The plugin's name, and that of its folder.
    name: String,
    /// The language, or `compose` for a kind without code. That is the default with --from-yaml and --from-chart.
    #[arg(long, required_unless_present_any = ["from_yaml", "from_chart"])]
    lang: Option<Lang>,
    /// The kind that it reconciles, such as example.com/v1/Website. With --from-crd, one of those in the file; by default, its only kind in
    /// the version that is stored.
    #[arg(long, value_name = "GROUP/VERSION/KIND", required_unless_present = "from_crd")]
    kind: Option<CustomKind>,
    /// YAML or JSON file with the CRD of the kind.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from_yaml", "from_chart"])]
    from_crd: Option<PathBuf>,
    /// YAML or JSON file with manifests, or a folder of such files. Given several times, or a folder of folders, each is one set.
    #[arg(long, value_name = "FILE|FOLDER")]
    from_yaml: Vec<PathBuf>,
    /// A chart of Helm: its folder, or a .tgz. It is rendered with the `helm` in the PATH, once for each of its values and a few times more.
    #[arg(long, value_name = "CHART", conflicts_with = "from_yaml")]
    from_chart: Option<PathBuf>,
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
    Compose,
}

impl Lang {
    /// None for a kind without code.
    fn language(self) -> Option<Language> {
        match self {
            Self::Rust => Some(Language::Rust),
            Self::Go => Some(Language::Go),
            Self::C => Some(Language::C),
            Self::Python => Some(Language::Python),
            Self::Ts => Some(Language::TypeScript),
            Self::Compose => None,
        }
    }
}

impl New {
    /// Runs the command.
    ///
    /// # Errors
    /// If there can be no such plugin, what it is made of cannot be used, or the folder exists.
    pub fn execute(self) -> anyhow::Result<()> {
        let folder = self.dir.clone().unwrap_or_else(|| PathBuf::from(&self.name));
        // Before anything is read or rendered, which may take a while.
        ensure!(!folder.exists(), "'{}' is there already; choose another name or folder", folder.display());
        match self.lang.unwrap_or(Lang::Compose).language() {
            Some(language) => self.with_code(language, &folder),
            None => self.without_code(&folder),
        }
    }

    fn with_code(self, language: Language, folder: &Path) -> anyhow::Result<()> {
        ensure!(
            self.from_yaml.is_empty() && self.from_chart.is_none(),
            "manifests become children without code: leave out --lang, or say --lang compose"
        );
        let sdk = self.sdk()?;
        let definition = self.from_crd.as_deref().map(|file| Definition::read(file, self.kind.as_ref())).transpose()?;
        let kind = definition.as_ref().map(|definition| definition.kind.clone()).or(self.kind);
        let kind = kind.context("name the kind with --kind, or a file that has its CRD with --from-crd")?;
        let project = Project { name: self.name, kind, language, sdk, definition };
        print_files(folder, &project.create(folder)?)?;
        print_notes(&project.notes());
        let shown = folder.display();
        eprintln!("next: pilothouse build {shown} && pilothouse test {shown}; {shown}/README.md says more");
        Ok(())
    }

    fn without_code(self, folder: &Path) -> anyhow::Result<()> {
        ensure!(
            self.from_crd.is_none(),
            "types are for languages; a kind without code reads the fields of any CRD as they are: say --kind, and put the CRD in the place of crd.yaml"
        );
        let kind = self.kind.context("name the kind with --kind")?;
        let origin = match (self.from_yaml, self.from_chart) {
            (_, Some(chart)) => Origin::Chart(chart),
            (manifests, None) if !manifests.is_empty() => Origin::Manifests(manifests),
            _ => Origin::Template,
        };
        let composition = Composition::new(self.name, kind, &origin)?;
        print_files(folder, &composition.create(folder)?)?;
        if let Some((children, fields)) = composition.made() {
            eprintln!("{children} children, and {fields} fields of the spec");
        }
        print_notes(&composition.notes());
        let shown = folder.display();
        eprintln!(
            "next: put compose.wasm into {shown}/build, and `pilothouse test {shown}`; {shown}/README.md says more"
        );
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

fn print_files(folder: &Path, files: &[&str]) -> anyhow::Result<()> {
    for file in files {
        output::print_line(folder.join(file).display())?;
    }
    Ok(())
}

fn print_notes(notes: &[String]) {
    for note in notes {
        eprintln!("note: {note}");
    }
}
