//! Compiles components to machine code. A large component needs hundreds of MiB for a short time, and a hostile one could compile
//! for ever, so the host compiles in a child process with a deadline. Runs nothing of a plugin.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::process::Command;

/// How long one compilation may take.
const DEADLINE: Duration = Duration::from_secs(120);

/// Where components are compiled.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// In this process: for tests, benchmarks and one-shot commands.
    InProcess,
    /// In a child process, called with the arguments, the input file and the output file; it calls [`compile_file`].
    ChildProcess {
        /// The program.
        program: PathBuf,
        /// Arguments before the two files.
        arguments: Vec<String>,
    },
}

/// Why a component was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The compiler refused it.
    #[error("the component does not compile: {0}")]
    Refused(String),
    /// Compilation took longer than the deadline.
    #[error("compiling the component took longer than {} s", DEADLINE.as_secs())]
    Deadline,
    /// A file or the child process failed.
    #[error("failed to {action}: {source}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl Compiler {
    /// Compiles `component` and writes the machine code to `output`.
    pub(crate) async fn compile(
        &self,
        engine: &wasmtime::Engine,
        component: &[u8],
        output: &Path,
    ) -> Result<(), CompileError> {
        match self {
            Self::InProcess => {
                let (engine, component, output) = (engine.clone(), component.to_vec(), output.to_owned());
                tokio::task::spawn_blocking(move || compile_to(&engine, &component, &output))
                    .await
                    .map_err(|panic| CompileError::Refused(panic.to_string()))?
            }
            Self::ChildProcess { program, arguments } => {
                let input = output.with_extension("wasm");
                tokio::fs::write(&input, component)
                    .await
                    .map_err(|source| CompileError::Io { action: "write the compiler's input", source })?;
                let result = run(program, arguments, &input, output).await;
                tokio::fs::remove_file(&input)
                    .await
                    .map_err(|source| CompileError::Io { action: "remove the compiler's input", source })?;
                result
            }
        }
    }
}

/// Compiles the component in `input` to machine code in `output`, in this process. The child process calls this.
///
/// # Errors
/// [`CompileError::Refused`] with the compiler's message, [`CompileError::Io`] if a file cannot be read or written.
pub fn compile_file(input: &Path, output: &Path) -> Result<(), CompileError> {
    let component = std::fs::read(input).map_err(|source| CompileError::Io { action: "read the component", source })?;
    let engine = crate::engine::wasmtime_engine(crate::engine::Purpose::Compile)
        .map_err(|error| CompileError::Refused(format!("{error:#}")))?;
    compile_to(&engine, &component, output)
}

fn compile_to(engine: &wasmtime::Engine, component: &[u8], output: &Path) -> Result<(), CompileError> {
    let code = engine.precompile_component(component).map_err(|error| CompileError::Refused(format!("{error:#}")))?;
    std::fs::write(output, code).map_err(|source| CompileError::Io { action: "write the machine code", source })
}

async fn run(program: &Path, arguments: &[String], input: &Path, output: &Path) -> Result<(), CompileError> {
    let child = Command::new(program)
        .args(arguments)
        .args([input, output])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // The deadline drops this future. Without this setting, the compiler would go on.
        .kill_on_drop(true)
        .output();
    let finished = tokio::time::timeout(DEADLINE, child).await.map_err(|_| CompileError::Deadline)?;
    let finished = finished.map_err(|source| CompileError::Io { action: "start the compiler", source })?;
    if finished.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
    Err(CompileError::Refused(if message.is_empty() {
        format!("the compiler ended with {}", finished.status)
    } else {
        message
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_component_is_refused_in_the_compilers_words() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (input, output) = (folder.path().join("in"), folder.path().join("out"));
        std::fs::write(&input, b"no component")?;
        assert!(matches!(compile_file(&input, &output), Err(CompileError::Refused(_))));
        assert!(matches!(compile_file(&folder.path().join("none"), &output), Err(CompileError::Io { .. })));
        assert!(!output.exists());
        Ok(())
    }

    #[tokio::test]
    async fn a_child_process_that_fails_is_quoted() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let engine = wasmtime::Engine::default();
        let compile = |script: &str| Compiler::ChildProcess {
            program: "/bin/sh".into(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
        };
        let output = folder.path().join("out");
        let refused = compile("echo it does not parse >&2; exit 1").compile(&engine, b"x", &output).await;
        assert!(matches!(&refused, Err(CompileError::Refused(why)) if why == "it does not parse"), "{refused:?}");
        let silent = compile("exit 3").compile(&engine, b"x", &output).await;
        assert!(matches!(&silent, Err(CompileError::Refused(why)) if why.contains('3')), "{silent:?}");
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 0, "the input is removed again");
        Ok(())
    }
}
