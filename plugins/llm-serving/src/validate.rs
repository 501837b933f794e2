//! Finds mistakes in a server's spec. The schema of the CRD refuses most of them earlier; this is for clusters with an older CRD, and
//! for what a schema cannot express. Pure.

use crate::config::Config;
use crate::container::RESERVED;
use crate::model_volume;
use crate::server::Server;
use crate::server_spec::ServerSpec;
use crate::spec_error::SpecError;
use pilothouse_pods::volumes::SHARED_MEMORY;
use std::collections::BTreeSet;

type Validation = Result<(), SpecError>;

/// The server of a spec.
///
/// # Errors
/// The first mistake in the spec.
pub fn checked<'a>(spec: ServerSpec<'a>, config: &'a Config) -> Result<Server<'a>, SpecError> {
    let server = Server::new(spec, config)?;
    numbers(&server)?;
    parallelism(&server)?;
    variables(&server)?;
    adapters(&server)?;
    paths(&server)?;
    model_volume::claims(&server)?;
    drain(&server)?;
    Ok(server)
}

fn refuse_if(is_wrong: bool, error: impl FnOnce() -> SpecError) -> Validation {
    if is_wrong { Err(error()) } else { Ok(()) }
}

fn numbers(server: &Server<'_>) -> Validation {
    in_range("replicas", server.spec.replicas.into(), 0, 10_000)?;
    in_range(server.spec.gpu_count_field, server.gpus.parallelism.tensor.into(), 0, 64)?;
    in_range("pipelineParallelSize", server.gpus.parallelism.pipeline.into(), 1, 64)?;
    in_range("port", server.port.into(), 1, 65_535)
}

fn in_range(field: &'static str, value: i64, min: i64, max: i64) -> Validation {
    refuse_if(!(min..=max).contains(&value), || SpecError::OutOfRange { field, value, min, max })
}

/// Whether the engine can be spread as it is asked to. Nothing is known of a command of the user's own.
fn parallelism(server: &Server<'_>) -> Validation {
    let (spread, arguments) = (server.gpus.parallelism, &server.engine.arguments);
    let engine = || server.engine_name.clone();
    if !server.spec.model.command.is_empty() {
        return Ok(());
    }
    refuse_if(spread.pipeline > 1 && arguments.pipeline.is_empty(), || SpecError::NoStages {
        stages: spread.pipeline,
        engine: engine(),
    })?;
    refuse_if(spread.is_multi_node() && arguments.nodes.is_empty(), || SpecError::OneNodeOnly {
        gpus: spread.gpus(),
        nodes: spread.nodes,
        per_pod: spread.gpus_per_pod(),
        engine: engine(),
    })
}

fn variables(server: &Server<'_>) -> Validation {
    let mut names = BTreeSet::new();
    for variable in &server.spec.model.env {
        let name = variable.name.as_str();
        refuse_if(RESERVED.contains(&name), || SpecError::ReservedVariable(name.to_owned()))?;
        let is_new = names.insert(name);
        refuse_if(!is_new, || SpecError::DuplicateVariable(name.to_owned()))?;
    }
    Ok(())
}

/// Whether the server is told of its adapters, and each can be asked for.
fn adapters(server: &Server<'_>) -> Validation {
    let (model, arguments) = (server.spec.model, &server.engine.arguments);
    let is_told = !arguments.adapter.is_empty() || !model.command.is_empty();
    refuse_if(!model.lora_adapters.is_empty() && !is_told, || SpecError::NoAdapters(server.engine_name.clone()))?;
    let mut names = BTreeSet::from([server.spec.model_name]);
    for adapter in &model.lora_adapters {
        let is_new = names.insert(&adapter.name);
        refuse_if(!is_new, || SpecError::AdapterNameTaken(adapter.name.clone()))?;
    }
    Ok(())
}

fn paths(server: &Server<'_>) -> Validation {
    let Some(path) = server.spec.model.model_path.as_deref() else { return Ok(()) };
    let has_dots = path.split('/').any(|part| matches!(part, "." | ".."));
    let is_absolute = path.starts_with('/') && path != "/";
    refuse_if(has_dots || !is_absolute, || SpecError::InvalidPath { field: "modelPath", path: path.to_owned() })?;
    // Every container has shared memory, also where the server asks for none.
    model_volume::check_path(server, [SHARED_MEMORY])
}

fn drain(server: &Server<'_>) -> Validation {
    let (drain, grace) = (server.drain_seconds(), server.grace_seconds());
    refuse_if(drain >= grace && drain > 0, || SpecError::DrainTooLong { drain, grace })
}
