//! The end of a job that is deleted: nothing that it made is left when it goes.

use crate::world::World;
use pilothouse_sdk::{Error, Verdict};
use serde_json::json;

#[test]
fn everything_is_gone_before_the_job_goes() -> Result<(), Error> {
    let mut world = World::running("workers: 3, hyperparameters: {a: 1}")?;
    world.graceful = true;
    world.job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    world.settle()?;
    assert_eq!(world.children.len(), 3, "Pods end in their own time");
    let Verdict::Wait(waiting) = &world.verdict else { return Err(Error::Test("it does not wait".to_owned())) };
    assert_eq!(
        (waiting.reason.as_str(), waiting.message.as_str()),
        ("CleaningUp", "3 Pods and 0 other objects are being removed")
    );
    assert!(world.removes_many);
    world.collect();
    world.settle()?;
    assert_eq!((&world.verdict, world.children.len()), (&Verdict::Done, 0));
    Ok(())
}

#[test]
fn a_job_that_cannot_be_read_goes_as_well() -> Result<(), Error> {
    let mut world = World::of("framework: mxnet, workers: none")?;
    world.job["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    world.settle()?;
    assert_eq!(world.verdict, Verdict::Done);
    Ok(())
}
