//! The modules of one crate: the file of each, and the files from which a file imports. Reads only the sources, builds nothing,
//! and does not look into other crates.
//!
//! An import of a file is a `use`, or a path in the code such as `crate::a::b()`, of something that this file defines.
//! Re-exports are followed: a name that a `mod.rs` only re-exports is imported from the file that defines it. `mod x;` is no
//! import, nor is the `pub use` with which a module re-exports what its own children define.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::tokens::{Token, Token::*, built, group, visibility};

/// The sources of a crate, by path inside its folder: `cache/mod.rs`.
pub type Sources = BTreeMap<String, String>;

/// The path of a module from the root of the crate.
type Path = Vec<String>;

/// Which names a file imports from which.
#[derive(Debug, Default)]
pub struct Imports(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Imports {
    /// The imports of the crate with this root file, without those of test code.
    ///
    /// # Errors
    /// If the file of a module is missing.
    pub fn of_crate(root: &str, sources: &Sources) -> Result<Self> {
        let mut tree = Tree { sources, modules: BTreeMap::new() };
        tree.read_file(Vec::new(), root)?;
        Ok(tree.imports())
    }

    /// The files.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The files that a file imports from, and the imported names.
    pub fn of(&self, file: &str) -> impl Iterator<Item = (&str, &BTreeSet<String>)> {
        self.0.get(file).into_iter().flatten().map(|(to, names)| (to.as_str(), names))
    }

    /// One import as text: `a.rs -> b.rs (Name, other)`.
    pub fn line(&self, from: &str, to: &str) -> String {
        let names = self.0.get(from).and_then(|imports| imports.get(to)).into_iter().flatten();
        let names: Vec<_> = names.map(String::as_str).collect();
        format!("{from} -> {to} ({})", names.join(", "))
    }

    fn add(&mut self, from: &str, to: &str, name: &str) {
        let imports = self.0.entry(from.to_owned()).or_default();
        if from != to {
            imports.entry(to.to_owned()).or_default().insert(name.to_owned());
        }
    }
}

/// One module, which may be a part of a file.
#[derive(Default)]
struct Module {
    file: String,
    children: BTreeSet<String>,
    /// The names of its own items.
    defined: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths in its code, of two names at least.
    paths: BTreeSet<Path>,
}

/// One name that a `use` imports.
#[derive(Clone, Debug)]
struct Use {
    path: Path,
    /// Its name in this module; `*` for a glob import.
    name: String,
    is_public: bool,
}

/// The target of a path.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    Module(Path),
    /// Something that this file defines.
    Item(String),
}

struct Tree<'a> {
    sources: &'a Sources,
    modules: BTreeMap<Path, Module>,
}

impl<'a> Tree<'a> {
    fn read_file(&mut self, path: Path, file: &str) -> Result<()> {
        let source = self.sources.get(file).with_context(|| format!("there is no {file}"))?;
        let folder = match file.rsplit_once('/') {
            Some((folder, "mod.rs")) => format!("{folder}/"),
            _ if path.is_empty() => String::new(),
            _ => format!("{}/", file.trim_end_matches(".rs")),
        };
        self.read_module(path, file, &folder, &built(source))
    }

