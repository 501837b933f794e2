//! How a model gets into the Pod: a volume that holds it, or one that an init container fills. The server mounts it read-only.

use crate::api::ModelSource;
use crate::server::Server;
use crate::source::Source;
use crate::spec_error::SpecError;
use pilothouse_pods::claim::ClaimRef;
use pilothouse_pods::fields::set_unless_empty;
use pilothouse_pods::name::label_value;
use pilothouse_pods::security::{self, Capabilities};
use pilothouse_pods::variable::variable;
use pilothouse_pods::volumes::Volumes;
use serde_json::{Value, json};

/// The init container that downloads or copies the model.
pub const DOWNLOAD: &str = "model-download";

/// The variable with the directory of the model, for what fetches it.
const DIRECTORY_VARIABLE: &str = "MODEL_DIR";

/// The volume with the model.
const VOLUME: &str = "model";

/// Where the model is mounted, if nobody says.
const DEFAULT_DIRECTORY: &str = "/mnt/models";

/// After how many seconds a download is given up, if nobody says. A connection that stalls would hang for ever.
const DEADLINE_SECONDS: u32 = 3600;

/// How many seconds a rollout has, beyond what a model takes to be downloaded and loaded, before it counts as stuck.
const SLACK_SECONDS: u32 = 600;

/// The most memory that a download may use, if nobody says.
const MEMORY_LIMIT: &str = "16Gi";

/// The memory that is reserved for a download.
const MEMORY_REQUEST: &str = "2Gi";

/// What of the command copies a model out of an image. The image needs a shell and `cp`.
const COPY: &str = "cp -a /models/. \"$0\"";

/// The directory of the container in which the model is mounted; none if nothing is.
pub fn directory<'a>(server: &Server<'a>) -> Option<&'a str> {
    server.source()?;
    let Some(path) = server.spec.model.model_path.as_deref().map(|path| path.trim_end_matches('/')) else {
        return Some(DEFAULT_DIRECTORY);
    };
    if path == DEFAULT_DIRECTORY || path.starts_with(&format!("{DEFAULT_DIRECTORY}/")) {
        return Some(DEFAULT_DIRECTORY);
    }
    // A model that is one file: its directory is mounted.
    Some(if path.ends_with(".gguf") { path.rsplit_once('/').map_or(path, |(directory, _)| directory) } else { path })
}

/// Checks that the model is not mounted where something else is.
///
/// # Errors
/// It is.
pub fn check_path<'p>(server: &Server<'_>, taken: impl IntoIterator<Item = &'p str>) -> Result<(), SpecError> {
    let (Some(path), Some(directory)) = (server.spec.model.model_path.as_deref(), directory(server)) else {
        return Ok(());
    };
    if !taken.into_iter().any(|taken| taken == directory) {
        return Ok(());
    }
    let is_given = server.spec.model.model_source.is_some();
    let source_field = if is_given { "spec.modelSource" } else { "modelSource of the plugin's configuration" };
    Err(SpecError::MountPathTaken { path: path.to_owned(), source_field, directory: directory.to_owned() })
}

/// By what the engine loads the model: its path, or else its name.
pub fn location<'a>(server: &Server<'a>) -> &'a str {
    let path = server.spec.model.model_path.as_deref().map(|path| path.trim_end_matches('/'));
    path.or_else(|| directory(server)).unwrap_or(server.spec.model_name)
}

/// After how many seconds a download is given up; none if nothing is downloaded.
pub fn deadline_seconds(server: &Server<'_>) -> Option<u32> {
    let source = server.source()?;
    match Source::parse(&source.uri) {
        Ok(Source::Download(_) | Source::Image(_)) => Some(source.deadline_seconds.unwrap_or(DEADLINE_SECONDS)),
        _ => None,
    }
}

/// After how many seconds without progress a rollout counts as stuck.
pub fn progress_deadline_seconds(server: &Server<'_>) -> u32 {
    let download = deadline_seconds(server).unwrap_or_default();
    let default = server.startup_seconds() + download + SLACK_SECONDS;
    server.spec.serving.progress_deadline_seconds.unwrap_or(default)
}

