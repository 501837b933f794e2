//! What the author types while the plugins run. Does nothing of it.

use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

/// What the author asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// `y`: what was asked about is meant.
    Yes,
    /// An empty line: build all, whether or not anything changed.
    Again,
}

/// Standard input.
pub(super) struct Input(Option<Lines<BufReader<Stdin>>>);

impl Input {
    /// Begins to read.
    pub(super) fn open() -> Self {
        Self(Some(BufReader::new(tokio::io::stdin()).lines()))
    }

    /// The next line that asks for something; never any once the input has ended. Loses none if it is dropped while it waits.
    pub(super) async fn next(&mut self) -> Typed {
        while let Some(lines) = &mut self.0 {
            match lines.next_line().await {
                Ok(Some(line)) => {
                    if let Some(typed) = meaning(&line) {
                        return typed;
                    }
                }
                Ok(None) | Err(_) => self.0 = None,
            }
        }
        std::future::pending().await
    }
}

fn meaning(line: &str) -> Option<Typed> {
    match line.trim() {
        "" => Some(Typed::Again),
        "y" | "Y" => Some(Typed::Yes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_y_and_an_empty_line_mean_something() {
        for (line, expected) in
            [("y", Some(Typed::Yes)), (" Y\r", Some(Typed::Yes)), ("", Some(Typed::Again)), ("n", None)]
        {
            assert_eq!(meaning(line), expected, "{line:?}");
        }
    }
}
