//! What a component says about itself: a manifest, or that its manifest is made of its configuration. Read from its bytes, without running or
//! compiling anything.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use wasmparser::{Encoding, Parser, Payload};

use crate::{
    ConfigError, ConfigSchema, ContractSeries, Interfaces, Manifest, ManifestError, SECTION,
    manifest::{PACKAGE, is_dns_label},
};

/// What a component says about itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Declaration {
    /// It has one kind, whatever its configuration.
    Fixed(Box<Manifest>),
    /// It exports `configurator`: of its configuration, it makes its manifest.
    Configured(Template),
}

/// The manifest of a component whose kinds come from its configuration. What such a component may do is not known before it has been asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// The component's name. A plugin that is made of it has a name of its own.
    pub name: String,
    /// The component's own version, for people.
    pub version: String,
    /// Version of the contract it was built for.
    pub contract: String,
    /// The JSON schema that its configuration has to fit, before the component is asked what it makes of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<ConfigSchema>,
    /// Whether it exports `finalizer`. Not declared but seen in the component.
    #[serde(default, skip)]
    pub finalizes: bool,
}

/// What a pass over the bytes finds.
#[derive(Default)]
struct Found {
    manifests: BTreeSet<Vec<u8>>,
    interfaces: Vec<String>,
    imports: Vec<String>,
}

/// A value, and the paths of the fields in its text that it does not have.
struct Parsed<T> {
    value: T,
    unknown: Vec<String>,
}

impl Declaration {
    /// Reads it, and checks that the component speaks this host's contract. Runs and compiles nothing.
    ///
    /// # Errors
    /// Each way in which bytes are not a plugin has its own [`ManifestError`], which says what to do.
    pub fn read(bytes: &[u8]) -> Result<Self, ManifestError> {
        let found = scan(bytes)?;
        let text = match (found.manifests.len(), found.manifests.first()) {
            (1, Some(text)) => Ok(text),
            (0, _) => Err(ManifestError::Missing),
            (several, _) => Err(ManifestError::Several(several)),
        };
        // A version mismatch explains everything else, so it is told first.
        let exported = found.exports("reconciler");
        if let (Some(found), false) = (exported.first(), exported.iter().any(|it| ContractSeries::of(it).is_some())) {
            return Err(ManifestError::ContractVersion { found: (*found).to_owned() });
        }
        match found.exports("configurator").is_empty() {
            true => {
                let Parsed { value: manifest, unknown } = parse::<Manifest>(text?)?;
                found.fixed(manifest, &unknown).map(|manifest| Self::Fixed(Box::new(manifest)))
            }
            false => {
                let Parsed { value: template, unknown } = parse::<Template>(text?)?;
                found.configured(template, &unknown).map(Self::Configured)
            }
        }
    }

    /// The manifest of a component that has one whatever its configuration.
    ///
    /// # Errors
    /// [`ManifestError::TakesConfig`] for one that has not.
    pub fn fixed(self) -> Result<Manifest, ManifestError> {
        match self {
            Self::Fixed(manifest) => Ok(*manifest),
            Self::Configured(template) => Err(ManifestError::TakesConfig { name: template.name }),
        }
    }

    /// The component's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Fixed(manifest) => &manifest.name,
            Self::Configured(template) => &template.name,
        }
    }

    /// The component's own version.
    pub fn version(&self) -> &str {
        match self {
            Self::Fixed(manifest) => &manifest.version,
            Self::Configured(template) => &template.version,
        }
    }
}

/// Whether an instance of a component with this manifest, JSON text, may come to answer several calls. It may where that is not known yet, for
/// its kinds come from a configuration.
pub fn may_answer_again(manifest: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Said {
        reconciles: Option<serde::de::IgnoredAny>,
        calls_per_instance: Option<u64>,
    }
    // One that is malformed is refused by whoever reads it as a whole.
    serde_json::from_slice(manifest)
        .map_or(true, |said: Said| said.reconciles.is_none() || said.calls_per_instance.is_some_and(|calls| calls > 1))
}

impl Template {
    /// Judges a configuration, JSON text, by the schema. None: `null`.
    ///
    /// # Errors
    /// [`ConfigError`] if there is a schema, and the configuration does not fit.
    pub fn check_config(&self, config: Option<&str>) -> Result<(), ConfigError> {
        self.config_schema.as_ref().map_or(Ok(()), |schema| schema.check(config.unwrap_or("null")))
    }