    fn read_module(&mut self, path: Path, file: &str, folder: &str, mut rest: &[Token]) -> Result<()> {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        while let Some(token) = rest.first() {
            let public = visibility(rest);
            rest = match (token, &rest[public..]) {
                (_, [Word("use"), tree @ ..]) => {
                    let end = tree.iter().position(|token| *token == Sign(';')).unwrap_or(tree.len());
                    collect_uses(&tree[..end], &[], public > 0, &mut module.uses);
                    &tree[end..]
                }
                (_, [Word("mod"), Word(name), Sign(';'), after @ ..]) => {
                    module.children.insert((*name).to_owned());
                    self.read_file(child(&path, name), &self.file_of(folder, name))?;
                    after
                }
                (_, [Word("mod"), Word(name), body @ ..]) if body.first() == Some(&Sign('{')) => {
                    module.children.insert((*name).to_owned());
                    let end = group(body);
                    let inner = &body[1..end - 1];
                    self.read_module(child(&path, name), file, &format!("{folder}{name}/"), inner)?;
                    &body[end..]
                }
                _ if public > 0 => &rest[public..],
                (
                    Word("struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static"),
                    [_, Word(name), ..],
                ) => {
                    module.defined.insert((*name).to_owned());
                    &rest[1..]
                }
                (Word(_), _) => {
                    let (names, length) = path_at(rest);
                    if names.len() > 1 {
                        module.paths.insert(names);
                    }
                    &rest[length..]
                }
                // A path after `<A as B>::` or a leading `::` is not in this crate, and `$crate::` belongs to the user of the
                // macro.
                (Colons | Sign('$'), [_, Word(_), ..]) => &rest[1 + path_at(&rest[1..]).1..],
                _ => &rest[1..],
            };
        }
        self.modules.insert(path, module);
        Ok(())
    }

    fn file_of(&self, folder: &str, name: &str) -> String {
        let file = format!("{folder}{name}.rs");
        if self.sources.contains_key(&file) { file } else { format!("{folder}{name}/mod.rs") }
    }

    fn imports(&self) -> Imports {
        let mut imports = Imports::default();
        for (path, module) in &self.modules {
            imports.0.entry(module.file.clone()).or_default();
            for one in &module.uses {
                self.add_use(path, one, &mut imports);
            }
            for names in &module.paths {
                if let Some(target) = self.target(path, names, Depth::default()) {
                    imports.add(&module.file, self.file(&target), last(names));
                }
            }
        }
        imports
    }

    fn add_use(&self, path: &Path, one: &Use, imports: &mut Imports) {
        let Some(module) = self.modules.get(path) else { return };
        let Some(target) = self.target(path, &one.path, Depth::default()) else { return };
        let passes_on_own = one.is_public && self.is_below(&one.path, path);
        // A module that is imported only as the start of paths: those paths name the imported files.
        let leads_on = matches!(target, Target::Module(_)) && module.paths.iter().any(|names| names[0] == one.name);
        if !passes_on_own && !leads_on {
            imports.add(&module.file, self.file(&target), last(&one.path));
        }
    }

    /// Whether a path leads through a child of the module.
    fn is_below(&self, names: &[String], module: &Path) -> bool {
        let begin: &[String] = match names {
            [this, name, ..] if this == "self" => std::slice::from_ref(name),
            [root, names @ ..] if root == "crate" => match names.strip_prefix(&module[..]) {
                Some(names) => &names[..names.len().min(1)],
                None => &[],
            },
            [name, ..] => std::slice::from_ref(name),
            [] => &[],
        };
        let children = self.modules.get(module).map(|module| &module.children);
        begin.first().zip(children).is_some_and(|(name, children)| children.contains(name))
    }

    /// The target of a path in the code of a module. None if it is in another crate.
    fn target(&self, module: &Path, names: &[String], depth: Depth) -> Option<Target> {
        let depth = depth.deeper()?;
        let mut here = module.clone();
        let mut rest = names;
        let mut anchored = false;
        while let Some((first, after)) = rest.split_first() {
            match &**first {
                "crate" => here = Vec::new(),
                "self" => {}
                "super" => drop(here.pop()?),
                _ => break,
            }
            anchored = true;
            rest = after;
        }
        let (first, _) = match rest.split_first() {
            Some(split) => split,
            None => return Some(Target::Module(here)),
        };
        // Without `crate`, `self` or `super`, a path may begin with a child or with an imported name.
        let is_ours = anchored || self.children_and_uses(&here).any(|name| name == first);
        if is_ours { self.walk(here, rest, depth) } else { None }
    }

