//! The scenario: its steps in order, one file each. A step does something, waits until the cluster shows it, and prints what
//! it read back; what does not happen in time is an error that names what is there instead.

mod begin;
mod broken;
mod canary;
mod drift;
mod end;
mod objects;
mod plan;
mod recreate;
mod remove;
mod scale;
mod swap;

use anyhow::Result;

use crate::{environment::Environment, printer::Printer};

pub use begin::open;
pub use end::close;

/// The scenario's own object.
const SHOP: &str = "shop";
/// The object of the repository's sample.
const HELLO: &str = "hello";
/// The plugin's file in the plugin directory.
const PLUGIN: &str = "app-service.wasm";

/// Plays all steps between the beginning and the end.
///
/// # Errors
/// If a step fails.
pub async fn run(printer: &mut Printer, environment: &mut Environment) -> Result<()> {
    objects::apply(printer, environment).await?;
    drift::repair(printer, environment).await?;
    recreate::child(printer, environment).await?;
    scale::object(printer, environment).await?;
    plan::of_plugin(printer, environment).await?;
    swap::plugin(printer, environment).await?;
    broken::plugin(printer, environment).await?;
    canary::of_plugin(printer, environment).await?;
    remove::object(printer, environment).await
}
