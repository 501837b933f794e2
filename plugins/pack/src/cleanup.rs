//! Takes the clean-up after a call off a core module: an instance lives for one call and its memory goes with it, so that
//! giving it back piece by piece only costs time. Nothing else of the module changes.

use std::convert::Infallible;

use wasm_encoder::{
    ExportSection, Module,
    reencode::{Error, Reencode, utils},
};
use wasmparser::{Export, Parser};

/// What the names of exported clean-up functions begin with (`post-return` of the component model's canonical ABI).
const PREFIX: &str = "cabi_post_";

/// The module without clean-up functions.
///
/// # Errors
/// The module is damaged.
pub(crate) fn without(module: &[u8]) -> Result<Vec<u8>, Error> {
    let mut rest = Module::new();
    WithoutCleanup.parse_core_module(&mut rest, Parser::new(0), module)?;
    Ok(rest.finish())
}

struct WithoutCleanup;

impl Reencode for WithoutCleanup {
    type Error = Infallible;

    fn parse_export(&mut self, exports: &mut ExportSection, export: Export<'_>) -> Result<(), Error> {
        if export.name.starts_with(PREFIX) { Ok(()) } else { utils::parse_export(self, exports, export) }
    }
}

#[cfg(test)]
mod tests {
    use super::without;
    use wasm_encoder::{ExportKind, ExportSection, MemorySection, MemoryType, Module};

    fn module(exports: &[&str]) -> Vec<u8> {
        let mut memories = MemorySection::new();
        memories.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
        let mut section = ExportSection::new();
        for name in exports {
            section.export(name, ExportKind::Memory, 0);
        }
        Module::new().section(&memories).section(&section).clone().finish()
    }

    #[test]
    fn only_clean_up_functions_are_taken_off() -> Result<(), wasm_encoder::reencode::Error> {
        let kept = ["memory", "cabi_realloc", "pilothouse:plugin/reconciler@0.1.0#reconcile"];
        let all = [
            "memory",
            "cabi_realloc",
            "cabi_post_other",
            kept[2],
            "cabi_post_pilothouse:plugin/reconciler@0.1.0#reconcile",
        ];
        assert_eq!(without(&module(&all))?, module(&kept));
        assert_eq!(without(&module(&kept))?, module(&kept));
        Ok(())
    }

    #[test]
    fn a_damaged_module_is_no_module() {
        let mut damaged = module(&["memory"]);
        damaged.pop();
        assert!(without(&damaged).is_err());
    }
}
