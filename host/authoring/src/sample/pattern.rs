//! Texts that a regular expression matches, the shortest first. What it cannot read has none.

use regex_syntax::hir::{Class, Hir, HirKind, Literal};

/// How often more than needed what may be repeated is, in one text after another.
const MORE: [u32; 5] = [0, 1, 3, 8, 64];

/// Some texts that a pattern matches, of at most so many bytes.
pub(super) fn texts(pattern: &str, longest: usize) -> Vec<String> {
    let Ok(read) = regex_syntax::parse(pattern) else { return Vec::new() };
    let made = MORE.iter().map(|more| {
        let mut text = String::new();
        write(&read, *more, longest, &mut text).then_some(text)
    });
    made.into_iter().flatten().collect()
}

/// Adds a text that matches. False if there is none, or it is too long.
fn write(hir: &Hir, more: u32, longest: usize, text: &mut String) -> bool {
    if text.len() > longest {
        return false;
    }
    match hir.kind() {
        // Where a text begins and ends follows from the rest.
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(Literal(bytes)) => std::str::from_utf8(bytes).map(|it| text.push_str(it)).is_ok(),
        HirKind::Class(class) => letter(class).map(|it| text.push(it)).is_some(),
        HirKind::Repetition(of) => {
            let most = of.max.unwrap_or(u32::MAX);
            (0..of.min.saturating_add(more).min(most)).all(|_| write(&of.sub, more, longest, text))
        }
        HirKind::Capture(of) => write(&of.sub, more, longest, text),
        HirKind::Concat(all) => all.iter().all(|of| write(of, more, longest, text)),
        HirKind::Alternation(all) => all.iter().any(|of| {
            let before = text.len();
            let is_written = write(of, more, longest, text);
            if !is_written {
                text.truncate(before);
            }
            is_written
        }),
    }
}

/// A letter of a class: one that people like, if it has one.
fn letter(class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => class.iter().map(|range| (char::from(range.start()), char::from(range.end()))).collect(),
    };
    let has = |letter: char| ranges.iter().any(|(from, to)| (*from..=*to).contains(&letter));
    let printable = |(from, to): &(char, char)| (*from..=*to).find(|letter| letter.is_ascii_graphic());
    let any = || ranges.first().map(|(from, _)| *from);
    "aA0".chars().find(|it| has(*it)).or_else(|| ranges.iter().find_map(printable)).or_else(any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_text_is_first() {
        for (pattern, expected) in [
            ("^abc$", Some("abc")),
            ("^[a-z]{3}[0-9]+(-x)?$", Some("aaa0")),
            (r"^(\+|-)?[0-9]+\.[0-9]*$", Some("0.")),
            ("^(?:x|yy)Z$", Some("xZ")),
            ("^[^a-zA-Z0-9]$", Some("!")),
            ("[", None),
            ("(?<!a)b", None),
        ] {
            assert_eq!(texts(pattern, 100).first().map(String::as_str), expected, "{pattern}");
        }
        assert!(texts("^a{200}$", 100).is_empty());
    }
}
