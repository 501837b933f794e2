//! The tokens of Rust source, as far as they are needed to find imports: without comments, attributes, macro definitions and test
//! code. The content of string literals is ignored.

/// One piece of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A keyword, a name or a number.
    Word(&'a str),
    /// `::`
    Colons,
    /// Any other single character.
    Sign(char),
    /// A string or character literal.
    Literal,
}

use Token::{Colons, Literal, Sign, Word};

/// The tokens of the code that is built outside tests.
pub fn built(source: &str) -> Vec<Token<'_>> {
    let all = tokens(source);
    let mut kept = Vec::with_capacity(all.len());
    let mut rest = &all[..];
    while let Some(token) = rest.first() {
        if let Some(attribute) = attribute(rest) {
            if is_test(&rest[..attribute]) {
                // `#![cfg(test)]` applies to everything that follows.
                let inner = rest.get(1) == Some(&Sign('!'));
                rest = if inner { &[] } else { after_item(&rest[attribute..]) };
            } else {
                rest = &rest[attribute..];
            }
        } else if let Some(end) = macro_definition(rest) {
            rest = &rest[end..];
        } else {
            kept.push(*token);
            rest = &rest[1..];
        }
    }
    kept
}

/// All tokens, without comments.
fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (token, length) = if first.is_whitespace() {
            (None, first.len_utf8())
        } else if let Some(length) = comment(rest) {
            (None, length)
        } else if let Some(length) = quoted(rest) {
            (Some(Literal), length)
        } else if let Some(length) = lifetime(rest) {
            (None, length)
        } else if rest.starts_with("::") {
            (Some(Colons), 2)
        } else if is_word(first) {
            let begin = if rest.starts_with("r#") { 2 } else { 0 };
            let length = begin + word_length(&rest[begin..]);
            (Some(Word(&rest[begin..length])), length)
        } else {
            (Some(Sign(first)), first.len_utf8())
        };
        found.extend(token);
        rest = &rest[length..];
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn word_length(rest: &str) -> usize {
    rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())
}

/// The length of the comment that begins here.
fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    Some(rest.len())
}

/// The length of the string or character literal that begins here, with its prefix.
fn quoted(rest: &str) -> Option<usize> {
    let unprefixed = rest.trim_start_matches(['b', 'c']);
    let prefix = rest.len() - unprefixed.len();
    if prefix > 1 {
        return None;
    }
    let length = match unprefixed.as_bytes().first()? {
        b'"' => escaped(unprefixed, '"'),
        b'r' => raw(unprefixed)?,
        b'\'' if is_character(unprefixed) => escaped(unprefixed, '\''),
        _ => return None,
    };
    Some(prefix + length)
}

