//! Makes a history that violates a property as short and as plain as it can be while it still violates the same property. Tries only;
//! knows nothing about what steps mean.

use crate::{
    cluster::Template,
    history::step::{History, Hosts, Step},
    plugin::version::Version,
    properties::Property,
    run::{Recording, run},
};

/// How many histories are run at most to shrink one.
const TRIES: usize = 4_000;

/// Other seeds that are tried for the delays of a shorter history, for a step less shifts everything that is drawn after it.
const SEEDS: u64 = 4;

/// A history that is being shrunk.
struct Shrinking<'a> {
    template: &'a Template,
    best: History,
    property: Property,
    left: usize,
}

/// The shortest history found that violates the same property.
///
/// # Errors
/// If a history cannot be run at all.
pub fn shrink(template: &Template, history: History, property: Property) -> std::io::Result<History> {
    let mut shrinking = Shrinking { template, best: history, property, left: TRIES };
    loop {
        let before = shrinking.best.clone();
        shrinking.drop_steps()?;
        shrinking.simplify()?;
        if shrinking.best == before || shrinking.left == 0 {
            return Ok(shrinking.best);
        }
    }
}

impl Shrinking<'_> {
    /// Leaves out as many steps at once as possible, then fewer.
    fn drop_steps(&mut self) -> std::io::Result<()> {
        let mut size = self.best.steps.len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < self.best.steps.len() {
                let mut shorter = self.best.clone();
                let to = (from + size).min(shorter.steps.len());
                let dropped: u32 = shorter.steps.drain(from..to).map(|timed| timed.after).sum();
                // First with the time that the steps took, then without.
                let mut patient = shorter.clone();
                patient.steps.get_mut(from).into_iter().for_each(|timed| timed.after += dropped);
                if !self.accept(patient)? && !self.accept(shorter)? {
                    from += size;
                }
            }
            size /= 2;
        }
        Ok(())
    }

    /// Makes what is left plainer: no election, no delays, fewer children.
    fn simplify(&mut self) -> std::io::Result<()> {
        let best = self.best.clone();
        self.accept(History { hosts: Hosts::Single, ..best })?;
        let best = self.best.clone();
        self.accept(History { version: Version::First, ..best })?;
        let best = self.best.clone();
        self.accept(History { ahead: [0, 0], ..best })?;
        let best = self.best.clone();
        self.accept(History { far: None, ..best })?;
        for (latency, lag) in [(0, 0), (1, 0), (0, 5), (1, 5)] {
            let best = self.best.clone();
            if (latency, lag) < (best.latency, best.lag) && self.accept(History { latency, lag, ..best })? {
                break;
            }
        }
        for index in 0..self.best.steps.len() {
            for round in [1, 10, 100, 1_000] {
                let mut plainer = self.best.clone();
                let Some(timed) = plainer.steps.get_mut(index) else { break };
                if timed.after > round {
                    timed.after = round;
                    if self.accept(plainer)? {
                        break;
                    }
                }
            }
            self.simplify_spec(index)?;
        }
        Ok(())
    }

    fn simplify_spec(&mut self, index: usize) -> std::io::Result<()> {
        let children = match self.best.steps.get(index).map(|timed| &timed.step) {
            Some(Step::Apply { spec, .. }) => spec.children.len(),
            _ => return Ok(()),
        };
        let changes: [fn(&mut crate::plugin::spec::Spec, usize); 4] = [
            |spec, child| drop(spec.children.remove(child)),
            |spec, child| spec.children[child].extra = false,
            |spec, child| spec.children[child].keep = false,
            |spec, child| spec.children[child].value = 1,
        ];
        for child in (0..children).rev() {
            for change in changes {
                self.change_spec(index, |spec| {
                    if child < spec.children.len() {
                        change(spec, child);
                    }
                })?;
            }
        }
        self.change_spec(index, |spec| spec.follows = None)?;
        self.change_spec(index, |spec| spec.awaits = false)
    }

    fn change_spec(&mut self, index: usize, change: impl Fn(&mut crate::plugin::spec::Spec)) -> std::io::Result<()> {
        let mut plainer = self.best.clone();
        if let Some(Step::Apply { spec, .. }) = plainer.steps.get_mut(index).map(|timed| &mut timed.step) {
            change(spec);
        }
        if plainer != self.best {
            self.accept(plainer)?;
        }
        Ok(())
    }

    /// Takes a history if it still violates the property, if need be with another seed.
    fn accept(&mut self, history: History) -> std::io::Result<bool> {
        if history == self.best {
            return Ok(false);
        }
        for seed in 0..SEEDS {
            if self.left == 0 {
                return Ok(false);
            }
            self.left -= 1;
            let tried = History { seed: if seed == 0 { history.seed } else { seed }, ..history.clone() };
            let found = run(self.template, &tried, Recording::Off)?.violation;
            if found.is_some_and(|violation| violation.property == self.property) {
                self.best = tried;
                return Ok(true);
            }
        }
        Ok(false)
    }
}
