//! The paths of the binaries and plugins that the tests run.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The repository.
pub fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_owned()
}

/// The host's binary: `$PILOTHOUSE_BIN`, or the one built along with this program.
///
/// # Errors
/// If it is not built.
pub fn host_binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("PILOTHOUSE_BIN") {
        return existing(path.into(), "PILOTHOUSE_BIN");
    }
    let own = std::env::current_exe().context("failed to find this program's own file")?;
    let profile = own.ancestors().find(|folder| folder.join("deps").is_dir()).context("not in a target folder")?;
    existing(profile.join("pilothouse"), "cargo build -p pilothouse")
}

/// A built plugin of the repository: `app-service`.
///
/// # Errors
/// If it is not built.
pub fn plugin(name: &str) -> Result<PathBuf> {
    existing(target().join("plugins").join(format!("{name}.wasm")), "make plugins")
}

/// A built plugin of the tests: `misbehaver`, `app-service-next`.
///
/// # Errors
/// If it is not built.
pub fn guest(name: &str) -> Result<PathBuf> {
    existing(target().join("guests").join(format!("{name}.wasm")), "make plugins")
}

/// A built plugin of the examples: `greeting`.
///
/// # Errors
/// If it is not built.
pub fn example(name: &str) -> Result<PathBuf> {
    existing(target().join("examples").join(format!("{name}.wasm")), "make plugins")
}

/// A built plugin of the repository, of the examples or of the tests.
///
/// # Errors
/// If none is built.
pub fn any_plugin(name: &str) -> Result<PathBuf> {
    plugin(name).or_else(|_| example(name)).or_else(|_| guest(name))
}

/// A Python that has JAX.
///
/// # Errors
/// If there is none.
pub fn jax() -> Result<PathBuf> {
    existing(target().join("jax/python"), "make frameworks")
}

/// A Python that has TensorFlow.
///
/// # Errors
/// If there is none.
pub fn tensorflow() -> Result<PathBuf> {
    existing(target().join("tensorflow/python"), "make frameworks")
}

/// A Python that has today's PyTorch.
///
/// # Errors
/// If there is none.
pub fn torch() -> Result<PathBuf> {
    existing(target().join("torch/python"), "scripts/torch.sh")
}

/// A Python that has PyTorch 1.12.
///
/// # Errors
/// If there is none.
pub fn torch_1_12() -> Result<PathBuf> {
    existing(target().join("torch-1.12/python"), "make frameworks")
}

/// What a machine with Open MPI and OpenSSH has besides: `usr` and `etc`.
///
/// # Errors
/// If they are not there.
pub fn openmpi() -> Result<PathBuf> {
    let folder = target().join("openmpi");
    existing(folder.join("complete"), "scripts/openmpi.sh")?;
    Ok(folder.join("root"))
}

/// The folder in which programs are built.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}

fn existing(path: PathBuf, make: &str) -> Result<PathBuf> {
    ensure!(path.is_file(), "'{}' is missing; see `{make}`", path.display());
    Ok(path)
}
