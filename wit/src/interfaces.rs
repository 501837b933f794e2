//! The interfaces that a component imports and exports, read from its bytes. Runs and compiles nothing.

use wasmparser::{BinaryReaderError, Parser, Payload};

/// What a component needs and what it offers, by the names of its interfaces with their versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// What it imports.
    pub imports: Vec<String>,
    /// What it exports.
    pub exports: Vec<String>,
}

impl Interfaces {
    /// Those of a component.
    ///
    /// # Errors
    /// The bytes are not WebAssembly.
    pub fn read(bytes: &[u8]) -> Result<Self, BinaryReaderError> {
        let (mut found, mut depth) = (Self::default(), 0usize);
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                // Those of modules and components inside it are its own affair.
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(imports) if depth == 0 => {
                    for import in imports {
                        found.imports.push(import?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(exports) if depth == 0 => {
                    for export in exports {
                        found.exports.push(export?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(found)
    }
}