    fn children_and_uses(&self, path: &Path) -> impl Iterator<Item = &String> {
        let module = self.modules.get(path).into_iter();
        module.flat_map(|module| module.children.iter().chain(module.uses.iter().map(|one| &one.name)))
    }

    fn walk(&self, mut here: Path, mut names: &[String], depth: Depth) -> Option<Target> {
        while let Some((name, after)) = names.split_first() {
            let module = self.modules.get(&here)?;
            if module.children.contains(name) {
                here.push(name.clone());
                names = after;
            } else if module.defined.contains(name) {
                return Some(Target::Item(module.file.clone()));
            } else {
                match self.passed_on(&here, name, depth)? {
                    Passed::On(Target::Module(path)) => here = path,
                    Passed::On(item) => return Some(item),
                    Passed::Not => return Some(Target::Item(module.file.clone())),
                }
                names = after;
            }
        }
        Some(Target::Module(here))
    }

    /// The target of a name that a module imports with a `use`. None if it is in another crate.
    fn passed_on(&self, path: &Path, name: &str, depth: Depth) -> Option<Passed> {
        let Some(module) = self.modules.get(path) else { return Some(Passed::Not) };
        if let Some(one) = module.uses.iter().find(|one| one.name == name) {
            return self.target(path, &one.path, depth).map(Passed::On);
        }
        let all = module.uses.iter().filter(|one| one.name == "*" && !one.path.is_empty());
        let targets = all.filter_map(|one| self.target(path, &one.path, depth));
        let mut modules = targets.filter_map(|target| match target {
            Target::Module(path) => Some(path),
            Target::Item(_) => None,
        });
        let owner = modules.find_map(|path| {
            let module = self.modules.get(&path).filter(|module| module.defined.contains(name))?;
            Some(Target::Item(module.file.clone()))
        });
        Some(owner.map_or(Passed::Not, Passed::On))
    }

    fn file(&self, target: &'a Target) -> &str {
        match target {
            Target::Module(path) => self.modules.get(path).map_or("", |module| &module.file),
            Target::Item(file) => file,
        }
    }
}

enum Passed {
    On(Target),
    Not,
}

/// How many re-exports were followed. Limited, because two that name each other would be followed for ever.
#[derive(Clone, Copy, Default)]
struct Depth(usize);

impl Depth {
    fn deeper(self) -> Option<Self> {
        (self.0 < 16).then_some(Self(self.0 + 1))
    }
}

fn child(path: &Path, name: &str) -> Path {
    let mut path = path.clone();
    path.push(name.to_owned());
    path
}

fn last(names: &[String]) -> &str {
    names.last().map_or("", String::as_str)
}

/// The names of the path that begins here, and its number of tokens.
fn path_at(tokens: &[Token]) -> (Path, usize) {
    let mut names = Vec::new();
    let mut at = 0;
    while let Some(Word(name)) = tokens.get(at) {
        names.push((*name).to_owned());
        at += 1;
        match &tokens[at..] {
            [Colons, Word(_), ..] => at += 1,
            _ => break,
        }
    }
    (names, at.max(1))
}

/// Splits one `use` tree into the names that it imports.
fn collect_uses(tree: &[Token], prefix: &[String], is_public: bool, uses: &mut Vec<Use>) {
    let mut path = prefix.to_vec();
    let mut rest = tree;
    // `use ::a::b` imports from another crate.
    if prefix.is_empty() && rest.first() == Some(&Colons) {
        return;
    }
    loop {
        match rest {
            [Word(name), Colons, after @ ..] => {
                path.push((*name).to_owned());
                rest = after;
            }
            [Sign('{'), ..] => {
                let end = group(rest);
                for part in parts(&rest[1..end - 1]) {
                    collect_uses(part, &path, is_public, uses);
                }
                return;
            }
            [Sign('*'), ..] => return uses.push(Use { path, name: "*".to_owned(), is_public }),
            [Word(name), after @ ..] => {
                // `a::{self}` is `a`; a path that is `self` alone does not occur.
                if *name != "self" || path.is_empty() {
                    path.push((*name).to_owned());
                }
                let name = match after {
                    [Word("as"), Word(name), ..] => (*name).to_owned(),
                    _ => last(&path).to_owned(),
                };
                return uses.push(Use { path, name, is_public });
            }
            _ => return,
        }
    }
}

