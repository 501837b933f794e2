//! The black-box tests: one binary, one control plane, a namespace and a host per test, run in parallel. Each file holds
//! one subject; `suite` runs them, `test_env` is what a test sees.

mod changes;
mod children;
mod command;
mod command_line;
mod conflicts;
mod copies;
mod crashes;
mod credentials;
mod deletion;
mod deployed_rights;
mod drift;
mod fault_reporting;
mod finalizer;
mod history;
mod hot_loops;
mod http;
mod leadership;
mod lookups;
mod mass_deletion;
mod measurements;
mod metrics;
mod misbehaviour;
mod outages;
mod permissions;
mod pitfalls;
mod pruning;
mod quiet;
mod reads;
mod rollout;
mod scale;
mod stale;
mod startup;
mod state;
mod suite;
mod swaps;
mod test_env;
mod training_job;
mod verdicts;
mod versions;

use std::process::ExitCode;

use suite::Suite;

fn main() -> ExitCode {
    let mut suite = Suite::new();
    // The timed ones first: they wait for nobody, and the others have the machine to themselves afterwards.
    swaps::register(&mut suite);
    pitfalls::register(&mut suite);
    children::register(&mut suite);
    drift::register(&mut suite);
    scale::register(&mut suite);
    conflicts::register(&mut suite);
    quiet::register(&mut suite);
    reads::register(&mut suite);
    changes::register(&mut suite);
    rollout::register(&mut suite);
    deletion::register(&mut suite);
    finalizer::register(&mut suite);
    pruning::register(&mut suite);
    mass_deletion::register(&mut suite);
    hot_loops::register(&mut suite);
    verdicts::register(&mut suite);
    lookups::register(&mut suite);
    versions::register(&mut suite);
    fault_reporting::register(&mut suite);
    misbehaviour::register(&mut suite);
    permissions::register(&mut suite);
    deployed_rights::register(&mut suite);
    startup::register(&mut suite);
    outages::register(&mut suite);
    crashes::register(&mut suite);
    stale::register(&mut suite);
    leadership::register(&mut suite);
    history::register(&mut suite);
    credentials::register(&mut suite);
    http::register(&mut suite);
    metrics::register(&mut suite);
    measurements::register(&mut suite);
    training_job::register(&mut suite);
    command_line::register(&mut suite);
    suite.run()
}
