//! Projects for the kinds of existing CRDs, in each language: their specs have types, and their objects are made of their schemas. It knows no
//! language's tools.

use anyhow::{Context, Result, ensure};
use pilothouse_tests::{artifacts::repository, languages::Language, project::Project, thoroughness::Thoroughness};

/// Kinds with many fields, lists, enums, numbers with bounds and free values; the last one lives outside of namespaces. Where
/// not all is asked for, each language tries one of them, and all of them are tried by some: in Python, each takes most of a minute.
const CRDS: [(&str, &str); 4] = [
    ("certificate.yaml", "Certificate"),
    ("scaledobject.yaml", "ScaledObject"),
    ("httproute.yaml", "HTTPRoute"),
    ("gatewayclass.yaml", "GatewayClass"),
];

/// What was made of the schema is built by the language's compiler, reads the object, and passes the same cases in each language.
pub fn existing_kinds_are_typed_and_pass_their_cases(language: Language) -> Result<()> {
    let kinds = match Thoroughness::of_run() {
        Thoroughness::All => CRDS.to_vec(),
        Thoroughness::Part => {
            let place = Language::ALL.iter().position(|it| *it == language).unwrap_or_default();
            vec![CRDS[place % CRDS.len()]]
        }
    };
    for (file, kind) in kinds {
        let mut project = Project::of_crd(language, file)?.equip()?;
        let given = std::fs::read_to_string(repository().join("tests/fixtures/crds").join(file))?;
        ensure!(std::fs::read_to_string(project.root().join("crd.yaml"))? == given, "the CRD is another one");
        let built = project.build().with_context(|| kind.to_owned())?;
        ensure!(built["manifest"]["reconciles"]["kind"] == kind, "{built}");
        let passed = project.test().with_context(|| kind.to_owned())?;
        ensure!(passed.contains("2 cases: 2 passed, 0 failed"), "{kind}: {passed}");
        println!("{} {kind}: {}", language.name(), project.times());
    }
    Ok(())
}