    /// The manifest that the component has made of its configuration, JSON text. It says nothing of the contract and of the schema, which are
    /// the component's, and has the component's version unless it names one.
    ///
    /// # Errors
    /// [`ManifestError`] if it is no manifest.
    pub fn manifest(&self, text: &str) -> Result<Manifest, ManifestError> {
        let mut fields: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(text).map_err(ManifestError::Malformed)?;
        fields.insert("contract".to_owned(), self.contract.clone().into());
        fields.entry("version").or_insert_with(|| self.version.clone().into());
        let Parsed { value: mut manifest, unknown } =
            parse::<Manifest>(&serde_json::Value::Object(fields).to_string().into_bytes())?;
        if !unknown.is_empty() {
            return Err(ManifestError::UnknownFields(unknown.join(", ")));
        }
        manifest.config_schema = self.config_schema.clone();
        manifest.finalizes = self.finalizes;
        manifest.validate()?;
        manifest.validate_decorates()?;
        Ok(manifest)
    }

    fn validate(&self) -> Result<(), ManifestError> {
        let invalid = |field, reason: String| Err(ManifestError::Invalid { field, reason });
        if !is_dns_label(&self.name) {
            return invalid(
                "name",
                "it must be a DNS label: at most 63 of a-z, 0-9 and -, beginning with a letter".to_owned(),
            );
        }
        match self.config_schema.as_ref().and_then(ConfigSchema::fault) {
            Some(fault) => invalid("configSchema", fault),
            None => Ok(()),
        }
    }
}

impl Found {
    /// The versions of an interface of the contract that are exported.
    fn exports(&self, interface: &str) -> Vec<&str> {
        self.interfaces.iter().filter_map(|name| name.strip_prefix(interface)?.strip_prefix('@')).collect()
    }

    /// A manifest that was found, with what the component shows of itself.
    fn fixed(&self, mut manifest: Manifest, unknown: &[String]) -> Result<Manifest, ManifestError> {
        let series = ContractSeries::of(&manifest.contract);
        self.check_imports()?;
        check_unknown(series, unknown)?;
        manifest.validate()?;
        self.check_contract(&manifest.contract, series)?;
        if !series.is_some_and(ContractSeries::declares_namespaces_of_lookups) {
            // It says nothing about namespaces, and may look into all of them by their names.
            manifest.lookups.iter_mut().for_each(|lookup| lookup.all_namespaces = true);
        }
        manifest.finalizes = self.exports_as(series, "finalizer");
        manifest.validate_decorates()?;
        Ok(manifest)
    }

    /// The same for a component whose manifest is made of its configuration.
    fn configured(&self, mut template: Template, unknown: &[String]) -> Result<Template, ManifestError> {
        let series = ContractSeries::of(&template.contract);
        self.check_imports()?;
        check_unknown(series, unknown)?;
        if series.is_none() {
            return Err(ManifestError::ContractVersion { found: template.contract });
        }
        template.validate()?;
        self.check_contract(&template.contract, series)?;
        template.finalizes = self.exports_as(series, "finalizer");
        Ok(template)
    }

    /// Before it is compiled: it may well have types that the compiler does not know.
    fn check_imports(&self) -> Result<(), ManifestError> {
        match self.imports.iter().find(|import| is_newer_wasi(import)) {
            Some(import) => Err(ManifestError::Wasi { import: import.clone() }),
            None => Ok(()),
        }
    }

    fn exports_as(&self, series: Option<ContractSeries>, interface: &str) -> bool {
        self.exports(interface).iter().any(|version| ContractSeries::of(version) == series)
    }

    /// A component may export several versions, for hosts of different ages. The manifest says which one is meant here.
    fn check_contract(&self, meant: &str, series: Option<ContractSeries>) -> Result<(), ManifestError> {
        let exported = self.exports("reconciler");
        if exported.is_empty() {
            return Err(ManifestError::NoReconciler);
        }
        if !self.exports_as(series, "reconciler") {
            let exported = exported.join(" and ");
            let reason = format!("it is {meant}, but the component exports {PACKAGE}reconciler of {exported}");
            return Err(ManifestError::Invalid { field: "contract", reason });
        }
        Ok(())
    }
}

