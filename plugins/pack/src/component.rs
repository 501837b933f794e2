//! Making and checking components. What the component does is not looked at, only what it exports.

use crate::{Error, Manifest};
use wasmparser::{Parser, Payload, Validator, WasmFeatures};
use wit_component::ComponentEncoder;

const RECONCILER: &str = "pilothouse:plugin/reconciler@";

/// Makes a component of a core module with embedded component types.
///
/// # Errors
/// [`Error::Encode`] says what does not fit.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>, Error> {
    let described = |error| Error::Encode(format!("{error:#}"));
    let mut encoder = ComponentEncoder::default()
        .validate(true)
        .module(module)
        .map_err(described)?;
    encoder.encode().map_err(described)
}

/// Checks that a component is well formed.
///
/// # Errors
/// [`Error::Malformed`] says where it is not.
pub(crate) fn validate(component: &[u8]) -> Result<(), Error> {
    Validator::new_with_features(WasmFeatures::default()).validate_all(component)?;
    Ok(())
}

/// Checks that a component exports what a plugin exports, for the contract that its manifest names.
///
/// # Errors
/// [`Error::NoReconciler`] and [`Error::OtherContract`].
pub(crate) fn check_exports(component: &[u8], manifest: &Manifest) -> Result<(), Error> {
    let exports = exports(component)?;
    let Some(version) = exports
        .iter()
        .find_map(|name| name.strip_prefix(RECONCILER))
    else {
        let listed = if exports.is_empty() {
            "nothing".to_owned()
        } else {
            exports.join(", ")
        };
        return Err(Error::NoReconciler(listed));
    };
    if version != manifest.contract {
        let (manifest, component) = (manifest.contract.clone(), version.to_owned());
        return Err(Error::OtherContract {
            manifest,
            component,
        });
    }
    Ok(())
}

/// The names that a component exports at its top level.
fn exports(component: &[u8]) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    let mut depth = 0;
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    names.push(export?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(names)
}
