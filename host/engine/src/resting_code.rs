//! The machine code of plugins that nobody calls: its pages go back to the system after a while, and the next call reads those that it needs
//! from the file again. A hundred plugins at rest would hold some 30 MiB otherwise. Calls nothing, and unloads nothing.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicU8, Ordering::Relaxed},
};

use wasmtime::component::Component;

use crate::precompiled;

/// After how many rounds without a call it rests.
const ROUNDS: u8 = 2;

/// The machine code of one component.
pub(crate) struct CodeInUse {
    component: Component,
    /// The rounds until it rests; 0 while it does.
    rounds_left: AtomicU8,
}

impl CodeInUse {
    /// Somebody calls it.
    pub(crate) fn note_call(&self) {
        self.rounds_left.store(ROUNDS, Relaxed);
    }

    /// One more round without a call; true if that makes it one that rests.
    fn rest(&self) -> bool {
        // A call at the same time loses nothing but a round: what it needs is read again.
        self.rounds_left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)) == Ok(1)
    }
}

/// All machine code that is loaded.
#[derive(Default)]
pub(crate) struct LoadedCode {
    all: Mutex<Vec<Weak<CodeInUse>>>,
}

impl LoadedCode {
    /// Adds the code of a component that is about to be called.
    pub(crate) fn add(&self, component: Component) -> Arc<CodeInUse> {
        let code = Arc::new(CodeInUse { component, rounds_left: AtomicU8::new(ROUNDS) });
        let mut all = self.all();
        all.retain(|code| code.strong_count() > 0);
        all.push(Arc::downgrade(&code));
        code
    }

    /// One more round: gives the pages back of what nobody has called for some rounds.
    pub(crate) fn rest(&self) {
        let all: Vec<_> = self.all().iter().filter_map(Weak::upgrade).collect();
        for code in all.iter().filter(|code| code.rest()) {
            if let Err(error) = precompiled::give_pages_back(&code.component) {
                tracing::debug!("the pages of a plugin at rest stay in memory: {error}");
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Weak<CodeInUse>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{error::Error, fs, path::Path};

    use jiff::Timestamp;

    use super::*;
    use crate::{
        CallContext, Compiler, Engine, EngineConfig, Limits, NoLookups, Outcome, Plugin, Reconciler, Verb,
        contract::Request,
    };

    #[tokio::test]
    async fn code_that_nobody_calls_leaves_the_memory_and_comes_back() -> Result<(), Box<dyn Error>> {
        let directory = tempfile::tempdir()?;
        let engine = Engine::new(EngineConfig {
            cache: directory.path().join("code"),
            compiler: Compiler::InProcess,
            limits: Limits::default(),
            call_memory: 1 << 30,
        })?;
        let component =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/contract-0.1/contract-0-1.wasm");
        let plugin = engine.load(fs::read(component)?).await?;
        let rest = || (0..ROUNDS).for_each(|_| engine.shared.loaded.rest());

        let first = answer(&plugin).await;
        assert!(matches!(first, Outcome::Response(_)), "{first:?}");
        engine.shared.loaded.rest();
        assert!(resident(directory.path())? > 64 << 10, "it was called in the last round");
        rest();
        assert_eq!(resident(directory.path())?, 0, "nobody has called it");

        assert_eq!(answer(&plugin).await, first);
        assert!(resident(directory.path())? > 0, "what was called is back");
        rest();
        assert_eq!(resident(directory.path())?, 0, "it rests again");
        Ok(())
    }

    async fn answer(plugin: &Plugin) -> Outcome {
        let request = Request {
            object: r#"{"apiVersion":"test.pilothouse.dev/v1","kind":"Everything","metadata":{"name":"it"},"spec":{"verdict":"done"}}"#.to_owned(),
            children: Vec::new(),
            refused: Vec::new(),
            config: "{}".to_owned(),
        };
        let context = CallContext { lookups: Arc::new(NoLookups), now: Timestamp::UNIX_EPOCH };
        plugin.call(Verb::Reconcile, request, context).await.outcome
    }

    /// The bytes of a directory's files that this process has in memory and cannot write to: an instance's own memory begins as a part of
    /// such a file, too.
    fn resident(directory: &Path) -> Result<u64, Box<dyn Error>> {
        let directory = directory.to_str().ok_or("the path is no text")?;
        let (mut is_of_directory, mut kilobytes) = (false, 0);
        for line in fs::read_to_string("/proc/self/smaps")?.lines() {
            match line.strip_prefix("Rss:") {
                // The first line of a mapping begins with its addresses, those after it with a name and a colon.
                None if !line.split(' ').next().is_some_and(|word| word.ends_with(':')) => {
                    is_of_directory = line.contains(directory) && line.contains(" r-");
                }
                Some(size) if is_of_directory => kilobytes += size.trim().trim_end_matches(" kB").parse::<u64>()?,
                _ => {}
            }
        }
        Ok(kilobytes << 10)
    }
}
