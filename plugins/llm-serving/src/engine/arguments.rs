//! The arguments of an engine's server: groups with placeholders, each of which is there only where there is something to say.

use super::is_since;
use crate::api::LoraAdapter;
use crate::parallelism::Parallelism;
use serde::Deserialize;

/// The arguments of an engine, in the order in which they are given.
///
/// `{model}` is the path or name of the model, `{name}` the name under which it is served or that of an adapter, `{path}` the path
/// of an adapter, `{port}`, `{gpus}`, `{stages}`, `{nodes}` and `{seconds}` are numbers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EngineArguments {
    /// Which model it serves.
    pub model: Vec<String>,
    /// Under which name, where that is not what it is loaded by.
    pub served_name: Vec<String>,
    /// Over how many GPUs, where there are any.
    pub gpus: Vec<String>,
    /// In how many stages, where there are more than one.
    pub pipeline: Vec<String>,
    /// On how many nodes, where there are more than one, and how the Pods of such a server find each other.
    pub nodes: Vec<String>,
    /// For the Pods of such a server that clients do not talk to.
    pub worker: Vec<String>,
    /// On which port, where that is not its own.
    pub port: Vec<String>,
    /// How long it may go on with requests once it is asked to end.
    pub shutdown: Option<ShutdownArguments>,
    /// Before all adapters.
    pub adapters: Vec<String>,
    /// For each adapter.
    pub adapter: Vec<String>,
    /// In any case.
    pub always: Vec<String>,
}

/// Arguments that an engine knows since some version.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShutdownArguments {
    /// The first version that knows them. Images whose tag tells no version do not get them: an engine that does not know an
    /// argument does not start.
    pub since: String,
    /// The arguments.
    pub arguments: Vec<String>,
}

/// By what an engine loads a model, and under which name it serves it.
#[derive(Clone, Copy, Debug)]
pub struct ModelReference<'a> {
    /// Its path in the container, or its name.
    pub location: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// What the arguments say besides the model.
#[derive(Clone, Copy, Debug)]
pub struct ServerSettings<'a> {
    /// The image, whose tag may tell a version.
    pub image: &'a str,
    /// How the server is spread over GPUs and nodes.
    pub parallelism: Parallelism,
    /// Its port, if it is not the engine's own.
    pub port: Option<u32>,
    /// How many seconds it has to end.
    pub shutdown_seconds: u32,
    /// Its adapters.
    pub adapters: &'a [LoraAdapter],
}

impl EngineArguments {
    /// The arguments about GPUs and nodes.
    fn spread(&self, parallelism: Parallelism) -> Vec<String> {
        let Parallelism { tensor, pipeline, nodes } = parallelism;
        let given = |group: &[String], is_given: bool, placeholder: &str, number: u32| match is_given {
            true => filled(group, &[(placeholder, &number.to_string())]),
            false => Vec::new(),
        };
        let mut all = given(&self.gpus, tensor > 0, "{gpus}", tensor);
        all.extend(given(&self.pipeline, pipeline > 1, "{stages}", pipeline));
        all.extend(given(&self.nodes, nodes > 1, "{nodes}", nodes));
        all
    }

    /// The arguments of a server.
    pub fn of(&self, model: ModelReference<'_>, settings: ServerSettings<'_>) -> Vec<String> {
        let ModelReference { location, name } = model;
        let mut all = filled(&self.model, &[("{model}", location)]);
        if location != name {
            all.extend(filled(&self.served_name, &[("{name}", name)]));
        }
        all.extend(self.spread(settings.parallelism));
        if let Some(port) = settings.port {
            all.extend(filled(&self.port, &[("{port}", &port.to_string())]));
        }
        if let Some(shutdown) = self.shutdown.as_ref().filter(|shutdown| is_since(settings.image, &shutdown.since)) {
            all.extend(filled(&shutdown.arguments, &[("{seconds}", &settings.shutdown_seconds.to_string())]));
        }
        if !settings.adapters.is_empty() {
            all.extend(self.adapters.iter().cloned());
        }
        for LoraAdapter { name, path } in settings.adapters {
            all.extend(filled(&self.adapter, &[("{name}", name), ("{path}", path)]));
        }
        all.extend(self.always.iter().cloned());
        all
    }
}

fn filled(arguments: &[String], values: &[(&str, &str)]) -> Vec<String> {
    let fill = |argument: &String| {
        values.iter().fold(argument.clone(), |text, (placeholder, value)| text.replace(placeholder, value))
    };
    arguments.iter().map(fill).collect()
}