fn escaped(rest: &str, quote: char) -> usize {
    let mut escape = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escape => escape = false,
            '\\' => escape = true,
            _ if letter == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw(rest: &str) -> Option<usize> {
    let body = rest[1..].trim_start_matches('#');
    let hashes = rest.len() - 1 - body.len();
    let text = body.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = text.find(&end).map_or(text.len(), |at| at + end.len());
    Some(1 + hashes + 1 + length)
}

/// Distinguishes `'a'` from the lifetime `'a`.
fn is_character(rest: &str) -> bool {
    let mut letters = rest.chars().skip(1);
    letters.next() == Some('\\') || letters.next() == Some('\'')
}

fn lifetime(rest: &str) -> Option<usize> {
    Some(1 + word_length(rest.strip_prefix('\'')?))
}

/// The number of tokens of the attribute that begins here.
fn attribute(rest: &[Token]) -> Option<usize> {
    let begin = match rest {
        [Sign('#'), Sign('['), ..] => 1,
        [Sign('#'), Sign('!'), Sign('['), ..] => 2,
        _ => return None,
    };
    Some(begin + group(&rest[begin..]))
}

/// `#[cfg(test)]`, and `#[cfg(all(test, ...))]`.
fn is_test(attribute: &[Token]) -> bool {
    let inside = attribute.split(|token| *token == Sign('[')).nth(1).unwrap_or_default();
    matches!(
        inside,
        [Word("cfg"), Sign('('), Word("test"), Sign(')'), ..]
            | [Word("cfg"), Sign('('), Word("all"), Sign('('), Word("test"), ..]
    )
}

/// The number of tokens of the group that begins here with a bracket.
pub fn group(rest: &[Token]) -> usize {
    let mut depth = 0;
    for (at, token) in rest.iter().enumerate() {
        match token {
            Sign('(' | '[' | '{') => depth += 1,
            Sign(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    rest.len()
}

/// The tokens after the item, statement, field or match arm that begins here, possibly with further attributes.
fn after_item<'a, 'b>(mut rest: &'b [Token<'a>]) -> &'b [Token<'a>] {
    while let Some(attribute) = attribute(rest) {
        rest = &rest[attribute..];
    }
    let ends_with_semicolon = declares(rest, &["use", "const", "static", "type", "let"]);
    let is_item = ends_with_semicolon || declares(rest, &["fn", "mod", "struct", "enum", "trait", "impl", "async"]);
    let mut at = 0;
    while let Some(token) = rest.get(at) {
        match token {
            Sign(';') => return &rest[at + 1..],
            Sign(',') if !is_item => return &rest[at + 1..],
            Sign(')' | ']' | '}') => return &rest[at..],
            Sign('{') if !ends_with_semicolon => return &rest[at + group(&rest[at..])..],
            Sign('(' | '[' | '{') => at += group(&rest[at..]),
            _ => at += 1,
        }
    }
    &[]
}

/// Whether an item with one of these keywords begins here, after its visibility. `const fn` is a function.
fn declares(rest: &[Token], words: &[&str]) -> bool {
    let rest = &rest[visibility(rest)..];
    match rest {
        [Word("const"), Word("fn"), ..] => words.contains(&"fn"),
        [Word(word), ..] => words.contains(word),
        _ => false,
    }
}

/// The number of tokens of the visibility that begins here: `pub`, `pub(crate)`.
pub fn visibility(rest: &[Token]) -> usize {
    match rest {
        [Word("pub"), Sign('('), ..] => 1 + group(&rest[1..]),
        [Word("pub"), ..] => 1,
        _ => 0,
    }
}

/// The number of tokens of the macro definition that begins here. Its paths are resolved where the macro is used.
fn macro_definition(rest: &[Token]) -> Option<usize> {
    match rest {
        [Word("macro_rules"), Sign('!'), Word(_), ..] => Some(3 + group(&rest[3..])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<&str> {
        let words = built(source).into_iter().filter_map(|token| match token {
            Word(word) => Some(word),
            _ => None,
        });
        words.collect()
    }

    #[test]
    fn comments_and_texts_hold_no_words() {
        let source = r##"
            /// Like [`crate::one`].
            use a::b; // crate::two
            /* crate::three /* nested */ crate::four */
            fn c<'d>(e: &'d str) -> char { f("crate::five \" x", r#"crate::"six"#, b"g", '\'', 'h') }
        "##;
        assert_eq!(words(source), ["use", "a", "b", "fn", "c", "e", "str", "char", "f"]);
    }

    #[test]
    fn test_code_is_left_out() {
        let source = "
            #[cfg(test)] use a::{b, c};
            #[cfg(test)] mod d { fn e() {} }
            #[cfg(test)] #[allow(f)] mod g;
            #[cfg(all(test, unix))] fn h() -> [u8; 3] { i }
            struct J { #[cfg(test)] k: L, m: N }
            #[cfg(feature = \"test\")] mod o;
            #[cfg(any(test, unix))] mod p;
        ";
        assert_eq!(words(source), ["struct", "J", "m", "N", "mod", "o", "mod", "p"]);
        assert_eq!(words("//! Only for tests.\n#![cfg(test)]\nuse a::b;"), [""; 0]);
    }

    #[test]
    fn macro_definitions_are_left_out() {
        assert_eq!(words("macro_rules! a { () => { $crate::b() } } fn c() {}"), ["fn", "c"]);
    }
}
