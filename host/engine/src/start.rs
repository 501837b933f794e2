//! The first instance of a component that is about to be loaded: what loops or traps at its start would do so in each call, so it is
//! refused before it takes the place of a version that works. A component whose kinds come from its configuration is asked for its manifest
//! on the way. Reconciles nothing.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    CallContext, ConfigError, LoadError, Manifest, NoLookups, Outcome, StartError, Template,
    call::{Home, in_time},
    engine::Code,
};

/// The most problems of a configuration that are told, and the most bytes of one.
const MOST_PROBLEMS: usize = 10;
const LONGEST_PROBLEM: usize = 500;

impl Code {
    /// Creates an instance within the limits of a call, and drops it.
    pub(crate) async fn try_start(self: &Arc<Self>) -> Result<(), LoadError> {
        let code = self.clone();
        let start = Box::pin(async move { code.start().await });
        let Err(outcome) = self.shared.slow.run(start).await else { return Ok(()) };
        match self.refusal(&outcome) {
            Some(why) => Err(why.into()),
            None => Ok(()),
        }
    }

    async fn start(&self) -> Result<(), Outcome> {
        let reservation = self.shared.budget.begin_call(&self.share, self.need.bytes()).await;
        let context = CallContext { lookups: Arc::new(NoLookups), now: Timestamp::UNIX_EPOCH };
        let seed = self.imports_wasi.then_some(0);
        let mut home = Home::new(self, reservation, context, seed);
        let started = in_time(self.limits.wall, async {
            let _running = self.shared.ticker.enter()?;
            self.pre.instantiate_async(&mut home.store).await.map(drop)
        });
        match started.await {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.classify(&error, home.store.data())),
            None => Err(Outcome::Deadline(self.limits.wall)),
        }
    }

    /// Asks the component what it makes of a configuration, within the limits of a call.
    pub(crate) async fn configure(
        self: &Arc<Self>,
        template: &Template,
        config: Option<&str>,
    ) -> Result<Manifest, LoadError> {
        let (code, config) = (self.clone(), config.unwrap_or("null").to_owned());
        let asked = Box::pin(async move { code.ask(config).await });
        match self.shared.slow.run(asked).await {
            Ok(Ok(text)) => template
                .manifest(&text)
                .map_err(|error| ConfigError::Refused(format!("what it makes of it is no manifest: {error}")).into()),
            Ok(Err(problems)) => Err(ConfigError::Refused(in_words(&problems)).into()),
            Err(outcome) => Err(match self.refusal(&outcome) {
                Some(why) => why.into(),
                None => {
                    LoadError::Code("the host has no memory left to ask the plugin about its configuration".to_owned())
                }
            }),
        }
    }

    async fn ask(&self, config: String) -> Result<Result<String, Vec<String>>, Outcome> {
        let Some(index) = &self.configure else {
            return Err(Outcome::Contract("no configurator is exported".to_owned()));
        };
        let reservation = self.shared.budget.begin_call(&self.share, self.need.bytes() + config.len()).await;
        let context = CallContext { lookups: Arc::new(NoLookups), now: Timestamp::UNIX_EPOCH };
        let seed = self.imports_wasi.then_some(0);
        let mut home = Home::new(self, reservation, context, seed);
        let asked = in_time(self.limits.wall, async {
            let _running = self.shared.ticker.enter()?;
            let instance = self.pre.instantiate_async(&mut home.store).await?;
            let function =
                instance.get_typed_func::<(String,), (Result<String, Vec<String>>,)>(&mut home.store, index)?;
            function.call_async(&mut home.store, (config,)).await.map(|(answer,)| answer)
        });
        match asked.await {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(self.classify(&error, home.store.data())),
            None => Err(Outcome::Deadline(self.limits.wall)),
        }
    }

    /// What a start that ended like this says against the component; none if it says nothing.
    fn refusal(&self, outcome: &Outcome) -> Option<StartError> {
        match outcome {
            // Nobody is to blame, and calls learn from that what to wait for.
            Outcome::HostMemory(_) => {
                self.need.reserve_all(self.limits.memory_bytes);
                None
            }
            Outcome::Response(_) => None,
            Outcome::Deadline(time) => Some(StartError::Deadline(*time)),
            Outcome::MemoryLimit(bytes) => Some(StartError::Memory(*bytes)),
            Outcome::OutputLimit(bytes) => Some(StartError::Output(*bytes)),
            Outcome::Trap(why) | Outcome::Contract(why) => Some(StartError::Trap(why.clone())),
        }
    }
}

/// What is wrong with a configuration, by the plugin's own words.
fn in_words(problems: &[String]) -> String {
    let shown = problems.iter().take(MOST_PROBLEMS).map(|problem| {
        let problem = problem.split_whitespace().collect::<Vec<_>>().join(" ");
        problem[..problem.floor_char_boundary(LONGEST_PROBLEM)].to_owned()
    });
    let mut words = shown.collect::<Vec<_>>().join("; ");
    match problems.len() {
        0 => words.push_str("it does not say why"),
        all if all > MOST_PROBLEMS => words.push_str(&format!("; and {} more", all - MOST_PROBLEMS)),
        _ => {}
    }
    words
}
