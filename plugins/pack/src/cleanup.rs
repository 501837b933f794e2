//! Removes the clean-up functions from a core module. Where an instance lives for one call, its memory goes with it: freeing the
//! memory piece by piece after the call would only cost time. Nothing else of the module changes.

use std::convert::Infallible;

use wasm_encoder::{
    ExportSection, Module,
    reencode::{Error, Reencode, utils},
};
use wasmparser::{Export, Parser};

/// The prefix of the names of exported clean-up functions (`post-return` in the component model's canonical ABI).
const POST_RETURN_PREFIX: &str = "cabi_post_";

/// The module without clean-up functions.
///
/// # Errors
/// The module is damaged.
pub(crate) fn remove_post_return(module: &[u8]) -> Result<Vec<u8>, Error> {
    let mut stripped = Module::new();
    PostReturnRemover.parse_core_module(&mut stripped, Parser::new(0), module)?;
    Ok(stripped.finish())
}

struct PostReturnRemover;

impl Reencode for PostReturnRemover {
    type Error = Infallible;

    fn parse_export(&mut self, exports: &mut ExportSection, export: Export<'_>) -> Result<(), Error> {
        if export.name.starts_with(POST_RETURN_PREFIX) { Ok(()) } else { utils::parse_export(self, exports, export) }
    }
}

#[cfg(test)]
mod tests {
    use super::remove_post_return;
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
    fn only_clean_up_functions_are_removed() -> Result<(), wasm_encoder::reencode::Error> {
        let kept = ["memory", "cabi_realloc", "pilothouse:plugin/reconciler@0.1.0#reconcile"];
        let all = [
            "memory",
            "cabi_realloc",
            "cabi_post_other",
            kept[2],
            "cabi_post_pilothouse:plugin/reconciler@0.1.0#reconcile",
        ];
        assert_eq!(remove_post_return(&module(&all))?, module(&kept));
        assert_eq!(remove_post_return(&module(&kept))?, module(&kept));
        Ok(())
    }

    #[test]
    fn a_damaged_module_is_refused() {
        let mut damaged = module(&["memory"]);
        damaged.pop();
        assert!(remove_post_return(&damaged).is_err());
    }
}
