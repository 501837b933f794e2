//! What the author types while the plugins run. Does nothing of it.

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines, Stdin},
    sync::mpsc::UnboundedReceiver,
};

/// What the author asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// `y`: what was asked about is meant.
    Yes,
    /// An empty line: build all, whether or not anything changed.
    Again,
}

/// Where the author types.
pub(super) enum Input {
    /// Lines of standard input.
    Lines(Lines<BufReader<Stdin>>),
    /// Keys of a screen.
    Keys(UnboundedReceiver<Typed>),
    /// It has ended.
    Ended,
}

impl Input {
    /// Begins to read lines of standard input.
    pub(super) fn lines() -> Self {
        Self::Lines(BufReader::new(tokio::io::stdin()).lines())
    }

    /// What comes next that asks for something; never anything once the input has ended. Loses nothing if it is dropped while it waits.
    pub(super) async fn next(&mut self) -> Typed {
        loop {
            let typed = match self {
                Self::Lines(lines) => match lines.next_line().await {
                    Ok(Some(line)) => meaning(&line),
                    Ok(None) | Err(_) => {
                        *self = Self::Ended;
                        None
                    }
                },
                Self::Keys(keys) => {
                    let key = keys.recv().await;
                    if key.is_none() {
                        *self = Self::Ended;
                    }
                    key
                }
                Self::Ended => std::future::pending().await,
            };
            if let Some(typed) = typed {
                return typed;
            }
        }
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
