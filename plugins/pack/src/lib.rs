//! Makes a plugin of WebAssembly: a core module becomes a component, the component is checked, and the manifest becomes a
//! custom section of its own at the component's top level. It never runs or compiles what it packs.

mod component;
mod error;
mod manifest;
mod section;

pub use error::Error;
pub use manifest::{KindRef, Manifest, Measurement, MeasurementKind};

use wasmparser::Parser;

/// Name of the custom section that holds the manifest, in core modules and in components.
pub const MANIFEST_SECTION: &str = "pilothouse:manifest";

/// A plugin, ready to be loaded by a host.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The component with its manifest.
    pub wasm: Vec<u8>,
    /// The manifest, read.
    pub manifest: Manifest,
}

/// Packs `input`, a core module with embedded component types or a component. `manifest`, as JSON text, takes the place of
/// the one embedded in `input`, if any. Packing a packed plugin changes nothing.
///
/// # Errors
/// See [`Error`]: the input is not WebAssembly, cannot become a component, does not export what a plugin exports, or the
/// manifest is missing or wrong.
pub fn pack(input: &[u8], manifest: Option<&str>) -> Result<Packed, Error> {
    let (component, embedded) = if Parser::is_component(input) {
        let (rest, embedded) = section::take(input, MANIFEST_SECTION)?;
        component::validate(&rest)?;
        (rest, embedded)
    } else if Parser::is_core_wasm(input) {
        let (module, embedded) = section::take(input, MANIFEST_SECTION)?;
        (component::encode(&module)?, embedded)
    } else {
        return Err(Error::NotWasm);
    };
    let text = match manifest {
        Some(text) => text.to_owned(),
        None => manifest::text(embedded)?,
    };
    let manifest = Manifest::read(&text)?;
    component::check_exports(&component, &manifest)?;
    let wasm = section::append(component, MANIFEST_SECTION, text.trim().as_bytes());
    Ok(Packed { wasm, manifest })
}
