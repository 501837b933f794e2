//! Making and checking components. What the component does is not looked at.

use crate::{Error, cleanup};
use wasmparser::{Validator, WasmFeatures};
use wit_component::ComponentEncoder;

/// Makes a component of a core module with embedded component types. It does not clean up after a call, for its instance is
/// gone then.
///
/// # Errors
/// [`Error::Encode`] says what does not fit.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>, Error> {
    let module = cleanup::without(module).map_err(|error| Error::Encode(error.to_string()))?;
    let described = |error| Error::Encode(format!("{error:#}"));
    let mut encoder = ComponentEncoder::default().validate(true).module(&module).map_err(described)?;
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
