//! What a version is called with for one object of a cluster: the object, its children, what it looks up, its configuration and the time. Takes
//! nothing out of it; what is in Secrets is there.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use pilothouse_controller::{
    lookups::CachedLookups,
    object::{Object, ObjectRef},
    pipeline::observe::{ObserveError, observe},
};
use pilothouse_engine::{Answer, Lookups, Query, contract::LookupError};
use pilothouse_offline::{Inputs, Round};
use serde_json::Value;

use crate::{
    Cluster,
    object::{Asked, AskedWith},
};

/// What a version is called with.
#[derive(Clone, Debug)]
pub struct Captured {
    /// All of it. The objects to look up are those that it found.
    pub inputs: Inputs,
    /// The lookups that were denied, each in a sentence. Without a cluster they find nothing.
    pub denied: Vec<String>,
}

/// Why it is not known what a version is called with.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// There is no such object.
    #[error("there is no such object, or the plugin does not work on it")]
    Gone,
    /// Its children cannot be read.
    #[error("its children are not known: {0}")]
    Unobserved(String),
    /// The plugin cannot be called for it.
    #[error("the plugin cannot be called for it: {0}")]
    Uncallable(String),
    /// What the API server serves is not JSON.
    #[error("an object is malformed: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl Cluster {
    /// Calls the version for an object, and returns what it was called with.
    ///
    /// # Errors
    /// [`CaptureError`]: that is not known.
    pub async fn capture(&self, name: &ObjectRef) -> Result<Captured, CaptureError> {
        let observed = observe(&self.plugin, name).map_err(|error| match error {
            ObserveError::Gone => CaptureError::Gone,
            ObserveError::NotSynced => CaptureError::Unobserved("they are not read yet".to_owned()),
            ObserveError::Unknown { kind, why } => CaptureError::Unobserved(format!("{kind}: {why}")),
        })?;
        if !self.plugin.selects(&observed.object) {
            return Err(CaptureError::Gone);
        }
        let found = Arc::<Found>::default();
        let recorded = |lookups: Arc<CachedLookups>| -> Arc<dyn Lookups> {
            // An earlier call may not have known yet what the account may read.
            found.clear();
            Arc::new(RecordedLookups { lookups, found: found.clone() })
        };
        // Only what it was called with counts: it may fail, and the host may refuse what it answers.
        let AskedWith { asked, now } = self.ask_with(&observed, recorded).await;
        let round: Option<Box<Round>> = match asked {
            Asked::Round(round) => Some(round),
            Asked::TooEarly => None,
            Asked::Failed(trouble) => return Err(CaptureError::Uncallable(trouble.message)),
        };
        let denied = round.map(|round| round.recorded.denied).unwrap_or_default();
        let inputs = Inputs {
            object: whole(&observed.object)?,
            children: observed.children.iter().map(|child| whole(&child.object)).collect::<Result<_, _>>()?,
            lookups: found.take()?,
            config: serde_json::from_str(&self.plugin.config)?,
            now,
        };
        Ok(Captured { inputs, denied: denied.into_iter().map(|denied| denied.why).collect() })
    }
}

fn whole(object: &Object) -> serde_json::Result<Value> {
    serde_json::from_str(&object.text.read())
}

/// The objects that lookups found, by their whole texts, each once.
#[derive(Default)]
struct Found(Mutex<BTreeSet<String>>);

impl Found {
    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn add(&self, texts: Vec<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(texts);
    }

    fn take(&self) -> serde_json::Result<Vec<Value>> {
        let found = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        found.iter().map(|text| serde_json::from_str(text)).collect()
    }
}

/// Lookups that remember what they found.
struct RecordedLookups {
    lookups: Arc<CachedLookups>,
    found: Arc<Found>,
}

impl Lookups for RecordedLookups {
    fn answer(&self, query: &Query, limit: usize) -> Result<Answer, LookupError> {
        let answer = self.lookups.answer(query, limit)?;
        // Whole, for two lookups may want other fields of one object.
        let whole = Query { fields: Vec::new(), ..query.clone() };
        self.found.add(self.lookups.answer(&whole, usize::MAX)?.objects);
        Ok(answer)
    }
}
