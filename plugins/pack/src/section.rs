//! Custom sections at the top level of a binary: taking them out and putting them in. Nested modules stay as they are.

use crate::Error;
use wasm_encoder::{ComponentSection as _, CustomSection};
use wasmparser::{Parser, Payload};

/// Splits `wasm` into what is left without the custom sections of that name, and their contents.
///
/// # Errors
/// [`Error::Malformed`] if the binary is damaged.
pub(crate) fn take(wasm: &[u8], name: &str) -> Result<(Vec<u8>, Vec<Vec<u8>>), Error> {
    let mut rest = Vec::with_capacity(wasm.len());
    let mut found = Vec::new();
    let mut depth = 0;
    // How far the input is copied, and where the section before the current one ends: headers have no range of their own.
    let (mut copied, mut end) = (0, 0);
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
                rest.extend_from_slice(&wasm[copied..end]);
                found.push(section.data().to_vec());
                end = section.range().end;
                copied = end;
            }
            other => end = other.as_section().map_or(end, |(_, range)| range.end),
        }
    }
    rest.extend_from_slice(&wasm[copied..]);
    Ok((rest, found))
}

/// Adds a custom section to the end of a component.
pub(crate) fn append(mut component: Vec<u8>, name: &str, data: &[u8]) -> Vec<u8> {
    CustomSection { name: name.into(), data: data.into() }.append_to_component(&mut component);
    component
}
