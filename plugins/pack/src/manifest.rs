//! The manifest as a plugin carries it. It is checked for form here; what a cluster grants is the host's matter.

use crate::Error;
use serde::Deserialize;

/// What a plugin says of itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Manifest {
    /// The plugin's name, a DNS label.
    pub name: String,
    /// The plugin's version.
    pub version: String,
    /// The version of the contract it was built for.
    pub contract: String,
    /// The kind it reconciles.
    pub reconciles: KindRef,
    /// The kinds it may return.
    pub children: Vec<KindRef>,
    /// The kinds it may look up.
    #[serde(default)]
    pub lookups: Vec<KindRef>,
    /// The metrics it may sample.
    #[serde(default)]
    pub measurements: Vec<Measurement>,
}

/// Which kind of object.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct KindRef {
    /// Group and version; only the version for the core group.
    pub api_version: String,
    /// The kind, in CamelCase and singular.
    pub kind: String,
}

/// A metric.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Measurement {
    /// Name of the metric.
    pub name: String,
    /// What becomes of a sample.
    pub kind: MeasurementKind,
    /// A sentence for people.
    #[serde(default)]
    pub help: String,
    /// Names of its labels.
    #[serde(default)]
    pub labels: Vec<String>,
}

/// What becomes of a sample.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum MeasurementKind {
    /// It is added.
    Counter,
    /// It is the new value.
    Gauge,
    /// It is observed.
    Histogram,
}

impl Manifest {
    /// Reads and checks a manifest.
    ///
    /// # Errors
    /// [`Error::Manifest`] names what is missing or wrong.
    pub fn read(text: &str) -> Result<Self, Error> {
        let manifest: Self =
            serde_json::from_str(text).map_err(|error| Error::Manifest(error.to_string()))?;
        match manifest.problem() {
            Some(problem) => Err(Error::Manifest(problem)),
            None => Ok(manifest),
        }
    }

    fn problem(&self) -> Option<String> {
        if !is_dns_label(&self.name) {
            return Some(format!("the name {:?} is not a DNS label", self.name));
        }
        for (field, text) in [("version", &self.version), ("contract", &self.contract)] {
            if text.is_empty() {
                return Some(format!("{field} is empty"));
            }
        }
        let kinds = std::iter::once(&self.reconciles)
            .chain(&self.children)
            .chain(&self.lookups);
        kinds
            .filter(|kind| !kind.is_well_formed())
            .map(|kind| format!("{kind:?} is no kind"))
            .next()
    }
}

impl KindRef {
    fn is_well_formed(&self) -> bool {
        let version = self.api_version.rsplit('/').next().unwrap_or_default();
        version.starts_with('v')
            && self.api_version.matches('/').count() < 2
            && self.kind.starts_with(|c: char| c.is_ascii_uppercase())
    }
}

/// The text of the one manifest among the sections found.
pub(crate) fn text(sections: Vec<Vec<u8>>) -> Result<String, Error> {
    match <[Vec<u8>; 1]>::try_from(sections) {
        Ok([bytes]) => {
            String::from_utf8(bytes).map_err(|_| Error::Manifest("not UTF-8".to_owned()))
        }
        Err(sections) if sections.is_empty() => Err(Error::NoManifest),
        Err(sections) => Err(Error::ManyManifests(sections.len())),
    }
}

fn is_dns_label(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.starts_with(plain)
        && name.ends_with(plain)
        && name.chars().all(|c| plain(c) || c == '-')
}
