//! Which condition and phase a job reaches from the phases of its Pods: the cases of a well-known operator's own tests, and
//! the rules for PyTorch.

use crate::world::World;
use pilothouse_sdk::Error;
use training_job::api::Phase;

/// How many replicas of a kind have failed, have succeeded and run; the rest is pending.
type Counts = [usize; 3];

const NONE: Counts = [0, 0, 0];

/// A TensorFlow job: with a chief, it is worker 0 and the workers are those after it; without, worker 0 is a worker like the
/// others, the first of those counted unless its phase is given.
struct Case {
    number: u32,
    chief: Option<Counts>,
    /// How many workers there are, and how they are.
    workers: (usize, Counts),
    servers: (usize, Counts),
    policy: &'static str,
    worker_0: Option<&'static str>,
    reached: &'static str,
}

const CHIEF: &str = "ChiefWorker";
const ALL: &str = "AllWorkers";

const fn case(
    number: u32,
    chief: Option<Counts>,
    workers: (usize, Counts),
    servers: (usize, Counts),
    policy: &'static str,
    reached: &'static str,
) -> Case {
    Case { number, chief, workers, servers, policy, worker_0: None, reached }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    case(1, Some([0, 1, 0]), (1, [0, 1, 0]), (0, NONE), CHIEF, "Succeeded"),
    case(2, Some([0, 0, 1]), (1, NONE), (0, NONE), CHIEF, "Running"),
    case(3, Some([1, 0, 0]), (1, NONE), (0, NONE), CHIEF, "Failed"),
    case(4, None, (1, [1, 0, 0]), (0, NONE), ALL, "Failed"),
    case(4, None, (1, [1, 0, 0]), (0, NONE), CHIEF, "Failed"),
    case(5, None, (1, [0, 1, 0]), (0, NONE), ALL, "Succeeded"),
    case(5, None, (1, [0, 1, 0]), (0, NONE), CHIEF, "Succeeded"),
    case(6, None, (1, [0, 0, 1]), (0, NONE), ALL, "Running"),
    case(6, None, (1, [0, 0, 1]), (0, NONE), CHIEF, "Running"),
    Case { worker_0: Some("Running"), ..case(7, None, (4, [0, 2, 2]), (2, [0, 0, 2]), CHIEF, "Running") },
    case(7, None, (4, [0, 2, 2]), (2, [0, 0, 2]), ALL, "Running"),
    case(8, None, (4, [2, 0, 2]), (2, [0, 0, 2]), CHIEF, "Failed"),
    case(8, None, (4, [2, 0, 2]), (2, [0, 0, 2]), ALL, "Failed"),
    Case { worker_0: Some("Running"), ..case(8, None, (4, [2, 0, 2]), (2, [0, 0, 2]), ALL, "Failed") },
    case(9, None, (4, [2, 2, 0]), (2, [0, 0, 2]), CHIEF, "Failed"),
    case(9, None, (4, [2, 2, 0]), (2, [0, 0, 2]), ALL, "Failed"),
    case(10, None, (4, [0, 1, 3]), (2, [0, 0, 2]), CHIEF, "Succeeded"),
    case(11, None, (4, [0, 1, 3]), (0, NONE), ALL, "Running"),
    case(12, None, (4, [0, 4, 0]), (0, NONE), ALL, "Succeeded"),
    Case { worker_0: Some("Succeeded"), ..case(13, None, (4, [1, 1, 2]), (0, NONE), ALL, "Failed") },
    case(14, Some([0, 0, 1]), (4, [4, 0, 0]), (2, [0, 0, 2]), CHIEF, "Running"),
    case(15, Some([0, 0, 1]), (4, [0, 4, 0]), (2, [0, 0, 2]), CHIEF, "Running"),
    case(16, Some([0, 0, 1]), (4, [0, 4, 0]), (2, [1, 0, 1]), CHIEF, "Failed"),
    case(17, Some([1, 0, 0]), (4, [0, 4, 0]), (2, [0, 0, 2]), CHIEF, "Failed"),
    case(18, Some([0, 1, 0]), (4, [4, 0, 0]), (2, [0, 0, 2]), CHIEF, "Succeeded"),
    case(19, Some([1, 0, 0]), (4, [4, 0, 0]), (2, [0, 0, 2]), CHIEF, "Restarting"),
];

#[test]
fn the_condition_that_a_tensorflow_job_reaches() -> Result<(), Error> {
    for case in CASES {
        let world = reach(case)?;
        let name = format!("case {} {}", case.number, case.policy);
        for condition in ["Running", "Restarting", "Succeeded", "Failed"] {
            assert_eq!(world.is(condition)?, condition == case.reached, "{name}: {condition}");
        }
        let phase = match case.reached {
            "Succeeded" => Phase::Succeeded,
            "Failed" => Phase::Failed,
            "Running" => Phase::Running,
            _ => Phase::Pending,
        };
        assert_eq!(world.phase()?, Some(phase), "{name}");
        let all = case.workers.0 + case.chief.map_or(0, |_| 1) + case.servers.0;
        assert_eq!(world.pods().len(), all, "{name}: what is reached is in the status before a Pod goes");
        assert_eq!(world.status()?.completion_time.is_some(), matches!(case.reached, "Succeeded" | "Failed"), "{name}");
    }
    Ok(())
}

