//! Makes a plugin of a WebAssembly file: a core module becomes a component, the component is checked, and the manifest becomes
//! a custom section at the component's top level. It never runs or compiles what it packs.
//!
//! A core module need not know of components: one that exports `reconcile` under its name in the canonical ABI gets the types of the
//! contract, and one that imports WASI preview 1 gets an adapter that answers as a host without files, network and environment.

mod cleanup;
mod component;
mod contract;
mod error;
mod module;
mod preview1;
mod reference;
mod section;

pub use error::Error;
pub use reference::contract_reference;

use component::Cleanup;
use pilothouse_wit::{Declaration, SECTION, may_answer_again};
use wasmparser::Parser;

/// A plugin, ready to be loaded by a host.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The component with its manifest.
    pub wasm: Vec<u8>,
    /// What it says about itself, read back from the component as a host reads it.
    pub declaration: Declaration,
}

/// Packs `input`, a core module or a component. `manifest` is JSON text and replaces a manifest
/// that is embedded in `input`. Packing a packed plugin changes nothing.
///
/// # Errors
/// See [`Error`]: the input is not WebAssembly, cannot become a component, or what comes out is not a plugin.
pub fn pack(input: &[u8], manifest: Option<&str>) -> Result<Packed, Error> {
    if !Parser::is_component(input) && !Parser::is_core_wasm(input) {
        return Err(Error::NotWasm);
    }
    let section::Extracted { rest, contents: embedded } = section::extract(input, SECTION)?;
    let mut manifests = manifest.map_or(embedded, |text| vec![text.as_bytes().to_vec()]);
    let component = if Parser::is_component(input) {
        component::validate(&rest)?;
        rest
    } else {
        component::encode(&rest, cleanup(&manifests))?
    };
    // The same manifest twice is no conflict. Different ones both stay, and reading the result refuses them.
    manifests.dedup();
    let append = |component, text: &Vec<u8>| section::append(component, SECTION, text.trim_ascii());
    let wasm = manifests.iter().fold(component, append);
    let declaration = Declaration::read(&wasm)?;
    Ok(Packed { wasm, declaration })
}

fn cleanup(manifests: &[Vec<u8>]) -> Cleanup {
    match manifests.iter().any(|text| may_answer_again(text)) {
        true => Cleanup::AfterEachCall,
        false => Cleanup::Never,
    }
}
