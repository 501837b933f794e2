//! Checks what becomes of core modules whose compiler knows nothing of components, such as those of Go and C.

use pilothouse_pack::{Error, Packed, pack};
use pilothouse_wit::{CONTRACT_VERSION, Interfaces};

const MANIFEST: &str = r#"{"name":"a","version":"1.0.0","contract":"0.2.0",
"reconciles":{"apiVersion":"example.com/v1","kind":"A"},"children":[{"apiVersion":"v1","kind":"ConfigMap"}]}"#;

/// A module that exports these functions of that version of the contract, with the imports before them.
fn module(imports: &str, version: &str, functions: &[&str]) -> Result<Vec<u8>, wat::Error> {
    let export = |function: &&str| {
        let (interface, function) = function.split_once('#').unwrap_or((function, ""));
        format!(
            r#"(func (export "pilothouse:plugin/{interface}@{version}#{function}")
              (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)"#
        )
    };
    let exports: String = functions.iter().map(export).collect();
    wat::parse_str(format!(
        r#"(module {imports} (memory (export "memory") 1)
          (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable) {exports})"#
    ))
}

fn interfaces(packed: &Packed) -> Result<Interfaces, Error> {
    Ok(Interfaces::read(&packed.wasm)?)
}

#[test]
fn a_module_gets_the_types_of_the_contract_that_its_exports_name() -> Result<(), Box<dyn std::error::Error>> {
    for (functions, finalizes) in
        [(&["reconciler#reconcile"][..], false), (&["reconciler#reconcile", "finalizer#finalize"], true)]
    {
        let packed = pack(&module("", CONTRACT_VERSION, functions)?, Some(MANIFEST))?;
        assert_eq!(packed.declaration.clone().fixed()?.finalizes, finalizes);
        let found = interfaces(&packed)?;
        assert_eq!(found.exports.len(), functions.len(), "{found:?}");
        assert!(found.imports.iter().all(|import| import.starts_with("pilothouse:plugin/types@")), "{found:?}");
    }
    Ok(())
}

#[test]
fn a_module_of_another_patch_of_the_contract_keeps_its_version() -> Result<(), Box<dyn std::error::Error>> {
    let packed = pack(&module("", "0.2.9", &["reconciler#reconcile"])?, Some(MANIFEST))?;
    assert_eq!(interfaces(&packed)?.exports, ["pilothouse:plugin/reconciler@0.2.9"]);
    Ok(())
}

/// Where an instance answers several calls, what an answer leaves in its memory has to go before the next one.
#[test]
fn a_component_cleans_up_where_its_instance_may_answer_again() -> Result<(), Box<dyn std::error::Error>> {
    let clean_up =
        format!(r#"(func (export "cabi_post_pilothouse:plugin/reconciler@{CONTRACT_VERSION}#reconcile") (param i32))"#);
    let module = module(&clean_up, CONTRACT_VERSION, &["reconciler#reconcile"])?;
    for (calls, expected) in [("", false), (r#","callsPerInstance":1"#, false), (r#","callsPerInstance":2"#, true)] {
        let manifest = MANIFEST.replace(r#","children""#, &format!(r#"{calls},"children""#));
        let packed = pack(&module, Some(&manifest))?;
        let cleans_up = packed.wasm.windows(10).any(|bytes| bytes == b"cabi_post_");
        assert_eq!(cleans_up, expected, "{manifest}");
    }
    Ok(())
}

#[test]
fn a_module_without_the_names_of_the_contract_is_refused() -> Result<(), Box<dyn std::error::Error>> {
    for (version, functions) in [(CONTRACT_VERSION, &[][..]), ("0.3.0", &["reconciler#reconcile"])] {
        let refused = pack(&module("", version, functions)?, Some(MANIFEST));
        assert!(matches!(refused, Err(Error::NoReconcile)), "{version} {functions:?}: {refused:?}");
    }
    Ok(())
}

/// The functions of WASI preview 1, with the types of their parameters: `i` for i32, `I` for i64.
const PREVIEW_1: &[(&str, &str)] = &[
    ("args_get", "ii"),
    ("args_sizes_get", "ii"),
    ("environ_get", "ii"),
    ("environ_sizes_get", "ii"),
    ("clock_res_get", "ii"),
    ("clock_time_get", "iIi"),
    ("fd_advise", "iIIi"),
    ("fd_allocate", "iII"),
    ("fd_close", "i"),
    ("fd_datasync", "i"),
    ("fd_fdstat_get", "ii"),
    ("fd_fdstat_set_flags", "ii"),
    ("fd_fdstat_set_rights", "iII"),
    ("fd_filestat_get", "ii"),
    ("fd_filestat_set_size", "iI"),
    ("fd_filestat_set_times", "iIIi"),
    ("fd_pread", "iiiIi"),
    ("fd_prestat_get", "ii"),
    ("fd_prestat_dir_name", "iii"),
    ("fd_pwrite", "iiiIi"),
    ("fd_read", "iiii"),
    ("fd_readdir", "iiiIi"),
    ("fd_renumber", "ii"),
    ("fd_seek", "iIii"),
    ("fd_sync", "i"),
    ("fd_tell", "ii"),
    ("fd_write", "iiii"),
    ("path_create_directory", "iii"),
    ("path_filestat_get", "iiiii"),
    ("path_filestat_set_times", "iiiiIIi"),
    ("path_link", "iiiiiii"),
    ("path_open", "iiiiiIIii"),
    ("path_readlink", "iiiiii"),
    ("path_remove_directory", "iii"),
    ("path_rename", "iiiiii"),
    ("path_symlink", "iiiii"),
    ("path_unlink_file", "iii"),
    ("poll_oneoff", "iiii"),
    ("proc_raise", "i"),
    ("sched_yield", ""),
    ("random_get", "ii"),
    ("sock_accept", "iii"),
    ("sock_recv", "iiiiii"),
    ("sock_send", "iiiii"),
    ("sock_shutdown", "ii"),
];

#[test]
fn wasi_preview_1_is_answered_in_the_component() -> Result<(), Box<dyn std::error::Error>> {
    let types = |parameters: &str| -> String {
        parameters.chars().map(|letter| if letter == 'i' { " i32" } else { " i64" }).collect()
    };
    let import = |(name, parameters): &(&str, &str)| {
        let types = types(parameters);
        format!(r#"(import "wasi_snapshot_preview1" "{name}" (func (param{types}) (result i32)))"#)
    };
    let mut imports: String = PREVIEW_1.iter().map(import).collect();
    imports += r#"(import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))"#;
    let packed = pack(&module(&imports, CONTRACT_VERSION, &["reconciler#reconcile"])?, Some(MANIFEST))?;
    let expected =
        ["pilothouse:plugin/log@", "pilothouse:plugin/trap@", "wasi:clocks/wall-clock@", "wasi:random/random@"];
    let mut found = interfaces(&packed)?.imports;
    found.retain(|import| !import.starts_with("pilothouse:plugin/types@"));
    found.sort_unstable();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(found.iter().zip(expected).all(|(import, name)| import.starts_with(name)), "{found:?}");
    Ok(())
}
