//! Which field of a JSON text lies at a position, for error messages. It is only called after a parser has stopped there, so
//! it does not check the text.

/// One level of nesting that is open at the position.
enum Level<'t> {
    Map(&'t str),
    Sequence(usize),
}

/// The path of the field at `line` and `column`, both counted from one: `spec.ports[1].name`.
pub(crate) fn at(text: &str, line: usize, column: usize) -> String {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let end = (start + column).saturating_sub(1).min(text.len());
    render(&open_levels(text, end))
}

/// The levels that are open before the byte at `end`.
fn open_levels(text: &str, end: usize) -> Vec<Level<'_>> {
    let bytes = text.as_bytes();
    let mut levels = Vec::new();
    let mut is_key = false;
    let mut i = 0;
    while i < end {
        match bytes[i] {
            b'{' => {
                levels.push(Level::Map(""));
                is_key = true;
            }
            b'[' => {
                levels.push(Level::Sequence(0));
                is_key = false;
            }
            b'}' | b']' => {
                levels.pop();
            }
            b':' => is_key = false,
            b',' => match levels.last_mut() {
                Some(Level::Sequence(index)) => *index += 1,
                Some(Level::Map(_)) => is_key = true,
                None => {}
            },
            b'"' => {
                let close = end_of_string(bytes, i + 1);
                if let (true, Some(Level::Map(key))) = (is_key, levels.last_mut()) {
                    *key = text.get(i + 1..close).unwrap_or_default();
                }
                i = close;
            }
            _ => {}
        }
        i += 1;
    }
    // A parser finds a missing field at the end of its map: the last key of the map is not at fault.
    if let (Some(b'}'), Some(Level::Map(key))) = (bytes.get(end), levels.last_mut()) {
        *key = "";
    }
    levels
}

/// The index of the quote that ends the string whose content begins at `i`.
fn end_of_string(bytes: &[u8], mut i: usize) -> usize {
    while i < bytes.len() && bytes[i] != b'"' {
        i += if bytes[i] == b'\\' { 2 } else { 1 };
    }
    i.min(bytes.len())
}

fn render(levels: &[Level<'_>]) -> String {
    levels.iter().fold(String::new(), |mut path, level| {
        match level {
            Level::Map("") => {}
            Level::Map(key) if path.is_empty() => path.push_str(key),
            Level::Map(key) => path.extend([".", key]),
            Level::Sequence(index) => path.push_str(&format!("[{index}]")),
        }
        path
    })
}
