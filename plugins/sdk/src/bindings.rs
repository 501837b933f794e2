//! What `wit-bindgen` generates from the contract, for a plugin, for a plugin with a finalizer, and for one whose kinds come from its
//! configuration. Nothing here is written by hand, and plugin authors never need it: they use [`crate::plugin!`] and the typed modules.

// Generated code: it crosses the WebAssembly boundary by pointers, and its documentation is the contract's own.
#![allow(unsafe_code, missing_docs, clippy::all)]

/// The world `plugin`, and the types that both worlds share.
pub mod plain {
    wit_bindgen::generate!({
        path: "wit/0.2",
        world: "plugin",
        additional_derives: [PartialEq],
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_plugin",
        default_bindings_module: "pilothouse_sdk::bindings::plain",
    });
}

/// What the world `finalizing-plugin` adds to the world `plugin`. A component's worlds add up, and two bindings that both
/// export `reconciler` could not live in one crate.
pub mod finalizing {
    wit_bindgen::generate!({
        inline: "package pilothouse:sdk; world finalizing { export pilothouse:plugin/finalizer@0.2.0; }",
        path: "wit/0.2",
        world: "pilothouse:sdk/finalizing",
        with: {
            "pilothouse:plugin/types@0.2.0": crate::bindings::plain::pilothouse::plugin::types,
        },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_finalizing",
        default_bindings_module: "pilothouse_sdk::bindings::finalizing",
    });
}

/// What the world `configured-plugin` adds to the world `plugin`.
pub mod configuring {
    wit_bindgen::generate!({
        inline: "package pilothouse:sdk; world configuring { export pilothouse:plugin/configurator@0.2.0; }",
        path: "wit/0.2",
        world: "pilothouse:sdk/configuring",
        with: {
            "pilothouse:plugin/types@0.2.0": crate::bindings::plain::pilothouse::plugin::types,
        },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_configuring",
        default_bindings_module: "pilothouse_sdk::bindings::configuring",
    });
}
