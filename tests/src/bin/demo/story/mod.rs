//! The story: its steps in order, one file each. A step does something, waits until the cluster shows it, and tells what
//! it read back; what does not happen in time is an error that names what is there instead.

mod begin;
mod broken;
mod drift;
mod end;
mod objects;
mod recreate;
mod remove;
mod scale;
mod swap;

use anyhow::Result;

use crate::{narrator::Narrator, stage::Stage};

pub use begin::open;
pub use end::close;

/// The story's own object.
const SHOP: &str = "shop";
/// The object of the repository's sample.
const HELLO: &str = "hello";
/// The plugin's file in the plugin directory.
const PLUGIN: &str = "app-service.wasm";

/// Plays all steps between the beginning and the end.
///
/// # Errors
/// The step that did not happen.
pub async fn tell(narrator: &mut Narrator, stage: &mut Stage) -> Result<()> {
    objects::apply(narrator, stage).await?;
    drift::repair(narrator, stage).await?;
    recreate::child(narrator, stage).await?;
    scale::object(narrator, stage).await?;
    swap::plugin(narrator, stage).await?;
    broken::plugin(narrator, stage).await?;
    remove::object(narrator, stage).await
}
