//! The work of the engine: so many requests at a time, each with a first word and further ones, while the others wait.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;

use crate::{
    arguments::{Arguments, Surroundings},
    metrics::Metrics,
};

/// A request in a gauge, which it leaves also when its client gives up.
struct Counted<'e> {
    engine: &'e Engine,
    gauge: Gauge,
}

/// One of the gauges.
type Gauge = fn(&mut Metrics) -> &mut i64;

impl<'e> Counted<'e> {
    fn begin(engine: &'e Engine, gauge: Gauge) -> Self {
        engine.measure(|metrics| *gauge(metrics) += 1);
        Self { engine, gauge }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.engine.measure(|metrics| *(self.gauge)(metrics) -= 1);
    }
}

/// The engine.
pub struct Engine {
    served_name: String,
    places: Semaphore,
    token: Duration,
    metrics: Mutex<Metrics>,
}

impl Engine {
    /// An engine at rest.
    pub fn new(arguments: &Arguments, surroundings: &Surroundings) -> Self {
        let served_name = arguments.served_model_name.clone().unwrap_or_else(|| arguments.model.clone());
        Self {
            metrics: Mutex::new(Metrics::of(&served_name)),
            served_name,
            places: Semaphore::new(arguments.max_num_seqs),
            token: surroundings.token,
        }
    }

    /// The name by which clients ask for the model.
    pub fn served_name(&self) -> &str {
        &self.served_name
    }

    /// Works on a request until its answer has so many words.
    pub async fn work_on(&self, tokens: u64) {
        let arrived = Instant::now();
        let waits = Counted::begin(self, |metrics| &mut metrics.waiting);
        let _place = self.places.acquire().await;
        drop(waits);
        let _runs = Counted::begin(self, |metrics| &mut metrics.running);
        tokio::time::sleep(self.token).await;
        self.measure(|metrics| metrics.first_token.observe(arrived.elapsed()));
        for _ in 1..tokens {
            tokio::time::sleep(self.token).await;
        }
        self.measure(|metrics| metrics.whole.observe(arrived.elapsed()));
    }

    /// The metrics as Prometheus reads them.
    pub fn exposition(&self) -> String {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner).to_string()
    }

    fn measure(&self, change: impl FnOnce(&mut Metrics)) {
        change(&mut self.metrics.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
