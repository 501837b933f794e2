//! A server as the rest of the library sees it: the fields of the objects that it is made of, with defaults filled in. It reads no
//! cluster.

use crate::api::{ModelFields, ModelSource};
use crate::clients::Clients;
use crate::config::Config;
use crate::engine::Engine;
use crate::gpus::Gpus;
use crate::rollout::Rollout;
use crate::server_spec::ServerSpec;
use crate::spec_error::SpecError;
use pilothouse_pods::api::SecurityContext;

/// How many seconds a model has to be loaded, if nobody says.
const STARTUP_SECONDS: u32 = 600;

/// How many seconds a Pod that is being removed still takes requests, if nobody says.
const DRAIN_SECONDS: u32 = 15;

/// How many seconds a Pod that is being removed has in all, if nobody says.
const GRACE_SECONDS: u32 = 60;

/// A server that can be made.
#[derive(Clone, Debug)]
pub struct Server<'a> {
    /// What it is made of.
    pub spec: ServerSpec<'a>,
    /// The plugin's configuration.
    pub config: &'a Config,
    /// The engine.
    pub engine: Engine,
    /// Its name.
    pub engine_name: String,
    /// The image.
    pub image: String,
    /// The port.
    pub port: u32,
    /// The GPUs of each Pod.
    pub gpus: Gpus<'a>,
    /// The user and groups of the Pods.
    pub security: SecurityContext,
    /// How Pods are replaced.
    pub rollout: Rollout,
    /// Which Pods clients talk to.
    pub clients: Clients,
}

impl<'a> Server<'a> {
    /// The server of a spec, of which not everything is checked: [`crate::validate::checked`] does that.
    ///
    /// # Errors
    /// A mistake in the spec because of which there is no default.
    pub fn new(spec: ServerSpec<'a>, config: &'a Config) -> Result<Self, SpecError> {
        let model = spec.model;
        let (name, engine) = config.engine(model.engine.as_deref(), model.image.as_deref(), spec.default_engine)?;
        let own_image = || config.images.get(&name).or(Some(&engine.image)).filter(|image| !image.is_empty());
        let image =
            model.image.as_ref().or_else(own_image).cloned().ok_or_else(|| SpecError::MissingImage(name.clone()))?;
        let port = spec.serving.port.or(spec.default_port).unwrap_or(engine.port);
        let gpus = Gpus::of(&spec, &config.gpus)?;
        let security = security_context(model, &engine, &image)?;
        let rollout = Rollout::of(&spec, &gpus)?;
        let clients = if gpus.parallelism.is_multi_node() { Clients::Leaders } else { Clients::All };
        Ok(Self { spec, config, engine, engine_name: name, image, port, gpus, security, rollout, clients })
    }

    /// How many Pods there shall be.
    pub fn desired_replicas(&self) -> i32 {
        self.spec.desired_replicas()
    }

    /// Whether each server is a group of Pods.
    pub fn is_multi_node(&self) -> bool {
        self.gpus.parallelism.is_multi_node()
    }

    /// The name of the workload.
    pub fn workload(&self) -> &str {
        &self.spec.identity.workload
    }

    /// Where the model comes from; none if it is in the image or the engine fetches it by itself.
    pub fn source(&self) -> Option<&'a ModelSource> {
        self.spec.model.model_source.as_ref().or(self.config.model_source.as_ref())
    }

    /// How many seconds the server has to load the model.
    pub fn startup_seconds(&self) -> u32 {
        self.spec.serving.startup_timeout_seconds.unwrap_or(STARTUP_SECONDS)
    }

    /// How many seconds a Pod that is being removed still takes requests.
    pub fn drain_seconds(&self) -> u32 {
        self.spec.serving.drain_seconds.unwrap_or(DRAIN_SECONDS)
    }

    /// How many seconds a Pod that is being removed has in all.
    pub fn grace_seconds(&self) -> u32 {
        self.spec
            .serving
            .termination_grace_period_seconds
            .unwrap_or_else(|| GRACE_SECONDS.max(self.drain_seconds() + 45))
    }

    /// Where the server is reached from inside the cluster.
    pub fn url(&self) -> String {
        format!("http://{}.{}.svc:{}", self.workload(), self.spec.identity.namespace, self.port)
    }
}

/// The user and groups of a server. `runAsNonRoot` without a number fails on images whose user is root, and a number that the image
/// does not know breaks engines, so both are set together or not at all.
fn security_context(model: &ModelFields, engine: &Engine, image: &str) -> Result<SecurityContext, SpecError> {
    let user = engine.user_in(image);
    let Some(given) = &model.security_context else {
        return Ok(match user {
            Some(uid) => SecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(uid),
                fs_group: Some(uid),
                ..SecurityContext::default()
            },
            None => SecurityContext::default(),
        });
    };
    let mut context = given.clone();
    if context.run_as_non_root == Some(true) && context.run_as_user.is_none() {
        context.run_as_user = Some(user.ok_or_else(|| SpecError::UnknownUser(image.to_owned()))?);
    }
    Ok(context)
}
