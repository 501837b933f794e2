//! WASI preview 1 for core modules that import it: a module beside them that answers as a host without files, network and environment.
//! It does not look at the module that it is for.

use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::Error;

/// The module name of the imports.
pub(crate) const NAME: &str = "wasi_snapshot_preview1";

const ADAPTER: &str = include_str!("adapter.wat");
const WORLD: &str = include_str!("adapter.wit");

/// The adapter, for a plugin of this version of the contract. `contract` has the contract's packages.
///
/// # Errors
/// [`Error::Encode`]: the contract has no log or no trap.
pub(crate) fn adapter(contract: &Resolve, version: &str) -> Result<Vec<u8>, Error> {
    let fill = |text: &str| text.replace("CONTRACT_VERSION", version);
    let encode_error = |error: &dyn std::fmt::Display| Error::Encode(format!("{error:#}"));
    let mut module = wat::parse_str(fill(ADAPTER)).map_err(|error| encode_error(&error))?;
    let mut packages = contract.clone();
    let package = packages.push_str("adapter.wit", &fill(WORLD)).map_err(|error| encode_error(&error))?;
    let world = packages.select_world(&[package], None).map_err(|error| encode_error(&error))?;
    embed_component_metadata(&mut module, &packages, world, StringEncoding::UTF8)
        .map_err(|error| encode_error(&error))?;
    Ok(module)
}
