//! Where `dev` shows what happens: lines on standard output, or a screen of its own where there is a terminal. Decides nothing.

mod model;
mod screen;

use std::{
    io::{self, IsTerminal},
    sync::{Arc, Weak},
};

use futures::{
    FutureExt,
    future::{self, BoxFuture},
};

pub(super) use self::model::{Note, Stage};
use self::{model::Model, screen::Screen};
use super::input::Input;
use crate::{output, table::printable};

/// Where what happens is shown. Clones show it at the same place.
#[derive(Clone)]
pub(super) enum View {
    /// Line after line.
    Lines,
    /// The whole terminal.
    Screen(Arc<Screen>),
}

impl View {
    /// Takes the terminal, if there is one and lines are not asked for. The screen ends when the last clone is dropped.
    ///
    /// # Errors
    /// If the terminal cannot be used.
    pub(super) fn open(labels: Vec<String>, only_lines: bool) -> io::Result<Self> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        if only_lines || !is_terminal || std::env::var_os("TERM").is_none_or(|term| term == "dumb") {
            return Ok(Self::Lines);
        }
        Ok(Self::Screen(Arc::new(Screen::open(Model::new(labels))?)))
    }

    /// What the author types. To be had once.
    pub(super) fn input(&self) -> Input {
        match self {
            Self::Lines => Input::lines(),
            Self::Screen(screen) => screen.typed().map_or(Input::Ended, Input::Keys),
        }
    }

    /// Draws the screen as often as it changes. Resolves when the author does not want to wait for the end, and never without a screen.
    pub(super) fn follow(&self) -> BoxFuture<'static, ()> {
        match self {
            Self::Lines => future::pending().boxed(),
            Self::Screen(screen) => screen.clone().follow().boxed(),
        }
    }

    /// Resolves once the author ends it on the screen.
    pub(super) fn ended(&self) -> BoxFuture<'_, ()> {
        match self {
            Self::Lines => future::pending().boxed(),
            Self::Screen(screen) => screen.ended().boxed(),
        }
    }

    /// Tells something of a plugin.
    pub(super) fn tell(&self, label: &str, text: &str) {
        for line in text.lines() {
            // Those of compilers are indented with tabs.
            self.line(Some(label), &printable(&line.replace('\t', "    ")));
        }
    }

    /// Tells something that is no single plugin's.
    pub(super) fn print(&self, text: &str) {
        for line in text.lines() {
            self.line(None, line);
        }
    }

    /// Where a plugin is. Lines tell that in words of their own.
    pub(super) fn stage(&self, label: &str, stage: Stage) {
        if let Self::Screen(screen) = self {
            screen.change(|model| model.stage(label, stage));
        }
    }

    /// What is shown of a plugin until the next of its kind. Lines tell that in words of their own.
    pub(super) fn note(&self, label: &str, note: Note) {
        if let Self::Screen(screen) = self {
            screen.change(|model| model.note(label, note));
        }
    }

    /// Whether text may have colours of its own.
    pub(super) fn has_colours(&self) -> bool {
        matches!(self, Self::Lines) && output::has_colours()
    }

    /// Where the log goes; none for standard error.
    pub(super) fn log(&self) -> Option<LogLines> {
        match self {
            Self::Lines => None,
            // Weak, because the log never ends, and the screen has to.
            Self::Screen(screen) => Some(LogLines { screen: Arc::downgrade(screen), unfinished: Vec::new() }),
        }
    }

    fn line(&self, label: Option<&str>, line: &str) {
        match (self, label) {
            // Whoever read it has gone. The plugins go on.
            (Self::Lines, Some(label)) => drop(output::print_line(format_args!("{label}: {line}"))),
            (Self::Lines, None) => drop(output::print_line(line)),
            (Self::Screen(screen), label) => screen.change(|model| model.line(label, line)),
        }
    }
}

/// Takes the log of the process to the screen.
#[derive(Clone)]
pub(super) struct LogLines {
    screen: Weak<Screen>,
    unfinished: Vec<u8>,
}

impl io::Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unfinished.extend_from_slice(bytes);
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if let Some(screen) = self.screen.upgrade() {
                screen.change(|model| model.line(None, &printable(line.trim_end())));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
