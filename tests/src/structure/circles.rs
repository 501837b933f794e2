//! Finds import cycles.

use std::collections::BTreeSet;

use super::modules::Imports;

/// Each cycle as the imports between its files, with a line for each import.
pub fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for file in imports.files() {
        let circle = circle_of(imports, file);
        if circle.len() > 1 && circle.iter().all(|file| seen.insert(*file)) {
            found.push(lines(imports, &circle));
        }
    }
    found
}

/// The files that a file imports and that import it, directly or indirectly.
fn circle_of<'a>(imports: &'a Imports, file: &'a str) -> BTreeSet<&'a str> {
    let reached = reached(imports, file);
    let mut circle: BTreeSet<_> =
        reached.into_iter().filter(|other| self::reached(imports, other).contains(file)).collect();
    circle.insert(file);
    circle
}

fn reached<'a>(imports: &'a Imports, file: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        open.extend(imports.of(file).map(|(to, _)| to).filter(|to| reached.insert(*to)));
    }
    reached
}

fn lines(imports: &Imports, circle: &BTreeSet<&str>) -> Vec<String> {
    let inside = |from| imports.of(from).map(|(to, _)| to).filter(|to| circle.contains(to));
    circle.iter().flat_map(|from| inside(from).map(|to| imports.line(from, to))).collect()
}

#[cfg(test)]
mod tests {
    use anyhow::Result;

    use super::{super::modules::Sources, *};

    #[test]
    fn a_circle_is_reported_with_its_imports() -> Result<()> {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b::One; pub struct Four;"),
            ("b.rs", "pub struct One; use crate::c::Two;"),
            ("c.rs", "pub struct Two; fn f(_: crate::a::Four) {}"),
            ("d.rs", "use crate::a::Four;"),
        ];
        let sources: Sources = files.map(|(file, source)| (file.to_owned(), source.to_owned())).into();
        let imports = Imports::of_crate("lib.rs", &sources)?;
        assert_eq!(circles(&imports), [["a.rs -> b.rs (One)", "b.rs -> c.rs (Two)", "c.rs -> a.rs (Four)"]]);
        Ok(())
    }
}
