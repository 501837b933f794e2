//! A job that is being deleted: all its children go first, then the job. Claims and the data on them belong to the user and
//! stay.

use crate::children::config_maps::ConfigMap;
use crate::children::pod_group::{SchedulerPluginsPodGroup, VolcanoPodGroup};
use crate::children::workload::Workload;
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_sdk::{Error, Kind, Object, Request, Response};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

/// How often remaining children are counted again, in seconds. The host calls earlier whenever a child goes.
const RECHECK_SECONDS: u32 = 30;

/// A job of which only the children matter. Nothing of its spec is read, so that an invalid job can be deleted, too.
pub type DeletedJob = Object<IgnoredAny>;

/// A Service, of which only its existence matters.
#[derive(Deserialize)]
struct Service {}

impl Kind for Service {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Service";
}

/// Removes all children, and is done when none is left.
///
/// # Errors
/// A child cannot be read.
pub fn finalize(request: &Request<DeletedJob>) -> Result<Response, Error> {
    let pods = count::<ObservedPod>(request)?;
    let others = count::<Service>(request)?
        + count::<ConfigMap>(request)?
        + count::<VolcanoPodGroup>(request)?
        + count::<SchedulerPluginsPodGroup>(request)?
        + count::<Workload>(request)?;
    let response = if pods + others == 0 {
        Response::done()
    } else {
        let message = format!("{pods} Pods and {others} other objects are being removed");
        Response::wait("CleaningUp", message, RECHECK_SECONDS)
    };
    Ok(response.no_children().removes_many())
}

fn count<K: Kind + DeserializeOwned>(request: &Request<DeletedJob>) -> Result<usize, Error> {
    request.children::<K>().map(|children| children.len())
}
