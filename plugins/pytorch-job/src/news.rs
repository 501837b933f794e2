//! Events and measurements that are still to be told. The host takes them with a status, but what is known of a job is written before that
//! and is read in the next call; so they are kept with it until the job's status has the time of the last ones. It decides nothing.

use pilothouse_pods::time::Time;
use pilothouse_sdk::{Error, Event, Measurement, clock, raw::EventType};
use serde::{Deserialize, Serialize};

/// What is to be told, and the time in the status that says that it has been.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct News {
    /// A time that no earlier news have.
    pub time: Option<String>,
    /// The Events: whether it is a warning, reason and message.
    events: Vec<(bool, String, String)>,
    /// The measurements: name and value.
    measurements: Vec<(String, f64)>,
}

impl News {
    /// What is to be told after a call that found more. `reported` is the time in the status.
    ///
    /// # Errors
    /// The clock cannot be read.
    pub fn with(
        &self,
        reported: Option<&str>,
        events: &[Event],
        measurements: &[(String, f64)],
    ) -> Result<Self, Error> {
        if events.is_empty() && measurements.is_empty() {
            return Ok(self.clone());
        }
        let mut news = if self.is_told(reported) { Self::default() } else { self.clone() };
        let is_warning = |event: &Event| event.event_type == EventType::Warning;
        news.events.extend(events.iter().map(|event| (is_warning(event), event.reason.clone(), event.message.clone())));
        news.measurements.extend_from_slice(measurements);
        let now = clock::now_text();
        let now = Time::parse(&now).ok_or(Error::Clock(now))?;
        let next = self.time.as_deref().and_then(Time::parse).map(|last| last.plus(1));
        news.time = Some(next.map_or(now, |next| next.max(now)).to_rfc3339());
        Ok(news)
    }

    /// Whether the status says that all has been told.
    pub fn is_told(&self, reported: Option<&str>) -> bool {
        self.time.as_deref() == reported
    }

    /// The Events.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.events.iter().map(|(is_warning, reason, message)| match is_warning {
            true => Event::warning(reason.as_str(), message.as_str()),
            false => Event::normal(reason.as_str(), message.as_str()),
        })
    }

    /// The measurements of jobs of a namespace.
    pub fn measurements(&self, namespace: &str) -> impl Iterator<Item = Measurement> {
        self.measurements.iter().map(move |(name, value)| {
            Measurement::new(name.as_str(), *value).label("job_namespace", namespace).label("framework", "pytorch")
        })
    }
}
