//! The end of a job: everything that it made goes, and only then the job itself. Claims and what is on them are the user's
//! and stay.

use crate::children::config_maps::ConfigMap;
use crate::children::pod_group::{Coscheduling, Volcano};
use crate::live::LivePod;
use pilothouse_sdk::{Error, Kind, Object, Request, Response};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

/// How often children that are on their way out are looked for, in seconds; each that goes asks sooner.
const AGAIN: u32 = 30;

/// A job of which nothing matters but its children: one that cannot be read must go as well.
pub type Leaving = Object<IgnoredAny>;

/// A Service, of which it only matters that it is there.
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
pub fn finalize(request: &Request<Leaving>) -> Result<Response, Error> {
    let pods = count::<LivePod>(request)?;
    let others = count::<Service>(request)?
        + count::<ConfigMap>(request)?
        + count::<Volcano>(request)?
        + count::<Coscheduling>(request)?;
    let response = if pods + others == 0 {
        Response::done()
    } else {
        Response::wait("CleaningUp", format!("{pods} Pods and {others} other objects are being removed"), AGAIN)
    };
    Ok(response.no_children().removes_many())
}

fn count<K: Kind + DeserializeOwned>(request: &Request<Leaving>) -> Result<usize, Error> {
    request.children::<K>().map(|children| children.len())
}
