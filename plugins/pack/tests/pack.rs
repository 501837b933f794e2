//! Checks what can be packed and why other input is refused, with components of a few bytes.

use pilothouse_pack::{Error, pack};
use pilothouse_wit::SECTION;
use wasm_encoder::{
    Component, ComponentExportKind, ComponentExportSection, ComponentInstanceSection, ComponentSection, CustomSection,
    Module, RawSection, Section,
};

const MANIFEST: &str = r#"{"name":"a","version":"1.0.0","contract":"0.1.0",
"reconciles":{"apiVersion":"example.com/v1","kind":"A"},"children":[{"apiVersion":"v1","kind":"ConfigMap"}]}"#;

/// A component that exports an empty instance of that name, with these custom sections.
fn component(export: &str, sections: &[&[u8]]) -> Vec<u8> {
    let mut component = Component::new();
    for data in sections {
        component.section(&custom(data));
    }
    let mut instances = ComponentInstanceSection::new();
    let nothing: [(&str, ComponentExportKind, u32); 0] = [];
    instances.export_items(nothing);
    component.section(&instances);
    let mut exports = ComponentExportSection::new();
    exports.export(export, ComponentExportKind::Instance, 0, None);
    component.section(&exports);
    component.finish()
}

fn custom(data: &[u8]) -> CustomSection<'_> {
    CustomSection { name: SECTION.into(), data: data.into() }
}

fn plugin(sections: &[&[u8]]) -> Vec<u8> {
    component("pilothouse:plugin/reconciler@0.1.0", sections)
}

#[test]
fn a_component_gets_the_given_manifest() -> Result<(), Error> {
    let packed = pack(&plugin(&[]), Some(MANIFEST))?;
    assert_eq!(packed.declaration.clone().fixed()?.name, "a");
    assert_eq!(packed.declaration.clone().fixed()?.lookups, []);
    assert!(packed.wasm.ends_with(MANIFEST.as_bytes()));
    Ok(())
}

#[test]
fn packing_again_changes_nothing() -> Result<(), Error> {
    let once = pack(&plugin(&[MANIFEST.as_bytes()]), None)?;
    let twice = pack(&once.wasm, None)?;
    assert_eq!(once.wasm, twice.wasm);
    Ok(())
}

#[test]
fn a_given_manifest_replaces_the_embedded_one() -> Result<(), Error> {
    let given = MANIFEST.replace("1.0.0", "2.0.0");
    let packed = pack(&plugin(&[MANIFEST.as_bytes()]), Some(&given))?;
    assert_eq!(packed.declaration.clone().fixed()?.version, "2.0.0");
    assert_eq!(packed.wasm, pack(&plugin(&[]), Some(&given))?.wasm);
    Ok(())
}

#[test]
fn input_that_is_no_plugin_is_refused_with_the_reason() {
    let plain = Module::new().finish();
    let good = plugin(&[]);
    let mut damaged = good.clone();
    damaged.truncate(good.len() - 1);
    let mut unknown_section = Component::new();
    unknown_section.section(&RawSection { id: 99, data: &[] });
    let other = component("example:other/thing@1.0.0", &[]);
    let newer = component("pilothouse:plugin/reconciler@0.3.0", &[]);
    let mixed = component("pilothouse:plugin/reconciler@0.2.0", &[]);
    let with_colour = MANIFEST.replace(r#""contract":"0.1.0""#, r#""contract":"0.2.0","colour":"red""#);
    let another = MANIFEST.replace("1.0.0", "2.0.0");
    let twice = plugin(&[MANIFEST.as_bytes(), another.as_bytes()]);
    let no_kind = MANIFEST.replace(r#","kind":"A""#, "");
    let bad_name = MANIFEST.replace(r#""a""#, r#""A_""#);
    let cases: &[(&[u8], Option<&str>, &str)] = &[
        (b"#!/bin/sh\n", None, "not WebAssembly"),
        (b"", None, "not WebAssembly"),
        (&damaged, Some(MANIFEST), "malformed"),
        (&unknown_section.finish(), Some(MANIFEST), "malformed"),
        (&plain, Some(MANIFEST), "exports no `pilothouse:plugin/reconciler@VERSION#reconcile`"),
        (&good, None, "without a manifest"),
        (&twice, None, "2 different manifests"),
        (&good, Some("{"), "the manifest is malformed: EOF"),
        (&good, Some(&no_kind), "missing field `kind`"),
        (&good, Some(&bad_name), "must be a DNS label"),
        (&other, Some(MANIFEST), "does not export `pilothouse:plugin/reconciler`"),
        (&newer, Some(MANIFEST), "built for contract 0.3.0, but this host speaks 0.1.0 and 0.2.0"),
        (&mixed, Some(MANIFEST), "exports pilothouse:plugin/reconciler of 0.2.0"),
        (&mixed, Some(&with_colour), "does not have: colour"),
    ];
    for (input, manifest, expected) in cases {
        let message = pack(input, *manifest).err().map(|error| error.to_string());
        assert!(message.as_deref().is_some_and(|m| m.contains(expected)), "{expected}: {message:?}");
    }
}

#[test]
fn sections_of_other_names_stay() -> Result<(), Error> {
    let mut input = plugin(&[]);
    CustomSection { name: "other".into(), data: b"kept"[..].into() }.append_to_component(&mut input);
    let packed = pack(&input, Some(MANIFEST))?;
    assert!(packed.wasm.starts_with(&input));
    Ok(())
}

/// A core module without component types, as a compiler makes it when the bindings are forgotten.
#[test]
fn a_module_without_bindings_is_explained() {
    let mut module = Module::new();
    module.section(&custom(MANIFEST.as_bytes()));
    let mut bytes = module.finish();
    CustomSection { name: "x".into(), data: b""[..].into() }.append_to(&mut bytes);
    let error = pack(&bytes, None).err();
    assert!(matches!(error, Some(Error::NoReconcile)), "{error:?}");
}
