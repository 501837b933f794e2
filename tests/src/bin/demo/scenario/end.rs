//! The last step: the host ends gracefully, then the control plane.

use std::time::Instant;

use anyhow::Result;

use crate::{environment::Environment, printer::Printer};

/// Stops everything; prints it as a step only where the scenario came to its end.
///
/// # Errors
/// If a part does not shut down gracefully.
pub async fn close(printer: &mut Printer, environment: Environment, completed: bool) -> Result<()> {
    if !completed {
        return environment.close().await;
    }
    printer.step("The end")?;
    let before = Instant::now();
    environment.close().await?;
    printer.took("host, control plane", "stopped; nothing is left running", before.elapsed())?;
    printer.say(&format!("The whole scenario took {:.1} s.", printer.elapsed().as_secs_f64()))?;
    printer.say("To play with it yourself: make up")?;
    Ok(())
}
