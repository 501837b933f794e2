//! What the screen shows, and how it looks. Knows no terminal.

use std::{collections::VecDeque, time::Instant};

use ratatui::{
    Frame,
    layout::{Constraint, Layout},
    style::{Color, Style, Stylize},
    text::{Line, Span},
};

/// How many lines are kept.
const KEPT: usize = 5_000;

/// Where a plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::dev) enum Stage {
    /// It was not built yet.
    Waiting,
    /// It is being built and tried, since then.
    Building(Instant),
    /// The last round failed; the version that goes on, if there is one.
    Failed(Option<String>),
    /// This version is at work.
    AtWork(String),
}

/// Something that is shown of a plugin until the next of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::dev) enum Note {
    /// How its test cases ended.
    Cases {
        /// How many there are.
        all: usize,
        /// How many failed.
        failed: usize,
    },
    /// Its calls.
    Calls(String),
    /// Whether something waits for a `y`.
    Asks(bool),
}

struct Project {
    label: String,
    stage: Stage,
    cases: Option<(usize, usize)>,
    calls: String,
    asks: bool,
}

struct Told {
    label: Option<String>,
    text: String,
}

/// What the screen shows.
pub(super) struct Model {
    projects: Vec<Project>,
    told: VecDeque<Told>,
    /// How many rows the shown ones are away from the newest.
    back: usize,
    /// The only plugin of which something is shown.
    only: Option<usize>,
}

impl Model {
    pub(super) fn new(labels: Vec<String>) -> Self {
        let project = |label| Project { label, stage: Stage::Waiting, cases: None, calls: String::new(), asks: false };
        Self { projects: labels.into_iter().map(project).collect(), told: VecDeque::new(), back: 0, only: None }
    }

    pub(super) fn line(&mut self, label: Option<&str>, text: &str) {
        if self.told.len() == KEPT {
            self.told.pop_front();
        }
        self.told.push_back(Told { label: label.map(str::to_owned), text: text.to_owned() });
        // Whoever reads something older goes on reading it.
        if self.back > 0 {
            self.back += 1;
        }
    }

    pub(super) fn stage(&mut self, label: &str, stage: Stage) {
        if let Some(project) = self.project(label) {
            project.stage = stage;
        }
    }

    pub(super) fn note(&mut self, label: &str, note: Note) {
        let Some(project) = self.project(label) else { return };
        match note {
            Note::Cases { all, failed } => project.cases = Some((all, failed)),
            Note::Calls(calls) => project.calls = calls,
            Note::Asks(asks) => project.asks = asks,
        }
    }

    /// Whether what is shown changes with time alone.
    pub(super) fn is_building(&self) -> bool {
        self.projects.iter().any(|project| matches!(project.stage, Stage::Building(_)))
    }

    pub(super) fn scroll(&mut self, rows: isize) {
        self.back = self.back.saturating_add_signed(rows).min(self.told.len());
    }

    pub(super) fn show_newest(&mut self) {
        self.back = 0;
    }

    pub(super) fn next_plugin(&mut self) {
        let next = self.only.map_or(0, |shown| shown + 1);
        self.only = (next < self.projects.len()).then_some(next);
        self.back = 0;
    }

