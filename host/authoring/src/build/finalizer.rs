//! Whether a plugin says that it has a finalizer, and has one. Where it says another thing than its sources, the host would never ask it
//! while an object is being deleted, and nobody would be told.

use std::path::Path;

use super::BuildError;
use crate::Language;

/// Refuses sources that say another thing of a finalizer than the manifest. Of other languages than these, the module itself shows it.
///
/// # Errors
/// [`BuildError::UndeclaredFinalizer`], [`BuildError::NoFinalizer`].
pub(super) fn check_sources(folder: &Path, language: Language, is_declared: bool) -> Result<(), BuildError> {
    let (file, defines): (_, fn(&str) -> bool) = match language {
        Language::Python => ("reconciler.py", defines_in_python),
        Language::TypeScript => ("plugin.ts", defines_in_typescript),
        Language::Rust | Language::Go | Language::C => return Ok(()),
    };
    // One that cannot be read is told by the tools.
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    let has_one = text.lines().any(defines);
    // What comes with all names of another file is not looked for.
    let may_have_one = has_one || text.lines().any(|line| line.contains("import *") || line.contains("export *"));
    match (is_declared, has_one, may_have_one) {
        (false, true, _) => Err(BuildError::UndeclaredFinalizer { file }),
        (true, _, false) => Err(BuildError::NoFinalizer { how: how(language) }),
        _ => Ok(()),
    }
}

/// Refuses a plugin that says that it has a finalizer and has none.
///
/// # Errors
/// [`BuildError::NoFinalizer`].
pub(super) fn check_plugin(language: Language, is_declared: bool, has_one: bool) -> Result<(), BuildError> {
    if is_declared && !has_one { Err(BuildError::NoFinalizer { how: how(language) }) } else { Ok(()) }
}

/// How a plugin gets a finalizer.
fn how(language: Language) -> &'static str {
    match language {
        Language::Go => "call `finalizer.Finalize` of the package `pilothouse/finalizer` in an `init`",
        Language::C => "put `PH_FINALIZE(function)` into plugin.c",
        Language::Python => "define `Finalizer = finalizer(function)` in reconciler.py",
        Language::TypeScript => "export `const finalizer = { finalize: plugin(function) }` from plugin.ts",
        Language::Rust => "say `finalize: function` in `plugin!`",
    }
}

/// A class, an assignment or an import that gives the module a `Finalizer`.
fn defines_in_python(line: &str) -> bool {
    let is_import = line.starts_with("from ") || line.starts_with("import ");
    let name = line.strip_prefix("class ").unwrap_or(line);
    match name.strip_prefix("Finalizer") {
        Some(rest) => rest.trim_start().starts_with([':', '(', '=']) && !rest.trim_start().starts_with("=="),
        None => is_import && words(line).any(|word| word == "Finalizer"),
    }
}

/// An export of the module that is called `finalizer`.
fn defines_in_typescript(line: &str) -> bool {
    line.starts_with("export ") && words(line).any(|word| word == "finalizer")
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project without tools: it is refused before they are looked for.
    fn refused(language: Language, source: &str, declared: &str) -> std::io::Result<String> {
        let folder = tempfile::tempdir()?;
        let file = if language == Language::Python { "reconciler.py" } else { "plugin.ts" };
        std::fs::write(folder.path().join(language.marker()), "")?;
        std::fs::write(folder.path().join(file), source)?;
        std::fs::write(folder.path().join("plugin.yaml"), format!("name: web\n{declared}\n"))?;
        Ok(super::super::build(folder.path(), super::super::Purpose::Release)
            .map_or_else(|error| error.to_string(), |_| String::new()))
    }

    #[test]
    fn what_the_manifest_says_of_a_finalizer_is_so() -> std::io::Result<()> {
        let python = "Finalizer = finalizer(leave)\n";
        let typescript = "export const finalizer = { finalize: plugin(leave) };\n";
        for (language, source) in [(Language::Python, python), (Language::TypeScript, typescript)] {
            let undeclared = refused(language, source, "")?;
            assert!(undeclared.contains("say `finalizes: true` in plugin.yaml"), "{undeclared}");
            let missing = refused(language, "", "finalizes: true")?;
            assert!(missing.contains("says `finalizes: true`, and the plugin has no finalizer"), "{missing}");
        }
        for language in Language::ALL {
            assert!(matches!(check_plugin(language, true, false), Err(BuildError::NoFinalizer { .. })));
            assert!(check_plugin(language, true, true).is_ok() && check_plugin(language, false, false).is_ok());
        }
        Ok(())
    }

    #[test]
    fn a_finalizer_is_found_in_the_sources() {
        for line in
            ["Finalizer = finalizer(leave)", "class Finalizer:", "class Finalizer(Base):", "from .end import Finalizer"]
        {
            assert!(defines_in_python(line), "{line}");
        }
        for line in ["from pilothouse import finalizer", "# Finalizer = x", "Finalizers = []", "    Finalizer = x"] {
            assert!(!defines_in_python(line), "{line}");
        }
        for line in ["export const finalizer = {", "export { finalizer } from \"./end.js\";"] {
            assert!(defines_in_typescript(line), "{line}");
        }
        for line in ["const finalizer = 1;", "export const finalizers = [];", "// export const finalizer"] {
            assert!(!defines_in_typescript(line), "{line}");
        }
    }
}
