//! The terminal: takes it, draws the model whenever that changes, reads keys, and gives it back. Says nothing of its own.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
};
use tokio::sync::{Notify, mpsc};

use super::model::Model;
use crate::dev::input::Typed;

/// How long changes are gathered before they are drawn.
const FRAME: Duration = Duration::from_millis(30);

/// How often a screen is drawn that changes with time.
const TICK: Duration = Duration::from_secs(1);

/// How many of the last lines stay on the terminal at the end.
const LEFT_BEHIND: usize = 20;

/// The rows of a page.
const PAGE: isize = 10;

/// A key that asks for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// What is no matter of the screen.
    Typed(Typed),
    End,
    /// Rows back (positive) or forth in what was told.
    Scroll(isize),
    /// To what was told last.
    Newest,
    /// What is told of the next plugin alone, or of all again.
    NextPlugin,
    /// The terminal has another size.
    Redraw,
}

/// The terminal while it is the program's own.
pub(in crate::dev) struct Screen {
    model: Mutex<Model>,
    terminal: Mutex<DefaultTerminal>,
    changed: Notify,
    ended: Notify,
    typed: Mutex<Option<mpsc::UnboundedReceiver<Typed>>>,
    keys: Mutex<Option<mpsc::UnboundedReceiver<Key>>>,
    to_input: mpsc::UnboundedSender<Typed>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// If it cannot be had.
    pub(super) fn open(model: Model) -> io::Result<Self> {
        let terminal = ratatui::try_init()?;
        let (to_screen, keys) = mpsc::unbounded_channel();
        let (to_input, typed) = mpsc::unbounded_channel();
        // It waits for keys that may never come, and ends with the process.
        thread::Builder::new().name("keys".into()).spawn(move || read_keys(&to_screen))?;
        Ok(Self {
            model: Mutex::new(model),
            terminal: Mutex::new(terminal),
            changed: Notify::new(),
            ended: Notify::new(),
            typed: Mutex::new(Some(typed)),
            keys: Mutex::new(Some(keys)),
            to_input,
        })
    }

    /// Changes what is shown.
    pub(super) fn change(&self, change: impl FnOnce(&mut Model)) {
        change(&mut lock(&self.model));
        self.changed.notify_one();
    }

    /// What the author types that is no matter of the screen. To be had once.
    pub(super) fn typed(&self) -> Option<mpsc::UnboundedReceiver<Typed>> {
        lock(&self.typed).take()
    }

    /// Resolves once the author ends it.
    pub(super) async fn ended(&self) {
        self.ended.notified().await;
    }

    /// Draws, until the author ends it for the second time.
    pub(super) async fn follow(self: Arc<Self>) {
        let Some(mut keys) = lock(&self.keys).take() else { return std::future::pending().await };
        let mut ends = false;
        loop {
            self.draw();
            let is_building = lock(&self.model).is_building();
            tokio::select! {
                () = self.changed.notified() => tokio::time::sleep(FRAME).await,
                () = tokio::time::sleep(TICK), if is_building => {}
                key = keys.recv() => match key {
                    Some(Key::End) if ends => return,
                    Some(Key::End) => {
                        ends = true;
                        self.ended.notify_one();
                        self.change(|model| model.line(None, "ending what is under way; once more does not wait"));
                    }
                    Some(key) => self.press(key),
                    // Without keys it can still be ended by a signal.
                    None => std::future::pending().await,
                },
            }
        }
    }

    fn press(&self, key: Key) {
        match key {
            // Nobody waits for it only at the end.
            Key::Typed(typed) => drop(self.to_input.send(typed)),
            Key::Scroll(rows) => lock(&self.model).scroll(rows),
            Key::Newest => lock(&self.model).show_newest(),
            Key::NextPlugin => lock(&self.model).next_plugin(),
            Key::Redraw | Key::End => {}
        }
    }

    fn draw(&self) {
        let mut model = lock(&self.model);
        // A terminal that is gone shows nothing; its process gets a signal.
        drop(lock(&self.terminal).draw(|frame| model.draw(frame)));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
        for line in lock(&self.model).last(LEFT_BEHIND) {
            drop(crate::output::print_line(line));
        }
    }
}

fn read_keys(to: &mpsc::UnboundedSender<Key>) {
    while let Ok(event) = event::read() {
        let key = match event {
            Event::Key(key) if key.kind == KeyEventKind::Press => meaning(key),
            Event::Resize(..) => Some(Key::Redraw),
            _ => None,
        };
        if key.is_some_and(|key| to.send(key).is_err()) {
            return;
        }
    }
}

/// What a key asks for.
fn meaning(key: KeyEvent) -> Option<Key> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c' | 'd') if is_control => Some(Key::End),
        _ if is_control => None,
        KeyCode::Char('q') => Some(Key::End),
        KeyCode::Char('y' | 'Y') => Some(Key::Typed(Typed::Yes)),
        KeyCode::Char('b') | KeyCode::Enter => Some(Key::Typed(Typed::Again)),
        KeyCode::Char('k') | KeyCode::Up => Some(Key::Scroll(1)),
        KeyCode::Char('j') | KeyCode::Down => Some(Key::Scroll(-1)),
        KeyCode::PageUp => Some(Key::Scroll(PAGE)),
        KeyCode::PageDown => Some(Key::Scroll(-PAGE)),
        KeyCode::End | KeyCode::Esc => Some(Key::Newest),
        KeyCode::Tab => Some(Key::NextPlugin),
        _ => None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_last_row_says() {
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        for (key, expected) in [
            (plain(KeyCode::Char('b')), Some(Key::Typed(Typed::Again))),
            (plain(KeyCode::Enter), Some(Key::Typed(Typed::Again))),
            (plain(KeyCode::Char('y')), Some(Key::Typed(Typed::Yes))),
            (plain(KeyCode::Char('n')), None),
            (plain(KeyCode::Up), Some(Key::Scroll(1))),
            (plain(KeyCode::PageDown), Some(Key::Scroll(-PAGE))),
            (plain(KeyCode::Esc), Some(Key::Newest)),
            (plain(KeyCode::Tab), Some(Key::NextPlugin)),
            (plain(KeyCode::Char('q')), Some(Key::End)),
            (KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::End)),
            (KeyEvent::new(KeyCode::Char('y'), KeyModifiers::CONTROL), None),
        ] {
            assert_eq!(meaning(key), expected, "{key:?}");
        }
    }
}