    /// The last lines, for a terminal that gets its own screen back.
    pub(super) fn last(&self, count: usize) -> impl Iterator<Item = String> {
        self.told.iter().skip(self.told.len().saturating_sub(count)).map(|told| match &told.label {
            Some(label) => format!("{label}: {}", told.text),
            None => told.text.clone(),
        })
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let heads = u16::try_from(self.projects.len()).unwrap_or(u16::MAX);
        let layout = [Constraint::Max(heads), Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)];
        let [head, rule, body, foot] = Layout::vertical(layout).areas(frame.area());
        for (project, row) in self.projects.iter().zip(head.rows()) {
            frame.render_widget(project.line(), row);
        }
        frame.render_widget(Line::from("─".repeat(rule.width.into())).dim(), rule);
        let rows = self.rows(body.width.into(), body.height.into());
        for (line, row) in rows.into_iter().zip(body.rows()) {
            frame.render_widget(line, row);
        }
        frame.render_widget(self.keys(), foot);
    }

    fn project(&mut self, label: &str) -> Option<&mut Project> {
        self.projects.iter_mut().find(|project| project.label == label)
    }

    /// The rows that fit, the newest last. Corrects how far back it is, if that is further than there are rows.
    fn rows(&mut self, width: usize, height: usize) -> Vec<Line<'static>> {
        let only = self.only.and_then(|only| self.projects.get(only)).map(|project| project.label.clone());
        let is_shown = |told: &&Told| only.is_none() || only == told.label;
        let mut rows = Vec::new();
        for told in self.told.iter().rev().filter(is_shown) {
            if rows.len() >= self.back + height {
                break;
            }
            rows.extend(told.rows(width).into_iter().rev());
        }
        self.back = self.back.min(rows.len().saturating_sub(height));
        let mut shown: Vec<_> = rows.into_iter().skip(self.back).take(height).collect();
        shown.reverse();
        shown
    }

    fn keys(&self) -> Line<'static> {
        let mut keys = vec![" b ".reversed(), " build again  ".into()];
        if self.projects.iter().any(|project| project.asks) {
            keys.extend([" y ".reversed().yellow(), " what is held back is meant  ".into()]);
        }
        keys.extend([" ↑ ↓ ".reversed(), " read back  ".into()]);
        if self.projects.len() > 1 {
            let shown = self.only.and_then(|only| self.projects.get(only));
            let what = shown.map_or("all plugins".to_owned(), |project| format!("only {}", project.label));
            keys.extend([" Tab ".reversed(), format!(" {what}  ").into()]);
        }
        keys.extend([" q ".reversed(), " end".into()]);
        if self.back > 0 {
            keys.push(format!("  {} rows below", self.back).yellow());
        }
        keys.into()
    }
}

impl Project {
    fn line(&self) -> Line<'static> {
        let (colour, text) = match &self.stage {
            Stage::Waiting => (Color::DarkGray, "not built yet".to_owned()),
            Stage::Building(since) => (Color::Yellow, format!("building, {} s", since.elapsed().as_secs())),
            Stage::Failed(None) => (Color::Red, "failed".to_owned()),
            Stage::Failed(Some(version)) => (Color::Red, format!("failed; {version} goes on")),
            Stage::AtWork(version) => (Color::Green, format!("{version} at work")),
        };
        let mut spans =
            vec![Span::styled("● ", colour), Span::from(self.label.clone()).bold(), Span::from("  "), text.into()];
        if let Some((all, failed)) = self.cases {
            let passed = all - failed;
            let colour = if failed > 0 { Color::Red } else { Color::Green };
            spans.push("  │  cases ".dim());
            spans.push(Span::styled(format!("{passed} of {all}"), colour));
        }
        if !self.calls.is_empty() {
            spans.push("  │  ".dim());
            spans.push(self.calls.clone().into());
        }
        if self.asks {
            spans.push("  │  ".dim());
            spans.push("deletes are held back".yellow());
        }
        spans.into()
    }
}

impl Told {
    /// The rows of a line at this width.
    fn rows(&self, width: usize) -> Vec<Line<'static>> {
        let label = self.label.as_ref().map(|label| format!("{label}: ")).unwrap_or_default();
        let style = style_of(&self.text);
        let mut rows = Vec::new();
        for (number, part) in wrapped(&format!("{label}{}", self.text), width).into_iter().enumerate() {
            let (label, text) = match number {
                0 => part.split_at(part.floor_char_boundary(label.len())),
                _ => ("", part),
            };
            rows.push(Line::from(vec![label.to_owned().dim(), Span::styled(text.to_owned(), style)]));
        }
        rows
    }
}

/// What a line is about is seen by how it begins.
fn style_of(text: &str) -> Style {
    let trimmed = text.trim_start();
    let begins = |with: &str| trimmed.starts_with(with);
    match () {
        () if begins("error") || begins("ERROR") || text.contains(" ERROR ") => Style::new().red(),
        () if begins("warning") || text.contains(" WARN ") => Style::new().yellow(),
        () if begins("+ ") => Style::new().green(),
        () if begins("- ") => Style::new().red(),
        () if begins("~ ") => Style::new().yellow(),
        () => Style::new(),
    }
}

