//! The macro that makes a crate a plugin. It adds exports and the manifest, and no behaviour.

/// Makes the crate a plugin: exports `reconcile` (and `finalize`) as the contract wants them and embeds the manifest in the
/// `.wasm`.
///
/// Fields in this order; those with a default may be left out:
///
/// ```text
/// name: "app-service",
/// version: "1.2.0",                                   // default: the crate's version
/// reconciles: "apps.example.com/v1" "AppService",     // the kind it reconciles
/// children: ["apps/v1" "Deployment" reads ["/status"], "v1" "Service"], // kinds it may return, and the fields that it reads
///                                   // of them (as below; a child without any of them is not in the request). Default: all
/// lookups: ["v1" "ConfigMap" label_selector "app=web", "v1" "Pod" all_namespaces metadata_only], // kinds it may look up, and
///                                   // whether in all namespaces at once, only those with some labels, only their metadata: the host
///                                   // keeps no more of them. Default: none. A child kind that is listed here as well need not be installed: a
///                                   // lookup tells
/// measurements: [                                     // measurements it may return; default: none
///     counter "restarts_total" "Restarts seen." ["reason"],      // its labels; or gauge, or histogram
///     histogram "job_seconds" "Time of a job." [] [60, 600, 3600], // buckets; default: 5 ms to a day
/// ],
/// finalizer: "example.com/cleanup", // name of the finalizer; default: pilothouse.dev/NAME of the plugin
/// managed_by: "/spec/managedBy",    // field that names the object's manager; the host leaves an object with another manager
///                                   // alone; default: none. It takes over those of other managers with: "/spec/managedBy"
///                                   // or ["example.com/operator"]
/// expires: "/status/expirationTime", // field with the time at which the host deletes an object; default: none. Or so many seconds after
///                                   // it as another field says: "/status/completionTime" after "/spec/ttlSecondsAfterFinished"
/// orders_children: true,            // whether children that it returns may wait for others; default: false
/// decorates: "team",                // it does not own its objects, and works on those whose labels match this selector, such as "" for
///                                   // all: their children, labels and annotations (`Response::on_object`), and never their status.
///                                   // Or those with matching annotations as well: "" annotations "example.com/ports"
/// reads: ["/spec"],                 // fields of the object that it reads: the request holds no others, and a change of
///                                   // others calls no plugin; default: all
/// calls_per_instance: 100,          // how many calls, one after another, the same instance may answer; what it keeps in its memory is there in
///                                   // the next call, which may be about another object. Default: each call gets a new instance
/// config_schema: include_str!("../config.schema.json"), // the JSON schema of its configuration, as `crd::config_schema` makes it of
///                                   // a type; a configuration that does not fit is not given to the plugin. Default: any
/// child_readiness: [                // how far children are, for kinds of which the host's rules do not say it: expressions in CEL
///                                   // over the child, `self`. Default: the host's rules
///     "postgresql.cnpg.io/v1" "Cluster"
///         current "self.status.phase == 'Cluster in healthy state'" // whether it is as its spec says
///         failed "self.status.phase.startsWith('Unable to')"        // whether it has failed; may be left out
///         message "self.status.phase",                              // what to say of it otherwise; may be left out
/// ],
/// reconcile: reconcile,      // fn(&Request<O>) -> Response, or -> Result<Response, E> where E: Into<Response>
/// finalize: finalize,        // the same; default: none, and then objects get no finalizer
/// ```
///
/// It also makes `MANIFEST` (the manifest as JSON text) and `reconcile_raw` (and `finalize_raw`): the exported functions as
/// plain Rust functions of [`crate::raw`] values, for a host that links the plugin natively.
///
/// The exports need `unsafe`, so a plugin crate may `deny` but not `forbid` the lint `unsafe_code`.
#[macro_export]
macro_rules! plugin {
    (
        name: $name:literal,
        $(version: $version:literal,)?
        reconciles: $api_version:literal $kind:literal,
        children: [$($child_version:literal $child_kind:literal $(reads [$($child_field:literal),* $(,)?])?),* $(,)?],
        $(lookups: [$($lookup_version:literal $lookup_kind:literal $($lookup_word:ident $($lookup_text:literal)?)*),* $(,)?],)?
        $(measurements: [
            $($measurement_kind:ident $measurement_name:literal $help:literal
                [$($label:literal),* $(,)?] $([$($bucket:literal),* $(,)?])?),*
            $(,)?
        ],)?
        $(finalizer: $finalizer:literal,)?
        $(managed_by: $managed_by:literal $(or [$($manager:literal),* $(,)?])?,)?
        $(expires: $expires:literal $(after $expires_after:literal)?,)?
        $(orders_children: $orders_children:literal,)?
        $(decorates: $decorated:literal $(annotations $annotated:literal)?,)?
        $(reads: [$($field:literal),* $(,)?],)?
        $(calls_per_instance: $calls_per_instance:literal,)?
        $(config_schema: $config_schema:expr,)?
        $(child_readiness: [
            $($judged_version:literal $judged_kind:literal
                current $current:literal $(failed $failed:literal)? $(message $message:literal)?),*
            $(,)?
        ],)?
        reconcile: $reconcile:path
        $(, finalize: $finalize:path)? $(,)?
    ) => {
        /// The manifest: what this plugin is and what it may touch, as JSON text.
        pub const MANIFEST: &str = concat!(
            "{\"name\":\"", $name,
            "\",\"version\":\"", $crate::__version!($($version)?),
            "\",\"contract\":\"0.2.0\",\"reconciles\":{\"apiVersion\":\"", $api_version,
            "\",\"kind\":\"", $kind,
            "\"},\"children\":", $crate::__kinds!($($child_version $child_kind),*),
            ",\"lookups\":", $crate::__lookups!($($($lookup_version $lookup_kind [$($lookup_word $($lookup_text)?),*]),*)?),
            ",\"measurements\":", $crate::__measurements!(
                $($($measurement_kind $measurement_name $help [$($label),*] $([$($bucket),*])?),*)?
            ),
            $(",\"finalizer\":\"", $finalizer, "\"",)?
            $(",\"managedBy\":\"", $managed_by, "\"", $(",\"managers\":", $crate::__strings!($($manager),*),)?)?
            $(",\"expires\":\"", $expires, "\"", $(",\"expiresAfter\":\"", $expires_after, "\"",)?)?
            $(",\"ordersChildren\":", $orders_children,)?
            $(",\"decorates\":{\"labelSelector\":\"", $decorated, $("\",\"annotationSelector\":\"", $annotated,)? "\"}",)?
            $(",\"callsPerInstance\":", $calls_per_instance,)?
            $(",\"configSchema\":", $config_schema,)?
            $(",\"childReadiness\":", $crate::__child_readiness!(
                $($judged_version $judged_kind $current [$($failed)?] [$($message)?]),*
            ),)?
            $(",\"reads\":", $crate::__strings!($($field),*),)?
            ",\"childReads\":", $crate::__child_reads!([] $($child_version $child_kind $(reads [$($child_field),*])?,)*),
            "}"
        );

        const _: () = $crate::manifest::check(&[
            $name, $($version,)? $($finalizer,)? $($managed_by, $($($manager,)*)?)? $($expires, $($expires_after,)?)? $($($field,)*)?
            $api_version, $kind, $($child_version, $child_kind, $($($child_field,)*)?)*
            $($($lookup_version, $lookup_kind, $($($lookup_text,)?)*)*)?
            $($($judged_version, $judged_kind, $current, $($failed,)? $($message,)?)*)? $($($measurement_name, $help, $($label,)*)*)?
        ]);

        const __INSTANCE: $crate::InstanceFor = $crate::__instance!($($calls_per_instance)?);

        /// One reconcile in the contract's plain types, exactly as the exported function does it.
        pub fn reconcile_raw(request: $crate::raw::Request) -> $crate::raw::Response {
            $crate::run_in(__INSTANCE, request, $reconcile)
        }

        $(
            /// One finalize in the contract's plain types, exactly as the exported function does it.
            pub fn finalize_raw(request: $crate::raw::Request) -> $crate::raw::Response {
                $crate::run_in(__INSTANCE, request, $finalize)
            }
        )?

        $crate::__component! { $crate::__exports!($($finalize)?); }
    };
}

