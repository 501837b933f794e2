//! The files of a new project, as they are in this program: with `{{NAME}}` where a value goes. It writes nothing.

use crate::Language;

/// A file of a new project.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Template {
    /// Where it goes in the project.
    pub(crate) path: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
}

macro_rules! templates {
    ($folder:literal: $($path:literal = $file:literal),* $(,)?) => {
        &[$(Template { path: $path, text: include_str!(concat!("../templates/", $folder, "/", $file)) }),*]
    };
}

/// The files of all languages: what is said about the kind, and not how.
const COMMON: &[Template] = templates!("common":
    "crd.yaml" = "crd.yaml",
    "object.yaml" = "object.yaml",
    "cases/first.yaml" = "first.yaml",
);

// cargo leaves a folder with a Cargo.toml out of a package, so that one has another name here.
const RUST: &[Template] = templates!("rust":
    "Cargo.toml" = "Cargo.toml.in",
    "src/lib.rs" = "lib.rs",
    "tests/reconcile.rs" = "reconcile.rs",
    "README.md" = "README.md",
    ".gitignore" = "gitignore",
);

/// The files of all languages for the kind of an existing CRD; that and an object are not made of templates.
const TYPED_COMMON: &[Template] = templates!("typed/common": "cases/first.yaml" = "first.yaml");

const TYPED_DECLARATION: &[Template] = templates!("typed/common": "plugin.yaml" = "plugin.yaml");

// The files in the place of others, where the spec has types of its own.
const TYPED_RUST: &[Template] =
    templates!("typed/rust": "src/lib.rs" = "lib.rs", "tests/reconcile.rs" = "reconcile.rs");

const TYPED_GO: &[Template] = templates!("typed/go": "main.go" = "main.go", "main_test.go" = "main_test.go.in");

const TYPED_C: &[Template] = templates!("typed/c": "plugin.c" = "plugin.c");

const TYPED_PYTHON: &[Template] =
    templates!("typed/python": "reconciler.py" = "reconciler.py", "test_reconciler.py" = "test_reconciler.py");

const TYPED_TYPESCRIPT: &[Template] = templates!("typed/ts": "plugin.ts" = "plugin.ts");

/// What a plugin says about itself, where no macro of an SDK does.
const DECLARATION: &[Template] = templates!("common": "plugin.yaml" = "plugin.yaml");

// With its real names, Go would take the folder for a module of its own.
const GO: &[Template] = templates!("go":
    "go.mod" = "go.mod.in",
    "main.go" = "main.go",
    "main_test.go" = "main_test.go.in",
    "pilothouse/pilothouse.go" = "pilothouse/pilothouse.go",
    "pilothouse/response.go" = "pilothouse/response.go",
    "pilothouse/lookup.go" = "pilothouse/lookup.go",
    "pilothouse/export.go" = "pilothouse/export.go",
    "pilothouse/contract/types.go" = "pilothouse/contract/types.go",
    "pilothouse/contract/call.go" = "pilothouse/contract/call.go",
    "pilothouse/contract/host.go" = "pilothouse/contract/host.go",
    "pilothouse/contract/memory.go" = "pilothouse/contract/memory.go",
    "pilothouse/contract/native.go" = "pilothouse/contract/native.go",
    "pilothouse/finalizer/finalizer.go" = "pilothouse/finalizer/finalizer.go",
    "pilothouse/finalizer/export.go" = "pilothouse/finalizer/export.go",
    "README.md" = "README.md",
    ".gitignore" = "gitignore",
);

const C: &[Template] = templates!("c":
    "plugin.c" = "plugin.c",
    "pilothouse/pilothouse.h" = "pilothouse/pilothouse.h",
    "pilothouse/pilothouse.c" = "pilothouse/pilothouse.c",
    "pilothouse/host.c" = "pilothouse/host.c",
    "pilothouse/cjson/cJSON.h" = "pilothouse/cjson/cJSON.h",
    "pilothouse/cjson/cJSON.c" = "pilothouse/cjson/cJSON.c",
    "compile_flags.txt" = "compile_flags.txt",
    "README.md" = "README.md",
    ".gitignore" = "gitignore",
);

