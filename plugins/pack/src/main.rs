//! The command `pilothouse-pack`: reads files, packs, writes a file. The packing itself is in the library.

use anyhow::Context;
use clap::Parser;
use pilothouse_wit::Declaration;
use std::path::PathBuf;

/// Make a plugin of a core module or a component: check it and embed its manifest.
#[derive(Parser)]
#[command(name = "pilothouse-pack", version)]
struct Arguments {
    /// The core module or component.
    input: PathBuf,
    /// The manifest, a JSON file; default: the one embedded in the input.
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// Where the plugin goes.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let name = arguments.input.display();
    let input = std::fs::read(&arguments.input).with_context(|| format!("cannot read {name}"))?;
    let manifest = match &arguments.manifest {
        Some(path) => Some(std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?),
        None => None,
    };
    let packed = pilothouse_pack::pack(&input, manifest.as_deref()).with_context(|| format!("cannot pack {name}"))?;
    write_if_changed(&arguments.output, &packed.wasm)
        .with_context(|| format!("cannot write {}", arguments.output.display()))?;
    let declaration = packed.declaration;
    let kind = match &declaration {
        Declaration::Fixed(manifest) => format!("for {}", manifest.reconciles),
        Declaration::Configured(_) => "for kinds of its configuration".to_owned(),
    };
    println!(
        "{}: {} {} {kind}, {} KiB",
        arguments.output.display(),
        declaration.name(),
        declaration.version(),
        packed.wasm.len().div_ceil(1024),
    );
    Ok(())
}

/// Writes a file beside the output and renames it, so that a host that watches the folder never sees half a plugin. Leaves an
/// output with the same content alone, so that such a host does not load the plugin again.
fn write_if_changed(path: &std::path::Path, wasm: &[u8]) -> std::io::Result<()> {
    if std::fs::read(path).is_ok_and(|present| present == wasm) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut partial = path.to_path_buf();
    partial.as_mut_os_string().push(".part");
    std::fs::write(&partial, wasm)?;
    std::fs::rename(&partial, path)
}