/// How many calls an instance answers, as the plugin says.
#[doc(hidden)]
#[macro_export]
macro_rules! __instance {
    () => {
        $crate::InstanceFor::OneCall
    };
    ($calls_per_instance:literal) => {
        $crate::InstanceFor::SeveralCalls
    };
}

/// The component of a crate: the section with its `MANIFEST`, and the exports of a type `Plugin`.
#[doc(hidden)]
#[macro_export]
macro_rules! __component {
    ($($exports:tt)*) => {
        // Both need attributes that Rust calls unsafe, since two of the same name would clash. One crate holds one component.
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code)]
        mod __plugin {
            #[used]
            #[unsafe(link_section = "pilothouse:manifest")]
            static SECTION: [u8; super::MANIFEST.len()] = $crate::manifest::section(super::MANIFEST);

            struct Plugin;

            $($exports)*
        }
    };
}

/// The exports of a plugin without and with a finalizer.
#[doc(hidden)]
#[macro_export]
macro_rules! __exports {
    () => {
        impl $crate::bindings::plain::exports::pilothouse::plugin::reconciler::Guest for Plugin {
            fn reconcile(request: $crate::raw::Request) -> $crate::raw::Response {
                super::reconcile_raw(request)
            }
        }

        $crate::bindings::plain::export_plugin!(Plugin with_types_in $crate::bindings::plain);
    };
    ($finalize:path) => {
        $crate::__exports!();

        impl $crate::bindings::finalizing::exports::pilothouse::plugin::finalizer::Guest for Plugin {
            fn finalize(request: $crate::raw::Request) -> $crate::raw::Response {
                super::finalize_raw(request)
            }
        }

        $crate::bindings::finalizing::export_finalizing!(
            Plugin with_types_in $crate::bindings::finalizing
        );
    };
}