const PYTHON: &[Template] = templates!("python":
    "pyproject.toml" = "pyproject.toml",
    "reconciler.py" = "reconciler.py",
    "test_reconciler.py" = "test_reconciler.py",
    "pilothouse/__init__.py" = "pilothouse/__init__.py",
    "pilothouse/request.py" = "pilothouse/request.py",
    "pilothouse/response.py" = "pilothouse/response.py",
    "pilothouse/host.py" = "pilothouse/host.py",
    "pilothouse/export.py" = "pilothouse/export.py",
    "README.md" = "README.md",
    ".gitignore" = "gitignore",
);

const TYPESCRIPT: &[Template] = templates!("ts":
    "package.json" = "package.json",
    "tsconfig.json" = "tsconfig.json",
    "plugin.ts" = "plugin.ts",
    "pilothouse/index.ts" = "pilothouse/index.ts",
    "pilothouse/request.ts" = "pilothouse/request.ts",
    "pilothouse/response.ts" = "pilothouse/response.ts",
    "pilothouse/host.ts" = "pilothouse/host.ts",
    "pilothouse/types.ts" = "pilothouse/types.ts",
    "pilothouse/contract.d.ts" = "pilothouse/contract.d.ts",
    "README.md" = "README.md",
    ".gitignore" = "gitignore",
);

/// The files of a new project in a language.
pub(crate) fn of(language: Language) -> impl Iterator<Item = Template> {
    let (declaration, own): (&[Template], _) = match language {
        Language::Rust => (&[], RUST),
        Language::Go => (DECLARATION, GO),
        Language::C => (DECLARATION, C),
        Language::Python => (DECLARATION, PYTHON),
        Language::TypeScript => (DECLARATION, TYPESCRIPT),
    };
    COMMON.iter().chain(declaration).chain(own).copied()
}

/// The files of a new project for the kind of an existing CRD: those of any other, with some in the place of their like.
pub(crate) fn typed(language: Language) -> Vec<Template> {
    let (declaration, own): (&[Template], _) = match language {
        Language::Rust => (&[], TYPED_RUST),
        Language::Go => (TYPED_DECLARATION, TYPED_GO),
        Language::C => (TYPED_DECLARATION, TYPED_C),
        Language::Python => (TYPED_DECLARATION, TYPED_PYTHON),
        Language::TypeScript => (TYPED_DECLARATION, TYPED_TYPESCRIPT),
    };
    let typed: Vec<_> = TYPED_COMMON.iter().chain(declaration).chain(own).copied().collect();
    let is_kept = |file: &Template| !typed.iter().any(|other| other.path == file.path);
    let others: Vec<_> = of(language).filter(is_kept).collect();
    others.into_iter().chain(typed).collect()
}

/// The file that shows that a kind has no code, with what it is instead.
pub const COMPOSITION: &str = "composition.yaml";

// The CRD and the object are those of all languages.
const COMPOSED: &[Template] = templates!("compose":
    "composition.yaml" = "composition.yaml",
    "cases/first.yaml" = "first.yaml",
    "README.md" = "README.md",
    ".gitignore" = "gitignore",
);

/// The files of a new project without code.
pub(crate) fn composition() -> impl Iterator<Item = Template> {
    let is_kept = |file: &&Template| !COMPOSED.iter().any(|other| other.path == file.path);
    COMMON.iter().filter(is_kept).chain(COMPOSED).copied()
}

/// The text with values in the place of their names. A name that has no value stays, and the tests find it.
pub(crate) fn fill(text: &str, values: &[(&str, String)]) -> String {
    let fill_one = |text: String, (name, value): &(&str, String)| text.replace(&format!("{{{{{name}}}}}"), value);
    values.iter().fold(text.to_owned(), fill_one)
}
