//! What a component keeps in memory for as long as it is loaded, called or not: types, tables, watches, and what is counted of it. An estimate
//! from its bytes, on the safe side, so that it is known before anything is compiled. Compiles nothing.

use wasmparser::{Encoding, Parser, Payload};

/// What a plugin keeps, however small it is.
const BASE: usize = 256 << 10;

/// So many bytes of the component cost one more: code, data, and what tools have added. Machine code is in memory while it is called only.
const BYTES_FOR_ONE: usize = 2;

/// What a byte of the types of a module costs. The most that was measured is 84, for functions with eight parameters.
const FOR_BYTE_OF_TYPES: usize = 128;

/// What a byte of other sections costs. The most that was measured is 19, for exports.
const FOR_BYTE_OF_STRUCTURE: usize = 32;

/// What a function, or a segment of data, costs beside its bytes. It was 22.
const FOR_ITEM: usize = 64;

/// What a module or a component costs beside its sections. It was 850.
const FOR_PART: usize = 2 << 10;

/// What the component with these bytes keeps, in bytes.
pub fn kept_by(component: &[u8]) -> usize {
    // What cannot be read is not loaded.
    let payloads = Parser::new(0).parse_all(component).map_while(Result::ok);
    payloads.map(|payload| structure(&payload)).fold(BASE + component.len() / BYTES_FOR_ONE, usize::saturating_add)
}

/// What a part of a component costs beside its size.
fn structure(payload: &Payload<'_>) -> usize {
    let items = |count: u32| usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(FOR_ITEM);
    match payload {
        Payload::Version { encoding: Encoding::Module | Encoding::Component, .. } => FOR_PART,
        Payload::TypeSection(section) => section.range().len().saturating_mul(FOR_BYTE_OF_TYPES),
        Payload::CodeSectionStart { count, .. } => items(*count),
        Payload::DataSection(section) => items(section.count()),
        // What they contain comes by itself.
        Payload::CustomSection(_) | Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => 0,
        other => other.as_section().map_or(0, |(_, range)| range.len().saturating_mul(FOR_BYTE_OF_STRUCTURE)),
    }
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{
        CodeSection, Component, ConstExpr, CustomSection, DataSection, ElementSection, Elements, ExportKind,
        ExportSection, Function, FunctionSection, GlobalSection, GlobalType, Module, ModuleSection,
        NestedComponentSection, TypeSection, ValType,
    };

    use super::*;

    /// So many types of functions that differ, each with so many parameters.
    fn types(count: usize, parameters: usize) -> TypeSection {
        let values = [ValType::I32, ValType::I64, ValType::F32, ValType::F64];
        let mut types = TypeSection::new();
        for number in 0..count {
            let of_place = |place: usize| values[number >> (2 * place % 16) & 3];
            types.ty().function((0..parameters).map(of_place), []);
        }
        types
    }

    fn functions(count: usize, exported: usize) -> Module {
        let (mut functions, mut code, mut body) = (FunctionSection::new(), CodeSection::new(), Function::new([]));
        body.instructions().end();
        for _ in 0..count {
            functions.function(0);
            code.function(&body);
        }
        let mut exports = ExportSection::new();
        for number in 0..exported {
            exports.export(&format!("{number:x}"), ExportKind::Func, 0);
        }
        let mut module = Module::new();
        module.section(&types(1, 0)).section(&functions).section(&exports).section(&code);
        module
    }

    fn globals(count: usize) -> Module {
        let (mut globals, mut module) = (GlobalSection::new(), Module::new());
        let of_type = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        for _ in 0..count {
            globals.global(of_type, &ConstExpr::i32_const(0));
        }
        module.section(&globals);
        module
    }

    fn elements(count: usize) -> Module {
        let (mut elements, mut module) = (ElementSection::new(), Module::new());
        for _ in 0..count {
            elements.passive(Elements::Functions([].as_slice().into()));
        }
        module.section(&elements);
        module
    }

    fn segments(count: usize) -> Module {
        let (mut data, mut module) = (DataSection::new(), Module::new());
        for _ in 0..count {
            data.passive([]);
        }
        module.section(&data);
        module
    }

    fn of_types(count: usize, parameters: usize) -> Module {
        let mut module = Module::new();
        module.section(&types(count, parameters));
        module
    }

    fn with(module: &Module) -> Vec<u8> {
        let mut component = Component::new();
        component.section(&ModuleSection(module));
        component.finish()
    }

    fn many_modules(count: usize) -> Vec<u8> {
        let mut inner = Component::new();
        for _ in 0..count {
            inner.section(&ModuleSection(&Module::new()));
        }
        let mut outer = Component::new();
        outer.section(&NestedComponentSection(&inner));
        outer.finish()
    }

    /// What this host was measured to keep of each.
    #[test]
    fn a_component_counts_by_what_it_is_made_of() {
        for (what, component, measured) in [
            ("types with 8 parameters", with(&of_types(60_000, 8)), 54_800_000),
            ("types with 9 parameters", with(&of_types(60_000, 9)), 57_700_000),
            ("types with 30 parameters", with(&of_types(20_000, 30)), 39_000_000),
            ("types with 1,000 parameters", with(&of_types(800, 1_000)), 38_400_000),
            ("exports", with(&functions(1, 80_000)), 10_000_000),
            ("functions", with(&functions(65_000, 0)), 1_390_000),
            ("globals", with(&globals(60_000)), 3_910_000),
            ("segments of tables", with(&elements(100_000)), 2_230_000),
            ("segments of data", with(&segments(40_000)), 141_000),
            ("modules", many_modules(18_000), 15_300_000),
        ] {
            let kept = kept_by(&component);
            assert!(kept >= measured, "{what}: {kept} of {measured}");
        }
    }

    #[test]
    fn code_and_what_tools_have_added_cost_the_half_of_their_bytes() {
        let padded = |bytes: usize| {
            let mut component = Component::new();
            component.section(&CustomSection { name: "notes".into(), data: vec![0; bytes].into() });
            kept_by(&component.finish())
        };
        assert_eq!(padded(1_010_000) - padded(1_000_000), 5_000);
        assert!(kept_by(b"no component") >= BASE);
    }
}
