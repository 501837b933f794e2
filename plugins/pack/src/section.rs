//! Takes custom sections out of a binary's top level, and puts them in. It does not touch nested modules.

use crate::Error;
use wasm_encoder::{ComponentSection as _, CustomSection};
use wasmparser::{Parser, Payload};

/// A binary, and the custom sections that were taken out of it.
pub(crate) struct Extracted {
    /// The binary without the sections.
    pub(crate) rest: Vec<u8>,
    /// The contents of the sections, in their order.
    pub(crate) contents: Vec<Vec<u8>>,
}

/// Takes all custom sections of that name out of `wasm`.
///
/// # Errors
/// [`Error::Malformed`] if the binary is damaged.
pub(crate) fn extract(wasm: &[u8], name: &str) -> Result<Extracted, Error> {
    let mut rest = Vec::with_capacity(wasm.len());
    let mut contents = Vec::new();
    let mut depth = 0;
    let mut copied_up_to = 0;
    // The end of the section before the current one. The parser gives no range for a section's header, which begins there.
    let mut end = 0;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::Version { range, .. } => {
                depth += 1;
                end = range.end;
            }
            Payload::End(offset) => {
                depth -= 1;
                end = offset;
            }
            Payload::CustomSection(section) if depth == 1 && section.name() == name => {
                rest.extend_from_slice(&wasm[copied_up_to..end]);
                contents.push(section.data().to_vec());
                end = section.range().end;
                copied_up_to = end;
            }
            other => end = other.as_section().map_or(end, |(_, range)| range.end),
        }
    }
    rest.extend_from_slice(&wasm[copied_up_to..]);
    Ok(Extracted { rest, contents })
}

/// Adds a custom section to the end of a component.
pub(crate) fn append(mut component: Vec<u8>, name: &str, data: &[u8]) -> Vec<u8> {
    CustomSection { name: name.into(), data: data.into() }.append_to_component(&mut component);
    component
}
