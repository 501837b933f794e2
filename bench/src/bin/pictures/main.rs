//! Makes the pictures of the README: a terminal with what a command printed, and a plot of a comparison. Reads standard input and prints
//! an SVG; runs nothing and measures nothing. `make pictures` calls it.
//!
//!   pictures terminal FROM UNTIL < OUTPUT    the lines from the one that begins with FROM up to the one before UNTIL
//!   pictures comparison < RESULTS            the table of `make compare`, as it is kept in bench/results

mod comparison;
mod terminal;

use std::io::{Read, stdin};

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let mut input = String::new();
    stdin().read_to_string(&mut input)?;
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let picture = match arguments[..] {
        ["terminal", from, until] => terminal::picture(&input, from, until)?,
        ["comparison"] => comparison::picture(&input)?,
        _ => bail!("usage: pictures terminal FROM UNTIL < OUTPUT\n       pictures comparison < RESULTS"),
    };
    print!("{picture}");
    Ok(())
}