/// Whoever is newer than this host may well have fields that it does not know. The version says more.
fn check_unknown(series: Option<ContractSeries>, unknown: &[String]) -> Result<(), ManifestError> {
    match series.is_some_and(ContractSeries::refuses_unknown_fields) && !unknown.is_empty() {
        true => Err(ManifestError::UnknownFields(unknown.join(", "))),
        false => Ok(()),
    }
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<Parsed<T>, ManifestError> {
    let mut unknown = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(text);
    let value = serde_ignored::deserialize(&mut json, |path| unknown.push(path.to_string()));
    let value = value.and_then(|value| json.end().map(|()| value)).map_err(ManifestError::Malformed)?;
    Ok(Parsed { value, unknown })
}

fn scan(bytes: &[u8]) -> Result<Found, ManifestError> {
    let (mut found, mut depth) = (Found::default(), 0usize);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(ManifestError::NotWasm)? {
            Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                return Err(ManifestError::NotComponent);
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if section.name() == SECTION => {
                found.manifests.insert(section.data().to_vec());
            }
            _ => {}
        }
    }
    let Interfaces { imports, exports } = Interfaces::read(bytes).map_err(ManifestError::NotWasm)?;
    found.imports = imports;
    found.interfaces = exports.iter().filter_map(|name| name.strip_prefix(PACKAGE).map(str::to_owned)).collect();
    Ok(found)
}

/// Whether an import is an interface of a WASI after 0.2.
fn is_newer_wasi(import: &str) -> bool {
    let version = import.strip_prefix("wasi:").and_then(|name| name.split_once('@')).map(|(_, version)| version);
    let mut numbers =
        version.into_iter().flat_map(|version| version.splitn(3, '.')).map_while(|it| it.parse::<u32>().ok());
    let (major, minor) = (numbers.next(), numbers.next());
    (major, minor) > (Some(0), Some(2))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::CONTRACT_VERSION;

    fn template() -> Template {
        Template {
            name: "compose".to_owned(),
            version: "0.1.0".to_owned(),
            contract: CONTRACT_VERSION.to_owned(),
            config_schema: None,
            finalizes: false,
        }
    }

    #[test]
    fn a_manifest_that_is_made_of_a_configuration_is_one_of_the_component() -> Result<(), ManifestError> {
        let kind = json!({"apiVersion": "example.com/v1", "kind": "Web"});
        let made = template().manifest(&json!({"name": "web", "reconciles": kind}).to_string())?;
        assert_eq!(
            (made.name.as_str(), made.version.as_str(), made.contract.as_str()),
            ("web", "0.1.0", CONTRACT_VERSION)
        );
        let own = json!({"name": "web", "version": "2", "contract": "0.1.0", "reconciles": kind}).to_string();
        let made = template().manifest(&own)?;
        assert_eq!(
            (made.version.as_str(), made.contract.as_str()),
            ("2", CONTRACT_VERSION),
            "the contract is no choice"
        );
        Ok(())
    }

    #[test]
    fn what_is_made_of_a_configuration_is_checked_as_any_manifest_is() {
        let kind = json!({"apiVersion": "example.com/v1", "kind": "Web"});
        for (text, words) in [
            ("[".to_owned(), "malformed"),
            (json!({"name": "web"}).to_string(), "reconciles"),
            (json!({"name": "web", "reconciles": kind, "childs": []}).to_string(), "childs"),
            (json!({"name": "Web", "reconciles": kind}).to_string(), "`name`"),
            (json!({"name": "web", "reconciles": kind, "children": [kind]}).to_string(), "`children`"),
        ] {
            let told = template().manifest(&text).map_err(|error| error.to_string());
            assert!(told.as_ref().is_err_and(|told| told.contains(words)), "{text}: {told:?}");
        }
    }

    #[test]
    fn names_the_fields_that_no_manifest_has() {
        let text = r#"{"name":"web","version":"1","contract":"0.2.0","colour":1,
            "reconciles":{"apiVersion":"example.com/v1","kind":"Web","plural":"webs"},
            "childReads":[{"apiVersion":"v1","kind":"Pod","fields":[],"field":"/a"}],
            "lookups":[{"apiVersion":"v1","kind":"Node","allNamespaces":true,"labels":"a"}]}"#;
        let unknown = parse::<Manifest>(text.as_bytes()).map(|parsed| parsed.unknown).unwrap_or_default();
        assert_eq!(unknown, ["colour", "reconciles.plural", "childReads.0.field", "lookups.0.labels"]);
    }

    #[test]
    fn knows_what_wasi_it_has() {
        for (import, is_newer) in [
            ("wasi:cli/environment@0.2.0", false),
            ("wasi:cli/environment@0.2.6", false),
            ("wasi:io/streams@0.2.0-rc-2023-11-10", false),
            ("wasi:cli/environment@0.3.0", true),
            ("wasi:clocks/monotonic-clock@0.3.0-rc-2025-09-16", true),
            ("wasi:cli/environment@1.0.0", true),
            ("wasi:cli/environment", false),
            ("pilothouse:plugin/clock@0.2.0", false),
            ("example:clock/now@3.0.0", false),
        ] {
            assert_eq!(is_newer_wasi(import), is_newer, "{import}");
        }
    }
}
