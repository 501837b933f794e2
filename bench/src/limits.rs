//! What was reached once, as limits that a benchmark keeps: `make bench-check` fails where one is broken. Limits are ratios within one
//! run, or counts: times by themselves say more of the machine than of the program.

use crate::table::Table;

/// A limit of a row.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The row.
    pub row: &'static str,
    /// What its median must keep.
    pub bound: Bound,
}

/// What a median must keep.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// The ratio of the last variant to the first is at most this.
    Ratio(f64),
    /// The value of the last variant is at most this.
    AtMost(f64),
}

/// Whether the environment asks for the limits to be kept.
pub fn are_kept() -> bool {
    std::env::var_os("BENCH_CHECK").is_some()
}

/// The limits that are broken, each in words. A row without a measurement breaks its limit: nobody knows whether it is kept.
pub fn broken(table: &Table, limits: &[Limit], first: &'static str, last: &'static str) -> Vec<String> {
    let broken = limits.iter().filter_map(|limit| {
        let (measured, most, what) = match limit.bound {
            Bound::Ratio(most) => (table.ratio(limit.row, first, last), most, format!("times that of {first}")),
            Bound::AtMost(most) => (table.median(limit.row, last), most, String::from("at most")),
        };
        match measured {
            Some(measured) if measured <= most => None,
            Some(measured) => Some(format!("{}: {measured:.2}, and not {most:.2} {what}", limit.row)),
            None => Some(format!("{}: nothing was measured", limit.row)),
        }
    });
    broken.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_its_limit_or_not_measured_is_told() {
        let mut table = Table::default();
        for (theirs, ours) in [(10.0, 9.0), (10.0, 11.0), (10.0, 8.0)] {
            table.add("theirs", vec![("cpu", theirs), ("idle", 0.0)]);
            table.add("ours", vec![("cpu", ours), ("writes", 2.0), ("idle", 0.0)]);
        }
        let found = |row, bound| broken(&table, &[Limit { row, bound }], "theirs", "ours");
        for (row, bound) in [("cpu", Bound::Ratio(0.9)), ("writes", Bound::AtMost(2.0)), ("idle", Bound::AtMost(0.0))] {
            assert!(found(row, bound).is_empty(), "{row} {bound:?}");
        }
        for (row, bound, expected) in [
            ("cpu", Bound::Ratio(0.89), "cpu: 0.90, and not 0.89 times that of theirs"),
            ("writes", Bound::AtMost(1.0), "writes: 2.00, and not 1.00 at most"),
            ("writes", Bound::Ratio(1.0), "writes: nothing was measured"),
            ("other", Bound::AtMost(1.0), "other: nothing was measured"),
        ] {
            assert_eq!(found(row, bound), [expected]);
        }
    }
}
