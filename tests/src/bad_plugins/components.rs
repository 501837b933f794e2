//! Components that are wrong in one way each, made from a good one by sections that are added. Nothing here is run by the tests themselves.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// The name of the section with the manifest.
const MANIFEST: &str = "pilothouse:manifest";
const CUSTOM: u8 = 0;
const CORE_MODULE: u8 = 1;
const CORE_INSTANCE: u8 = 2;
const IMPORT: u8 = 10;

/// A manifest that is fine.
pub fn manifest() -> Value {
    json!({
        "name": "bad", "version": "0.1.0", "contract": "0.2.0",
        "reconciles": {"apiVersion": "example.com/v1", "kind": "Bad"}, "children": [],
    })
}

/// A component with nothing in it.
pub fn bare() -> Vec<u8> {
    b"\0asm\x0d\0\x01\0".to_vec()
}

/// A core module with nothing in it.
pub fn core_module() -> Vec<u8> {
    b"\0asm\x01\0\0\0".to_vec()
}

/// The component with one more manifest.
pub fn add_manifest(component: Vec<u8>, manifest: &Value) -> Vec<u8> {
    add_section(component, manifest.to_string().as_bytes())
}

/// The component with these bytes where a manifest is.
pub fn add_section(mut component: Vec<u8>, contents: &[u8]) -> Vec<u8> {
    let mut bytes = sized(MANIFEST.as_bytes());
    bytes.extend(contents);
    component.extend(section(CUSTOM, &bytes));
    component
}

/// The component with a manifest that is changed.
pub fn with_manifest(component: &[u8], change: impl FnOnce(&mut Value)) -> Result<Vec<u8>> {
    let (mut changed, mut manifest) = (component[..8].to_vec(), None);
    let name = sized(MANIFEST.as_bytes());
    for (id, contents) in sections(component)? {
        match contents.strip_prefix(&*name).filter(|_| id == CUSTOM) {
            Some(found) => manifest = Some(serde_json::from_slice(found)?),
            None => changed.extend(section(id, contents)),
        }
    }
    let mut manifest = manifest.context("the component has no manifest")?;
    change(&mut manifest);
    Ok(add_manifest(changed, &manifest))
}

/// The component with a function that adds two numbers where there are none.
pub fn with_invalid_code(component: &[u8]) -> Result<Vec<u8>> {
    // i32.add; drop
    with_start(component, &[0x6a, 0x1a])
}

/// The component with an import of a resource under this name.
pub fn with_import(component: &[u8], name: &str) -> Vec<u8> {
    let import = [&[1, 0][..], &sized(name.as_bytes()), &[3, 1]].concat();
    [component, &section(IMPORT, &import)].concat()
}

/// The component with a start function that never ends.
pub fn that_loops_at_its_start(component: &[u8]) -> Result<Vec<u8>> {
    // loop; br 0; end
    with_start(component, &[0x03, 0x40, 0x0c, 0, 0x0b])
}

/// The component with a start function that traps.
pub fn that_traps_at_its_start(component: &[u8]) -> Result<Vec<u8>> {
    with_start(component, &[0x00])
}

/// A component for another version of the contract, which is part of the names of its exports.
pub fn of_contract(good: &[u8], version: &str) -> Result<Vec<u8>> {
    let (ours, theirs) = (&b"@0.2.0"[..], format!("@{version}").into_bytes());
    ensure!(ours.len() == theirs.len(), "versions of another length move everything behind them");
    let mut bytes = good.to_vec();
    let mut places = 0;
    for start in 0..bytes.len() - ours.len() {
        if bytes[start..].starts_with(ours) {
            bytes[start..start + theirs.len()].copy_from_slice(&theirs);
            places += 1;
        }
    }
    ensure!(places > 0, "the plugin does not name the contract's version");
    Ok(bytes)
}

/// The component with one more core module, which is instantiated with it and has a start function with this code.
fn with_start(component: &[u8], code: &[u8]) -> Result<Vec<u8>> {
    let body = [&[0], code, &[0x0b]].concat();
    let mut module = core_module();
    // The type of a function without parameters and results; the function; that it is the start function; its code.
    module.extend(section(1, &[1, 0x60, 0, 0]));
    module.extend(section(3, &[1, 0]));
    module.extend(section(8, &[0]));
    module.extend(section(10, &[&[1][..], &sized(&body)].concat()));
    let modules = sections(component)?.iter().filter(|(id, _)| *id == CORE_MODULE).count();
    let instance = [&[1, 0][..], &number(modules), &[0]].concat();
    Ok([component, &section(CORE_MODULE, &module), &section(CORE_INSTANCE, &instance)].concat())
}

/// The sections of a component: the id and the contents of each.
fn sections(component: &[u8]) -> Result<Vec<(u8, &[u8])>> {
    let (mut rest, mut found) = (component.get(8..).context("no component")?, Vec::new());
    while let Some((id, more)) = rest.split_first() {
        let (mut size, mut bytes) = (0, 0);
        loop {
            let byte = more.get(bytes).context("a section is cut")?;
            size |= usize::from(byte & 0x7f) << (7 * bytes);
            bytes += 1;
            if byte & 0x80 == 0 {
                break;
            }
        }
        found.push((*id, more.get(bytes..bytes + size).context("a section is cut")?));
        rest = &more[bytes + size..];
    }
    Ok(found)
}

fn section(id: u8, contents: &[u8]) -> Vec<u8> {
    [&[id][..], &sized(contents)].concat()
}

/// Bytes with their number before them.
fn sized(bytes: &[u8]) -> Vec<u8> {
    [&*number(bytes.len()), bytes].concat()
}

/// A number as WebAssembly has it (LEB128).
fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or_default();
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
