//! The configuration of a serving plugin, as its installer gives it: images, engines, names of GPUs, where models come from. All of
//! it may be left out.

use crate::api::ModelSource;
use crate::engine::{self, CONTAINER, DefaultEngine, Engine, NAMES};
use crate::spec_error::SpecError;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The image that downloads models, unless the configuration or an object names another: that of KServe, which reads `hf://` and
/// `s3://`.
pub const DOWNLOADER_IMAGE: &str = "kserve/storage-initializer:v0.15.2";

/// Its command.
const DOWNLOADER_COMMAND: [&str; 1] = ["/storage-initializer/scripts/initializer-entrypoint"];

/// The label of a node with the name of its GPUs, as NVIDIA's GPU feature discovery sets it.
const PRODUCT_LABEL: &str = "nvidia.com/gpu.product";

/// The label of a node with the memory of each of its GPUs, in MiB.
const MEMORY_LABEL: &str = "nvidia.com/gpu.memory";

/// How many GPUs a node has, if nobody says: as many as the usual servers with fast links between them.
const GPUS_PER_NODE: u32 = 8;

/// The configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// Engines by name: others than the known ones, or in their place.
    pub engines: BTreeMap<String, Engine>,
    /// The image of the servers of objects that name none, by the name of the engine.
    pub images: BTreeMap<String, String>,
    /// Where the models of objects come from that do not say.
    pub model_source: Option<ModelSource>,
    /// What downloads models.
    pub downloader: Option<Downloader>,
    /// How nodes say which GPUs they have.
    pub gpus: GpuConfig,
}

/// What downloads a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Downloader {
    /// Its image.
    pub image: String,
    /// Its command. It gets the URI and the directory as arguments.
    pub command: Vec<String>,
}

/// How nodes say which GPUs they have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct GpuConfig {
    /// The label of a node with the name of its GPUs.
    pub product_label: Option<String>,
    /// The label of a node with the memory of each of its GPUs, in MiB.
    pub memory_label: Option<String>,
    /// The values of the label by the type that objects name: besides the known ones, or in their place.
    pub types: BTreeMap<String, Vec<String>>,
    /// How many GPUs a node has. A server that needs more spans several nodes.
    pub per_node: Option<u32>,
}

impl Config {
    /// The engine of an object that names this one or none.
    ///
    /// # Errors
    /// There is no engine of that name.
    pub fn engine(
        &self,
        named: Option<&str>,
        image: Option<&str>,
        default: DefaultEngine,
    ) -> Result<(String, Engine), SpecError> {
        let name = named.map_or_else(|| self.default_engine(image, default), str::to_owned);
        let engine = self.engines.get(&name).cloned().or_else(|| engine::builtin(&name));
        let engine =
            engine.ok_or_else(|| SpecError::UnknownEngine { name: name.clone(), known: self.engine_names() })?;
        Ok((name, engine))
    }

    fn default_engine(&self, image: Option<&str>, default: DefaultEngine) -> String {
        let (DefaultEngine::ByImage, Some(image)) = (default, image) else { return "vllm".to_owned() };
        let configured = self.engines.iter().map(|(name, engine)| (name.clone(), engine.clone()));
        let known = NAMES.iter().filter_map(|name| Some(((*name).to_owned(), engine::builtin(name)?)));
        let owner = configured.chain(known).find(|(_, engine)| engine.owns(image));
        owner.map_or_else(|| CONTAINER.to_owned(), |(name, _)| name)
    }

    fn engine_names(&self) -> String {
        let names = NAMES.into_iter().chain(self.engines.keys().map(String::as_str));
        names.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
    }

    /// What downloads models.
    pub fn downloader(&self) -> Downloader {
        self.downloader.clone().unwrap_or_else(|| Downloader {
            image: DOWNLOADER_IMAGE.to_owned(),
            command: DOWNLOADER_COMMAND.map(str::to_owned).to_vec(),
        })
    }
}

impl GpuConfig {
    /// The label of a node with the name of its GPUs.
    pub fn product_label(&self) -> &str {
        self.product_label.as_deref().unwrap_or(PRODUCT_LABEL)
    }

    /// How many GPUs a node has.
    pub fn per_node(&self) -> u32 {
        self.per_node.unwrap_or(GPUS_PER_NODE)
    }

    /// The label of a node with the memory of each of its GPUs.
    pub fn memory_label(&self) -> &str {
        self.memory_label.as_deref().unwrap_or(MEMORY_LABEL)
    }

    /// The values of the label for a type of GPU; none for a type that nobody knows.
    pub fn products(&self, gpu_type: &str) -> Option<Vec<Cow<'_, str>>> {
        if let Some(products) = self.types.get(gpu_type) {
            return Some(products.iter().map(|product| Cow::Borrowed(product.as_str())).collect());
        }
        let known = crate::gpu_types::products(gpu_type)?;
        Some(known.iter().map(|product| Cow::Borrowed(*product)).collect())
    }
}