/// Cuts a text into parts that are at most so wide; at least one.
fn wrapped(text: &str, width: usize) -> Vec<&str> {
    let (mut parts, mut start, mut used) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        let wide = Span::raw(&text[at..at + letter.len_utf8()]).width();
        if used + wide > width.max(1) && at > start {
            parts.push(&text[start..at]);
            (start, used) = (at, 0);
        }
        used += wide;
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend, buffer::Cell};

    use super::*;

    fn drawn(model: &mut Model, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap_or_else(|never| match never {});
        terminal.draw(|frame| model.draw(frame)).unwrap_or_else(|never| match never {});
        let buffer = terminal.backend().buffer().clone();
        let text = |row: &[Cell]| {
            let (mut text, mut covered) = (String::new(), 0);
            for cell in row {
                // A wide letter covers the next cell.
                if covered == 0 {
                    text.push_str(cell.symbol());
                    covered = Span::raw(cell.symbol()).width();
                }
                covered = covered.saturating_sub(1);
            }
            text.trim_end().to_owned()
        };
        buffer.content().chunks(width.into()).map(text).collect()
    }

    fn two() -> Model {
        Model::new(vec!["web".to_owned(), "worker".to_owned()])
    }

    #[test]
    fn each_plugin_has_a_row_and_what_is_told_comes_below() {
        let mut model = two();
        model.stage("web", Stage::AtWork("0.1.0 (54fd051aa3ee)".to_owned()));
        model.note("web", Note::Cases { all: 5, failed: 1 });
        model.note("web", Note::Calls("3 calls, 0.31 ms each".to_owned()));
        model.stage("worker", Stage::Failed(Some("0.2.0".to_owned())));
        model.line(Some("web"), "5 cases: 4 passed, 1 failed");
        model.line(None, "~ default/first");
        assert_eq!(
            drawn(&mut model, 90, 7),
            [
                "● web  0.1.0 (54fd051aa3ee) at work  │  cases 4 of 5  │  3 calls, 0.31 ms each",
                "● worker  failed; 0.2.0 goes on",
                &"─".repeat(90),
                "web: 5 cases: 4 passed, 1 failed",
                "~ default/first",
                "",
                " b  build again   ↑ ↓  read back   Tab  all plugins   q  end",
            ]
        );
    }

    #[test]
    fn the_newest_rows_are_shown_until_somebody_reads_back() {
        let mut model = two();
        for number in 0..10 {
            model.line(Some("web"), &format!("line {number}"));
        }
        let body = |model: &mut Model| drawn(model, 60, 7)[3..6].to_vec();
        assert_eq!(body(&mut model), ["web: line 7", "web: line 8", "web: line 9"]);
        model.scroll(2);
        assert_eq!(body(&mut model), ["web: line 5", "web: line 6", "web: line 7"]);
        model.line(Some("web"), "line 10");
        assert_eq!(body(&mut model), ["web: line 5", "web: line 6", "web: line 7"], "they stay where they are");
        model.scroll(100);
        assert_eq!(body(&mut model), ["web: line 0", "web: line 1", "web: line 2"]);
        model.show_newest();
        assert_eq!(body(&mut model), ["web: line 8", "web: line 9", "web: line 10"]);
    }

    #[test]
    fn one_plugin_can_be_shown_alone() {
        let mut model = two();
        model.line(Some("web"), "a");
        model.line(Some("worker"), "b");
        model.line(None, "c");
        let told = |model: &mut Model| drawn(model, 80, 8)[3..6].to_vec();
        assert_eq!(told(&mut model), ["web: a", "worker: b", "c"]);
        model.next_plugin();
        assert_eq!(told(&mut model), ["web: a", "", ""]);
        assert!(drawn(&mut model, 80, 8)[7].contains("Tab  only web"));
        model.next_plugin();
        model.next_plugin();
        assert_eq!(told(&mut model), ["web: a", "worker: b", "c"]);
    }

    #[test]
    fn a_long_line_goes_on_in_the_next_row_whatever_is_in_it() {
        let mut model = Model::new(vec!["web".to_owned()]);
        model.line(Some("web"), "0123456789 äöü 漢字漢字");
        assert_eq!(drawn(&mut model, 12, 7)[2..5], ["web: 0123456", "789 äöü 漢字", "漢字"].map(str::to_owned));
        assert_eq!(wrapped("", 10), [""]);
        assert_eq!(wrapped("漢字", 1), ["漢", "字"], "what does not fit at all has a row of its own");
    }

    #[test]
    fn a_small_terminal_shows_what_it_can() {
        let mut model = two();
        model.line(Some("web"), "a");
        for (width, height) in [(1, 1), (5, 2), (3, 4), (200, 3)] {
            drawn(&mut model, width, height);
        }
    }

    #[test]
    fn no_more_lines_are_kept_than_somebody_reads() {
        let mut model = two();
        (0..KEPT + 10).for_each(|number| model.line(None, &number.to_string()));
        assert_eq!(model.told.len(), KEPT);
        assert_eq!(model.last(2).collect::<Vec<_>>(), ["5008", "5009"]);
    }
}
