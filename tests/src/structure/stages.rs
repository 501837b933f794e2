//! The order of the stages in the folder `pipeline`: a stage imports only earlier stages, and modules that do not import a later
//! one.

use std::collections::{BTreeMap, VecDeque};

use super::modules::Imports;

/// The stages, first to last. Each is a file or a folder.
const STAGES: [&str; 7] = ["trigger", "observe", "call", "check", "plan", "apply", "report"];

/// What combines the stages and may import all of them. No stage imports it. Each is a file or a folder.
const TOGETHER: [&str; 2] = ["mod", "rounds"];

/// The role of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A file of the stage with this number.
    Stage(usize),
    /// A file that combines the stages.
    Together,
    /// Any other file of the crate. A stage may import it as long as it imports no later stage, directly or indirectly.
    Helper,
}

impl Part {
    fn of(file: &str) -> Self {
        let Some(inside) = file.strip_prefix("pipeline/") else {
            return Self::Helper;
        };
        let name = inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs");
        if TOGETHER.contains(&name) {
            return Self::Together;
        }
        STAGES.iter().position(|stage| *stage == name).map_or(Self::Helper, Self::Stage)
    }

    /// Whether the files of this stage must not import this part, directly or indirectly.
    fn is_after(self, stage: usize) -> bool {
        match self {
            Self::Stage(other) => other > stage,
            Self::Together => true,
            Self::Helper => false,
        }
    }
}

/// Stages that have no file.
pub fn missing(imports: &Imports) -> Vec<&'static str> {
    let has = |stage: usize| imports.files().any(|file| Part::of(file) == Part::Stage(stage));
    STAGES.iter().enumerate().filter(|(number, _)| !has(*number)).map(|(_, stage)| *stage).collect()
}

/// The chains of imports from a stage to a later one or to a file that combines the stages, with a line for each import.
pub fn backward(imports: &Imports) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for file in imports.files() {
        if let Part::Stage(stage) = Part::of(file) {
            found.extend(ways(imports, file, stage));
        }
    }
    found
}

/// The shortest chains of imports from a file through helpers to a part after its stage.
fn ways<'a>(imports: &'a Imports, from: &'a str, stage: usize) -> Vec<Vec<String>> {
    let mut before = BTreeMap::from([(from, from)]);
    let mut open = VecDeque::from([from]);
    let mut found = Vec::new();
    while let Some(file) = open.pop_front() {
        for (to, _) in imports.of(file) {
            if before.contains_key(to) {
                continue;
            }
            before.insert(to, file);
            let part = Part::of(to);
            if part.is_after(stage) {
                found.push(way(imports, &before, to));
            } else if part == Part::Helper {
                open.push_back(to);
            }
        }
    }
    found
}

fn way(imports: &Imports, before: &BTreeMap<&str, &str>, to: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut to = to;
    while let Some(from) = before.get(to).filter(|from| **from != to) {
        lines.push(imports.line(from, to));
        to = from;
    }
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use anyhow::Result;

    use super::{super::modules::Sources, *};

    fn imports(files: &[(&str, &str)]) -> Result<Imports> {
        let sources: Sources = files.iter().map(|(file, source)| ((*file).to_owned(), (*source).to_owned())).collect();
        Imports::of_crate("lib.rs", &sources)
    }

    #[test]
    fn a_stage_imports_earlier_ones_and_leaf_modules() -> Result<()> {
        let imports = imports(&[
            ("lib.rs", "mod leaf; mod pipeline;"),
            ("leaf.rs", "pub struct Leaf;"),
            ("pipeline/mod.rs", "mod observe; mod plan; mod state; use self::plan::Plan;"),
            ("pipeline/observe.rs", "use crate::leaf::Leaf; pub struct Observed;"),
            ("pipeline/plan/mod.rs", "mod diff; use super::{observe::Observed, state::State}; pub struct Plan;"),
            ("pipeline/plan/diff.rs", "use super::Plan;"),
            ("pipeline/state/mod.rs", "use super::observe::Observed; pub struct State;"),
        ])?;
        assert_eq!(backward(&imports), [[""; 0]; 0]);
        assert_eq!(missing(&imports), ["trigger", "call", "check", "apply", "report"]);
        Ok(())
    }

    #[test]
    fn a_later_stage_is_found_also_behind_a_helper() -> Result<()> {
        let imports = imports(&[
            ("lib.rs", "mod pipeline;"),
            ("pipeline/mod.rs", "mod observe; mod plan; mod state; pub struct Pipeline;"),
            ("pipeline/observe.rs", "use super::{plan::Plan, Pipeline};"),
            ("pipeline/plan/mod.rs", "use crate::pipeline::state::State; pub struct Plan;"),
            ("pipeline/state/mod.rs", "mod report; pub struct State; use super::Pipeline;"),
            ("pipeline/state/report.rs", ""),
        ])?;
        assert_eq!(
            backward(&imports),
            [
                vec!["pipeline/observe.rs -> pipeline/mod.rs (Pipeline)"],
                vec!["pipeline/observe.rs -> pipeline/plan/mod.rs (Plan)"],
                vec![
                    "pipeline/plan/mod.rs -> pipeline/state/mod.rs (State)",
                    "pipeline/state/mod.rs -> pipeline/mod.rs (Pipeline)"
                ],
            ]
        );
        Ok(())
    }
}