/// The parts between the commas of a group, without splitting inner groups.
fn parts<'a, 'b>(inside: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut at = 0;
    while at < inside.len() {
        match inside[at] {
            Sign('{') => at += group(&inside[at..]),
            Sign(',') => {
                parts.push(&inside[begin..at]);
                at += 1;
                begin = at;
            }
            _ => at += 1,
        }
    }
    parts.push(&inside[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The imports of a library, as lines.
    fn lines(files: &[(&str, &str)]) -> Result<Vec<String>> {
        let sources = files.iter().map(|(file, source)| ((*file).to_owned(), (*source).to_owned())).collect();
        let imports = Imports::of_crate("lib.rs", &sources)?;
        let pairs = imports.files().flat_map(|from| imports.of(from).map(move |(to, _)| (from, to)));
        Ok(pairs.map(|(from, to)| imports.line(from, to)).collect())
    }

    #[test]
    fn a_use_is_an_import() -> Result<()> {
        let found = lines(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use std::fmt; use crate::{b::{self, One, two}, c::Three as Four}; fn f() { b::six() }"),
            ("b.rs", "pub struct One; pub fn two() {} pub fn six() {}"),
            ("c.rs", "pub struct Three; use super::b::One;"),
        ])?;
        assert_eq!(found, ["a.rs -> b.rs (One, six, two)", "a.rs -> c.rs (Three)", "c.rs -> b.rs (One)"]);
        Ok(())
    }

    #[test]
    fn a_path_in_the_code_is_an_import() -> Result<()> {
        let found = lines(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "fn f() -> crate::b::One { super::b::One::new::<crate::b::Two>() }"),
            ("b.rs", "pub struct One; pub struct Two; // crate::a::f"),
        ])?;
        assert_eq!(found, ["a.rs -> b.rs (One, Two, new)"]);
        Ok(())
    }

    #[test]
    fn a_re_exported_name_is_imported_from_where_it_is_defined() -> Result<()> {
        let found = lines(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::{One, Own}; use crate::b; fn f(_: b::Two, _: b::Three) {}"),
            (
                "b/mod.rs",
                "mod one; mod two; mod three; pub use self::one::One; pub use two::*;
                          pub(crate) use three::Other as Three; pub struct Own;",
            ),
            ("b/one.rs", "pub struct One;"),
            ("b/two.rs", "pub struct Two;"),
            ("b/three.rs", "pub struct Other;"),
        ])?;
        assert_eq!(
            found,
            [
                "a.rs -> b/mod.rs (Own)",
                "a.rs -> b/one.rs (One)",
                "a.rs -> b/three.rs (Three)",
                "a.rs -> b/two.rs (Two)"
            ]
        );
        Ok(())
    }

    #[test]
    fn a_re_export_of_another_module_is_an_import() -> Result<()> {
        let found = lines(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub struct One;"),
            ("b.rs", "pub use crate::a::One; mod c { use super::super::a::One; }"),
        ])?;
        assert_eq!(found, ["b.rs -> a.rs (One)"]);
        Ok(())
    }

    #[test]
    fn code_of_tests_imports_nothing() -> Result<()> {
        let found = lines(&[
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod c;"),
            ("a.rs", "#[cfg(test)] mod tests { use crate::b::One; }"),
            ("b.rs", "pub struct One;"),
        ])?;
        assert_eq!(found, [""; 0]);
        Ok(())
    }
}
