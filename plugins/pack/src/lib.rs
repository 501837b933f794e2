//! Makes a plugin of WebAssembly: a core module becomes a component, the component is checked, and the manifest becomes a
//! custom section of its own at the component's top level. It never runs or compiles what it packs.

mod cleanup;
mod component;
mod error;
mod section;

pub use error::Error;

use pilothouse_wit::{Manifest, SECTION};
use wasmparser::Parser;

/// A plugin, ready to be loaded by a host.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The component with its manifest.
    pub wasm: Vec<u8>,
    /// The manifest, read back from the component as a host reads it.
    pub manifest: Manifest,
}

/// Packs `input`, a core module with embedded component types or a component. `manifest`, as JSON text, takes the place of
/// the one embedded in `input`, if any. Packing a packed plugin changes nothing.
///
/// # Errors
/// See [`Error`]: the input is not WebAssembly, cannot become a component, or what comes out is not a plugin.
pub fn pack(input: &[u8], manifest: Option<&str>) -> Result<Packed, Error> {
    let (component, embedded) = if Parser::is_component(input) {
        let (rest, embedded) = section::take(input, SECTION)?;
        component::validate(&rest)?;
        (rest, embedded)
    } else if Parser::is_core_wasm(input) {
        let (module, embedded) = section::take(input, SECTION)?;
        (component::encode(&module)?, embedded)
    } else {
        return Err(Error::NotWasm);
    };
    let mut texts = manifest.map_or(embedded, |text| vec![text.as_bytes().to_vec()]);
    texts.dedup();
    let wasm = texts.iter().fold(component, |component, text| section::append(component, SECTION, text.trim_ascii()));
    let manifest = Manifest::read(&wasm)?;
    Ok(Packed { wasm, manifest })
}
