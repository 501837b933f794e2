//! Makes and checks components. It does not look at what a component does.

use crate::{Error, cleanup, contract::Contract, module::Module, preview1};
use wasmparser::{Validator, WasmFeatures};
use wit_component::ComponentEncoder;

/// When a component gives back the memory of what it has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cleanup {
    /// After each call, for its instance may answer the next one.
    AfterEachCall,
    /// Its instance is gone by then.
    Never,
}

/// Makes a component of a core module. Where the module has no embedded component types, it gets those of the contract; where it imports
/// WASI preview 1, it gets an adapter.
///
/// # Errors
/// [`Error::Encode`]: the module does not fit the component model.
pub(crate) fn encode(module: &[u8], cleanup: Cleanup) -> Result<Vec<u8>, Error> {
    let mut bytes = match cleanup {
        Cleanup::AfterEachCall => module.to_vec(),
        Cleanup::Never => cleanup::remove_post_return(module).map_err(|error| Error::Encode(error.to_string()))?,
    };
    let encode_error = |error| Error::Encode(format!("{error:#}"));
    let module = Module::read(&bytes)?;
    if !module.has_types {
        Contract::of(&module)?.embed(&mut bytes)?;
    }
    let mut encoder = ComponentEncoder::default().validate(true).module(&bytes).map_err(encode_error)?;
    if module.imports_preview1 {
        let contract = Contract::of(&module)?;
        let adapter = preview1::adapter(contract.packages(), contract.version())?;
        encoder = encoder.adapter(preview1::NAME, &adapter).map_err(encode_error)?;
    }
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