fn reach(case: &Case) -> Result<World, Error> {
    let first = case.chief.map_or(0, |_| 1);
    let policy = if case.reached == "Restarting" { ", runPolicy: {restartPolicy: OnFailure}" } else { "" };
    let mut world = World::of(&format!(
        "framework: tensorflow, workers: {}, parameterServers: {}, successPolicy: {}{policy}",
        case.workers.0 + first,
        case.servers.0,
        case.policy
    ))?;
    world.settle()?;
    if let Some(chief) = case.chief {
        give(&mut world, &["mnist-worker-0".to_owned()], chief)?;
    }
    let mut workers: Vec<_> = (first..case.workers.0 + first).map(|index| format!("mnist-worker-{index}")).collect();
    let mut counts = case.workers.1;
    if let Some(phase) = case.worker_0 {
        world.set(&workers.remove(0), &format!("phase: {phase}"))?;
        counts[if phase == "Succeeded" { 1 } else { 2 }] -= 1;
    }
    give(&mut world, &workers, counts)?;
    let servers: Vec<_> = (0..case.servers.0).rev().map(|index| format!("mnist-ps-{index}")).collect();
    give(&mut world, &servers, case.servers.1)?;
    world.reconcile()?;
    Ok(world)
}

/// Gives the first Pods their phases.
fn give(world: &mut World, pods: &[String], [failed, succeeded, active]: Counts) -> Result<(), Error> {
    let phases = [("Failed", failed), ("Succeeded", succeeded), ("Running", active)];
    let phases = phases.into_iter().flat_map(|(phase, count)| std::iter::repeat_n(phase, count));
    pods.iter().zip(phases).try_for_each(|(pod, phase)| world.set(pod, &format!("phase: {phase}")))
}

/// A PyTorch job of three workers: more of its spec, the workers' phases by their first letters, the phase and the condition
/// that it reaches.
#[rustfmt::skip]
const PYTORCH: &[(&str, &str, Phase, &str)] = &[
    ("", "PPP", Phase::Pending, ""),
    ("", "RPP", Phase::Running, "Running"),
    ("", "PRP", Phase::Running, "Running"),
    ("", "RRR", Phase::Running, "Running"),
    ("", "SRR", Phase::Running, "Running"),
    ("", "SSR", Phase::Running, "Running"),
    ("", "SSP", Phase::Pending, ""),
    ("", "SSS", Phase::Succeeded, "Succeeded"),
    ("", "FRR", Phase::Pending, "Restarting"),
    ("", "RRF", Phase::Pending, "Restarting"),
    ("", "SSF", Phase::Pending, "Restarting"),
    (", runPolicy: {restartScope: Worker}", "RRF", Phase::Running, "Restarting"),
    (", runPolicy: {restartScope: Worker}", "FPP", Phase::Pending, "Restarting"),
    (", runPolicy: {restartPolicy: Never}", "FRR", Phase::Failed, "Failed"),
    (", runPolicy: {restartPolicy: Never}", "RRF", Phase::Failed, "Failed"),
    (", runPolicy: {restartPolicy: Never}", "SSF", Phase::Failed, "Failed"),
    (", successPolicy: ChiefWorker", "SRR", Phase::Succeeded, "Succeeded"),
    (", successPolicy: ChiefWorker", "RSS", Phase::Running, "Running"),
    (", successPolicy: ChiefWorker, runPolicy: {restartPolicy: Never}", "RFF", Phase::Running, "Running"),
    (", successPolicy: ChiefWorker, runPolicy: {restartPolicy: Never}", "FRR", Phase::Failed, "Failed"),
    (", elastic: {minWorkers: 1, maxWorkers: 4}", "RSR", Phase::Succeeded, "Succeeded"),
    (", elastic: {minWorkers: 1, maxWorkers: 4}", "RRF", Phase::Running, "Restarting"),
    (", elastic: {minWorkers: 1, maxWorkers: 4}, successPolicy: AllWorkers", "RSR", Phase::Running, "Running"),
];

#[test]
fn the_phase_that_a_pytorch_job_reaches() -> Result<(), Error> {
    for (spec, phases, phase, reached) in PYTORCH {
        let mut world = World::of(&format!("workers: 3{spec}"))?;
        world.settle()?;
        for (index, letter) in phases.chars().enumerate() {
            let phase = match letter {
                'R' => "Running",
                'S' => "Succeeded",
                'F' => "Failed",
                _ => "Pending",
            };
            world.set(&format!("mnist-worker-{index}"), &format!("phase: {phase}"))?;
        }
        world.reconcile()?;
        let name = format!("{phases}{spec}");
        assert_eq!(world.phase()?, Some(*phase), "{name}");
        for condition in ["Running", "Restarting", "Succeeded", "Failed"] {
            assert_eq!(world.is(condition)?, condition == *reached, "{name}: {condition}");
        }
        let ready = matches!(*reached, "Running" | "Succeeded");
        assert_eq!(world.is("Ready")?, ready, "{name}");
    }
    Ok(())
}

#[test]
fn a_job_that_has_ended_stays_as_it_is() -> Result<(), Error> {
    for end in ["Succeeded", "Failed"] {
        let mut world = World::running("workers: 2, runPolicy: {restartPolicy: Never}")?;
        world.all(end);
        world.settle()?;
        let status = world.status()?;
        for phase in ["Running", "Failed", "Succeeded"] {
            world.all(phase);
            world.pass(1000);
            world.settle()?;
            assert_eq!(world.status()?, status, "{end}, then {phase}");
        }
        world.take("mnist-worker-0");
        world.settle()?;
        assert_eq!((world.status()?, world.pods()), (status, vec!["mnist-worker-1"]), "and no Pod is made again");
    }
    Ok(())
}

#[test]
fn a_running_job_is_looked_at_every_half_minute() -> Result<(), Error> {
    let mut world = World::of("workers: 2")?;
    world.settle()?;
    assert_eq!(world.requeue, None, "Pods that come up ask by themselves");
    world.all("Running");
    world.settle()?;
    assert_eq!(world.requeue, Some(30));
    world.all("Succeeded");
    world.settle()?;
    assert_eq!(world.requeue, None);
    Ok(())
}