/// Makes the crate a plugin whose kinds come from its configuration: exports `configure` and `reconcile`, and embeds what is the same for
/// every configuration.
///
/// ```text
/// name: "compose",                   // the component's name; a plugin that is made of it has the one in the manifest of its configuration
/// version: "1.2.0",                  // default: the crate's version
/// config_schema: include_str!("../config.schema.json"), // what a configuration has to fit before `configure` sees it; default: any
/// configure: configure,              // fn(&str) -> Result<String, Vec<String>>: of a configuration, JSON text, the manifest, JSON
///                                    // text without `contract` and `configSchema`; or what is wrong, one sentence each
/// reconcile: reconcile,              // fn(raw::Request) -> A where A: Into<Response>: objects of kinds that nobody knows have no types
/// ```
#[macro_export]
macro_rules! configured_plugin {
    (
        name: $name:literal,
        $(version: $version:literal,)?
        $(config_schema: $config_schema:expr,)?
        configure: $configure:path,
        reconcile: $reconcile:path $(,)?
    ) => {
        /// What this component is, as JSON text.
        pub const MANIFEST: &str = concat!(
            "{\"name\":\"", $name, "\",\"version\":\"", $crate::__version!($($version)?), "\",\"contract\":\"0.2.0\"",
            $(",\"configSchema\":", $config_schema,)?
            "}"
        );

        const _: () = $crate::manifest::check(&[$name, $($version,)?]);

        /// One reconcile in the contract's plain types, exactly as the exported function does it.
        pub fn reconcile_raw(request: $crate::raw::Request) -> $crate::raw::Response {
            $crate::run_raw(request, $reconcile)
        }

        /// What is made of a configuration, exactly as the exported function does it.
        pub fn configure_raw(config: &str) -> Result<String, Vec<String>> {
            $crate::report_panics();
            $configure(config)
        }

        $crate::__component! {
            $crate::__exports!();

            impl $crate::bindings::configuring::exports::pilothouse::plugin::configurator::Guest for Plugin {
                fn configure(config: String) -> Result<String, Vec<String>> {
                    super::configure_raw(&config)
                }
            }

            $crate::bindings::configuring::export_configuring!(
                Plugin with_types_in $crate::bindings::configuring
            );
        }
    };
}
