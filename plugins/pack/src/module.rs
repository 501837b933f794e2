//! What there is to know of a core module before it becomes a component: what it has, imports and exports. It changes nothing.

use wasmparser::{Parser, Payload};

use crate::{Error, preview1};

/// What a core module says of itself.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Whether a generator of bindings has embedded component types in it.
    pub(crate) has_types: bool,
    /// Whether it imports anything of WASI preview 1.
    pub(crate) imports_preview1: bool,
    /// The names of its exports.
    exports: Vec<String>,
}

impl Module {
    /// Reads a core module.
    ///
    /// # Errors
    /// [`Error::Malformed`]: it is damaged.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let mut module = Self::default();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::CustomSection(section) if section.name().starts_with("component-type") => {
                    module.has_types = true;
                }
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        module.imports_preview1 |= import?.module == preview1::NAME;
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        module.exports.push(export?.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(module)
    }

    /// The version of the contract for which it exports that function, such as `reconciler` and `reconcile`.
    pub(crate) fn version_of(&self, interface: &str, function: &str) -> Option<&str> {
        self.exports.iter().find_map(|export| {
            let version = export.strip_prefix("pilothouse:plugin/")?.strip_prefix(interface)?.strip_prefix('@')?;
            version.strip_suffix(function)?.strip_suffix('#')
        })
    }
}