/// The claims that the Pods of a server mount.
///
/// # Errors
/// The URI cannot be read.
pub fn claims<'a>(server: &Server<'a>) -> Result<Vec<ClaimRef<'a>>, SpecError> {
    let Some(source) = server.source() else { return Ok(Vec::new()) };
    Ok(match Source::parse(&source.uri)? {
        Source::Claim { claim, .. } => vec![ClaimRef { field: "modelSource.uri", name: claim }],
        Source::Download(_) | Source::Image(_) => {
            let cache = source.cache_claim_name.as_deref();
            cache.map(|name| ClaimRef { field: "modelSource.cacheClaimName", name }).into_iter().collect()
        }
        Source::Host(_) => Vec::new(),
    })
}

/// Adds the model to the volumes of the Pod, and returns the init container that fetches it, if one does.
///
/// # Errors
/// The URI cannot be read, or the model would be mounted over another volume.
pub fn add(server: &Server<'_>, volumes: &mut Volumes) -> Result<Option<Value>, SpecError> {
    let (Some(source), Some(directory)) = (server.source(), directory(server)) else { return Ok(None) };
    check_path(server, volumes.mount_paths())?;
    let mut mount = json!({ "mountPath": directory, "readOnly": true });
    match Source::parse(&source.uri)? {
        Source::Claim { claim, path } => {
            set_unless_empty(&mut mount, "subPath", if path.is_empty() { Value::Null } else { json!(path) });
            volumes.add(VOLUME, "persistentVolumeClaim", json!({ "claimName": claim, "readOnly": true }), mount);
            Ok(None)
        }
        Source::Host(path) => {
            volumes.add(VOLUME, "hostPath", json!({ "path": path, "type": "Directory" }), mount);
            Ok(None)
        }
        Source::Download(uri) => {
            let downloader = server.config.downloader();
            let image = source.downloader_image.clone().unwrap_or(downloader.image);
            let command = downloader.command.into_iter().chain([uri.to_owned(), directory.to_owned()]).collect();
            add_download(volumes, source, mount);
            Ok(Some(init_container(server, source, Download { image, command, directory })))
        }
        Source::Image(image) => {
            let command = ["sh", "-c", COPY, directory].map(str::to_owned).to_vec();
            add_download(volumes, source, mount);
            Ok(Some(init_container(server, source, Download { image: image.to_owned(), command, directory })))
        }
    }
}

/// What an init container does.
struct Download<'a> {
    image: String,
    command: Vec<String>,
    directory: &'a str,
}

/// The volume that an init container fills: a claim that several Pods and models share, or one of the Pod's own.
fn add_download(volumes: &mut Volumes, source: &ModelSource, mut mount: Value) {
    if let Some(claim) = &source.cache_claim_name {
        mount["subPath"] = json!(label_value(&source.uri));
        return volumes.add_claim(VOLUME, claim, mount);
    }
    let mut directory = json!({});
    set_unless_empty(&mut directory, "sizeLimit", json!(source.size_limit));
    volumes.add(VOLUME, "emptyDir", directory, mount);
}

/// The init container. Its memory is limited apart from the server's, and it has a deadline: what stalls is killed, shows as a
/// failure, and begins anew.
fn init_container(server: &Server<'_>, source: &ModelSource, download: Download<'_>) -> Value {
    let deadline = source.deadline_seconds.unwrap_or(DEADLINE_SECONDS).to_string();
    let limit = source.memory_limit.clone().unwrap_or_else(|| json!(MEMORY_LIMIT));
    let request = if source.memory_limit.is_some() { limit.clone() } else { json!(MEMORY_REQUEST) };
    let mut mount = json!({ "name": VOLUME, "mountPath": download.directory });
    if source.cache_claim_name.is_some() {
        mount["subPath"] = json!(label_value(&source.uri));
    }
    let command: Vec<_> = ["timeout", &deadline].map(str::to_owned).into_iter().chain(download.command).collect();
    let mut container = json!({
        "name": DOWNLOAD,
        "image": download.image,
        "command": command,
        "env": [variable(DIRECTORY_VARIABLE, download.directory)],
        "volumeMounts": [mount],
        "resources": { "limits": { "memory": limit }, "requests": { "memory": request } },
        "securityContext": security::of_container(Capabilities::Dropped),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    if let Some(secret) = &source.secret_ref {
        container["envFrom"] = json!([{ "secretRef": { "name": secret.name } }]);
    }
    set_unless_empty(&mut container, "imagePullPolicy", json!(server.spec.model.image_pull_policy));
    container
}
