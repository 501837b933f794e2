//! The path of a line of YAML in block style, such as `steps[1].expect`, from its indentation. Parses no values.

/// What a line begins with.
#[derive(Clone, Copy)]
struct Token<'a> {
    indent: usize,
    /// The key; none for an element of a list.
    key: Option<&'a str>,
}

/// The path of a line, as far as keys with less and less indentation above it show.
pub(super) fn path_at(text: &str, line: usize) -> String {
    let lines: Vec<_> = text.lines().take(line).collect();
    let begin = lines.iter().rposition(|line| line.starts_with("---")).map_or(0, |place| place + 1);
    let tokens: Vec<_> = lines[begin..].iter().flat_map(|line| tokens(line)).collect();
    let (mut path, mut below, mut list) = (Vec::new(), usize::MAX, None);
    for (place, token) in tokens.iter().enumerate().rev() {
        let Token { indent, key } = *token;
        if indent >= below || (key.is_none() && list == Some(indent)) {
            continue;
        }
        match key {
            Some(key) => {
                path.push(key.to_owned());
                (below, list) = (indent, None);
            }
            None => {
                path.push(format!("[{}]", elements_before(&tokens[..place], indent)));
                // The key of a list may have the same indentation as its elements.
                (below, list) = (indent + 1, Some(indent));
            }
        }
    }
    path.reverse();
    path.join(".").replace(".[", "[")
}

/// How many elements of the list at this indentation come before.
fn elements_before(tokens: &[Token<'_>], list: usize) -> usize {
    let is_in_list = |token: &&Token<'_>| token.indent > list || (token.indent == list && token.key.is_none());
    tokens.iter().rev().take_while(is_in_list).filter(|token| token.indent == list).count()
}

fn tokens(line: &str) -> Vec<Token<'_>> {
    let (mut found, mut rest) = (Vec::new(), line.trim_start());
    while let Some(after) = rest.strip_prefix("- ") {
        found.push(Token { indent: line.len() - rest.len(), key: None });
        rest = after.trim_start();
    }
    let key = rest.split_once(':').map(|(key, _)| key.trim_matches(['"', '\'']));
    let is_key = |key: &&str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    found.extend(key.filter(is_key).map(|key| Token { indent: line.len() - rest.len(), key: Some(key) }));
    found
}

#[cfg(test)]
mod tests {
    use super::path_at;

    const TEXT: &str = "
object:
  spec: {a: 1}
steps:
- name: first
  expect:
    verdict: done
- name: second
  live:
    Deployment/web:
      - a: 1
      - b: 2
---
object: {}
expect:
  children: []
";

    #[test]
    fn a_line_has_the_path_of_the_keys_above_it() {
        for (line, path) in [
            (2, "object"),
            (3, "object.spec"),
            (5, "steps[0].name"),
            (7, "steps[0].expect.verdict"),
            (8, "steps[1].name"),
            (12, "steps[1].live.Deployment/web[1].b"),
            (14, "object"),
            (16, "expect.children"),
        ] {
            assert_eq!(path_at(TEXT, line), path, "line {line}");
        }
    }
}
