//! Asks before something is done that nobody should do by mistake. Decides nothing.

use std::io::{IsTerminal, Write};

use anyhow::bail;

/// Asks a question on the terminal, unless it is answered already.
///
/// # Errors
/// If the answer is not yes, or there is nobody to ask.
pub fn confirm(question: &str, is_answered: bool) -> anyhow::Result<()> {
    if is_answered {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        bail!("nothing was changed; confirm with --yes");
    }
    eprint!("{question} [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if answer.trim().eq_ignore_ascii_case("y") { Ok(()) } else { bail!("nothing was changed") }
}
