//! The last step: the host ends in good order, then the control plane.

use std::time::Instant;

use anyhow::Result;

use crate::{narrator::Narrator, stage::Stage};

/// Stops everything; tells it as a step only where the story came to its end.
///
/// # Errors
/// What did not end in good order.
pub async fn close(narrator: &mut Narrator, stage: Stage, told: bool) -> Result<()> {
    if !told {
        return stage.close().await;
    }
    narrator.step("The end")?;
    let before = Instant::now();
    stage.close().await?;
    narrator.took("host, control plane", "stopped; nothing is left running", before.elapsed())?;
    narrator.say(&format!("The whole story took {:.1} s.", narrator.elapsed().as_secs_f64()))?;
    narrator.say("To play with it yourself: make up")?;
    Ok(())
}
