//! Texts with expressions in them: `${…}`. Finds where they begin and end; what is in them is for `template.rs`.

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it is.
    Plain(String),
    /// The text of an expression.
    Expression(String),
}

/// An expression that does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unended;

/// Takes a text apart. `$${` stands for `${` itself.
///
/// # Errors
/// [`Unended`] if an expression has no end.
pub fn pieces(text: &str) -> Result<Vec<Piece>, Unended> {
    let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            plain.push_str(before);
            plain.push_str("${");
            rest = &after[2..];
            continue;
        }
        plain.push_str(before);
        if !plain.is_empty() {
            pieces.push(Piece::Plain(std::mem::take(&mut plain)));
        }
        let body = &after[2..];
        let end = end_of(body).ok_or(Unended)?;
        pieces.push(Piece::Expression(body[..end].trim().to_owned()));
        rest = &body[end + 1..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Plain(plain));
    }
    Ok(pieces)
}

/// The place of the brace that ends an expression: braces within it are in pairs, and those in its texts do not count.
fn end_of(body: &str) -> Option<usize> {
    let (mut open, mut quote, mut is_escaped) = (0_usize, None, false);
    for (place, letter) in body.char_indices() {
        match (quote, letter) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(end), letter) if end == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '{') => open += 1,
            (None, '}') if open == 0 => return Some(place),
            (None, '}') => open -= 1,
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_found_wherever_they_are() {
        let plain = |text: &str| Piece::Plain(text.to_owned());
        let expression = |text: &str| Piece::Expression(text.to_owned());
        for (text, expected) in [
            ("", Ok(vec![])),
            ("web", Ok(vec![plain("web")])),
            ("${a.b}", Ok(vec![expression("a.b")])),
            ("${ a.b }", Ok(vec![expression("a.b")])),
            ("x-${a}-${b}", Ok(vec![plain("x-"), expression("a"), plain("-"), expression("b")])),
            ("${{'a': {'b': 1}}.a.b}", Ok(vec![expression("{'a': {'b': 1}}.a.b")])),
            ("${'}' + \"}'\" + '\\'}'}", Ok(vec![expression("'}' + \"}'\" + '\\'}'")])),
            ("$${a} costs $5", Ok(vec![plain("${a} costs $5")])),
            ("$${a}${b}", Ok(vec![plain("${a}"), expression("b")])),
            ("${a", Err(Unended)),
            ("${'}", Err(Unended)),
            ("}{", Ok(vec![plain("}{")])),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }
}
