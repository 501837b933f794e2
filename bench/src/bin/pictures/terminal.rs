//! A picture of a terminal: a part of what a command printed, with its colours.

use anstyle_svg::Term;
use anyhow::{Result, ensure};

/// How wide a line is at most, in characters.
const WIDTH: usize = 118;

/// The lines from the one that begins with `from` up to the one before that with `until`, as an SVG.
///
/// # Errors
/// There are none.
pub fn picture(output: &str, from: &str, until: &str) -> Result<String> {
    let lines = output.lines().skip_while(|line| !begins(line, from)).take_while(|line| !begins(line, until));
    let lines: Vec<_> = lines.map(shortened).collect();
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
    ensure!(end > 0, "no line begins with '{from}'");
    Ok(Term::new().render_svg(&lines[..end].join("\n")))
}

/// Whether a line begins with a text, whatever its colour.
fn begins(line: &str, text: &str) -> bool {
    plain(line).starts_with(text)
}

/// A line without its colours.
fn plain(line: &str) -> String {
    anstream::adapter::strip_str(line).to_string()
}

/// A line that is not wider than the picture. Its colour ends with it.
fn shortened(line: &str) -> String {
    if plain(line).chars().count() <= WIDTH {
        return line.to_owned();
    }
    line.chars().take(WIDTH - 1).chain("…\x1b[0m".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_output_becomes_a_picture() -> Result<()> {
        let output = "building\n\x1b[1m1. One\x1b[0m\n   $ first\n\n\x1b[1m2. Two\x1b[0m\n   $ second\n";
        let picture = picture(output, "1. ", "2. ")?;
        assert!(picture.starts_with("<svg"), "{picture}");
        assert!(picture.contains("1. One") && picture.contains("$ first"), "{picture}");
        assert!(!picture.contains("building") && !picture.contains("second"), "{picture}");
        Ok(())
    }

    #[test]
    fn nothing_to_show_is_an_error() {
        assert!(picture("building\n", "1. ", "2. ").is_err());
    }

    #[test]
    fn a_line_that_is_too_wide_is_cut() {
        assert_eq!(shortened("short"), "short");
        let dimmed = format!("\x1b[2m{}\x1b[0m", "x".repeat(200));
        assert!(shortened(&dimmed).ends_with("x…\x1b[0m"));
    }
}
