//! Makes and checks components. It does not look at what a component does.

use crate::{Error, cleanup};
use wasmparser::{Validator, WasmFeatures};
use wit_component::ComponentEncoder;

/// Makes a component of a core module with embedded component types. The component does not clean up after a call, since its
/// instance is gone by then.
///
/// # Errors
/// [`Error::Encode`]: the module does not fit the component model.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>, Error> {
    let module = cleanup::remove_post_return(module).map_err(|error| Error::Encode(error.to_string()))?;
    let encode_error = |error| Error::Encode(format!("{error:#}"));
    let mut encoder = ComponentEncoder::default().validate(true).module(&module).map_err(encode_error)?;
    encoder.encode().map_err(encode_error)
}

/// Checks that a component is well formed.
///
/// # Errors
/// [`Error::Malformed`]: it is not.
pub(crate) fn validate(component: &[u8]) -> Result<(), Error> {
    Validator::new_with_features(WasmFeatures::default()).validate_all(component)?;
    Ok(())
}
