//! What the demo prints: numbered steps, the commands a person would type, facts with their times, and log lines.
//! Colours only on a terminal, or where `CLICOLOR_FORCE` is set. It decides nothing and asks nothing.

use std::{
    fmt::Display,
    io::{IsTerminal, Result, Write, stdout},
    time::{Duration, Instant},
};

const BOLD: &str = "\x1b[1m";
const CYAN: &str = "\x1b[36m";
const GREEN: &str = "\x1b[32m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// Writes the scenario to standard output.
pub struct Printer {
    colours: bool,
    steps: usize,
    started: Instant,
}

impl Printer {
    /// A scenario that begins now.
    pub fn new() -> Self {
        let is_set = |name| std::env::var_os(name).is_some();
        let colours = is_set("CLICOLOR_FORCE") || (stdout().is_terminal() && !is_set("NO_COLOR"));
        Self { colours, steps: 0, started: Instant::now() }
    }

    /// Begins the next step.
    pub fn step(&mut self, title: &str) -> Result<()> {
        self.steps += 1;
        let number = self.steps;
        self.line("")?;
        self.line(&self.painted(BOLD, format!("{number}. {title}")))
    }

    /// A plain sentence.
    pub fn say(&self, text: &str) -> Result<()> {
        text.lines().try_for_each(|line| self.line(&format!("   {line}")))
    }

    /// What a person would type for what the demo does now.
    pub fn command(&self, text: &str) -> Result<()> {
        self.line(&format!("   {}", self.painted(CYAN, format!("$ {text}"))))
    }

    /// Something read back from the cluster.
    pub fn fact(&self, what: impl Display, is: impl Display) -> Result<()> {
        self.line(&format!("   {what:<24} {is}"))
    }

    /// Something that has come true, and how long it took.
    pub fn took(&self, what: impl Display, is: impl Display, time: Duration) -> Result<()> {
        let time = self.painted(GREEN, format!("after {} ms", milliseconds(time)));
        self.line(&format!("   {what:<24} {is}  {time}"))
    }

    /// A line of the host's log.
    pub fn log(&self, line: &str) -> Result<()> {
        self.line(&self.painted(DIM, format!("   host log | {line}")))
    }

    /// How long the scenario has taken so far.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn painted(&self, colour: &str, text: String) -> String {
        if self.colours { format!("{colour}{text}{RESET}") } else { text }
    }

    /// Flushed, because the scenario is watched as it happens, also through a pipe.
    fn line(&self, text: &str) -> Result<()> {
        let mut out = stdout().lock();
        writeln!(out, "{}", text.trim_end())?;
        out.flush()
    }
}

/// Whole milliseconds, never 0: everything takes some time.
fn milliseconds(time: Duration) -> u128 {
    time.as_millis().max(1)
}
