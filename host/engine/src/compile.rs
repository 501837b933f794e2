//! Compiles components to machine code. A large component needs hundreds of MiB for a short time, and a hostile one could compile
//! for ever, so the host compiles in a child process with limits of computing time and memory. Runs nothing of a plugin.

use std::{
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use rustix::{
    param::page_size,
    process::{Resource, Rlimit, setrlimit},
};
use tokio::{process::Command, time::sleep};

/// The computing time of one compilation. Not its duration, for a machine may be busy with other things.
const CPU: Duration = Duration::from_secs(120);

/// How long one compilation may take however busy the machine is.
const DEADLINE: Duration = Duration::from_secs(1_800);

/// How often the memory of the compiler is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The signal that ends a process whose computing time is over.
const SIGXCPU: i32 = 24;

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
    /// Compilation took more computing time than it may.
    #[error("compiling the component takes more than {} s of computing time", CPU.as_secs())]
    Deadline,
    /// Compilation needs more memory than it may have.
    #[error(
        "compiling the component needs more than {} MiB of memory, which is what all calls of plugins may have together; give the \
         host more (--call-memory)", .0 >> 20
    )]
    Memory(usize),
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
    /// Compiles `component` and writes the machine code to `output`. A child process may have so many bytes of memory.
    pub(crate) async fn compile(
        &self,
        engine: &wasmtime::Engine,
        component: &[u8],
        output: &Path,
        memory: usize,
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
                let result = run(program, arguments, [&input, output], memory).await;
                tokio::fs::remove_file(&input)
                    .await
                    .map_err(|source| CompileError::Io { action: "remove the compiler's input", source })?;
                result
            }
        }
    }
}

/// Compiles the component in `input` to machine code in `output`, in this process, which may compute for a limited time only. The child
/// process calls this.
///
/// # Errors
/// [`CompileError::Refused`] with the compiler's message, [`CompileError::Io`] if a file cannot be read or written.
pub fn compile_file(input: &Path, output: &Path) -> Result<(), CompileError> {
    let component = std::fs::read(input).map_err(|source| CompileError::Io { action: "read the component", source })?;
    let engine = crate::engine::wasmtime_engine(crate::engine::Purpose::Compile)
        .map_err(|error| CompileError::Refused(format!("{error:#}")))?;
    compile_to(&engine, &component, output)
}

/// Limits the computing time of this process: for the child process, before it compiles.
///
/// # Errors
/// If the system refuses the limit.
pub fn limit_computing_time() -> std::io::Result<()> {
    let seconds = Some(CPU.as_secs());
    Ok(setrlimit(Resource::Cpu, Rlimit { current: seconds, maximum: seconds })?)
}

fn compile_to(engine: &wasmtime::Engine, component: &[u8], output: &Path) -> Result<(), CompileError> {
    let code = engine.precompile_component(component).map_err(|error| CompileError::Refused(format!("{error:#}")))?;
    std::fs::write(output, code).map_err(|source| CompileError::Io { action: "write the machine code", source })
}

async fn run(
    program: &Path,
    arguments: &[String],
    [input, output]: [&Path; 2],
    memory: usize,
) -> Result<(), CompileError> {
    let started = Command::new(program)
        .args(arguments)
        .args([input, output])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // The limits drop this child. Without this setting, the compiler would go on.
        .kill_on_drop(true)
        .spawn();
    let child = started.map_err(|source| CompileError::Io { action: "start the compiler", source })?;
    let process = child.id();
    tokio::select! {
        finished = child.wait_with_output() => {
            judge(&finished.map_err(|source| CompileError::Io { action: "wait for the compiler", source })?)
        }
        () = until_larger(process, memory) => Err(CompileError::Memory(memory)),
        () = sleep(DEADLINE) => Err(CompileError::Deadline),
    }
}

fn judge(finished: &Output) -> Result<(), CompileError> {
    if finished.status.success() {
        return Ok(());
    }
    if finished.status.signal() == Some(SIGXCPU) {
        return Err(CompileError::Deadline);
    }
    let message = String::from_utf8_lossy(&finished.stderr).trim().to_owned();
    Err(CompileError::Refused(if message.is_empty() {
        format!("the compiler ended with {}", finished.status)
    } else {
        message
    }))
}

/// Waits until a process has more memory than this. Looked at from outside, because the limits of the system count what an allocator
/// reserves and never touches.
async fn until_larger(process: Option<u32>, memory: usize) {
    let Some(process) = process else { return std::future::pending().await };
    let file = PathBuf::from(format!("/proc/{process}/statm"));
    loop {
        sleep(LOOK).await;
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let resident = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok());
        if resident.unwrap_or_default().saturating_mul(page_size()) > memory {
            return;
        }
    }
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

    /// `tail` keeps a line that never ends.
    #[tokio::test]
    async fn a_child_process_that_needs_too_much_memory_is_ended() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let script = "exec tail /dev/zero".to_owned();
        let compiler = Compiler::ChildProcess { program: "/bin/sh".into(), arguments: vec!["-c".to_owned(), script] };
        let result = compiler.compile(&wasmtime::Engine::default(), b"x", &folder.path().join("out"), 64 << 20).await;
        assert!(matches!(&result, Err(CompileError::Memory(limit)) if *limit == 64 << 20), "{result:?}");
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
        let refused = compile("echo it does not parse >&2; exit 1").compile(&engine, b"x", &output, usize::MAX).await;
        assert!(matches!(&refused, Err(CompileError::Refused(why)) if why == "it does not parse"), "{refused:?}");
        let over = compile("kill -s XCPU $$").compile(&engine, b"x", &output, usize::MAX).await;
        assert!(matches!(&over, Err(CompileError::Deadline)), "{over:?}");
        let silent = compile("exit 3").compile(&engine, b"x", &output, usize::MAX).await;
        assert!(matches!(&silent, Err(CompileError::Refused(why)) if why.contains('3')), "{silent:?}");
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 0, "the input is removed again");
        Ok(())
    }
}
