//! Metrics under vLLM's names, with the buckets that it has.

use std::{fmt, time::Duration};

/// The buckets of the time to the first token, in seconds.
const FIRST_TOKEN: [f64; 17] =
    [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0];

/// The buckets of whole requests: they begin late.
const WHOLE: [f64; 10] = [0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0];

/// The metrics of an engine.
pub struct Metrics {
    labels: String,
    /// How many requests it works on.
    pub running: i64,
    /// How many wait.
    pub waiting: i64,
    /// From the arrival of a request to its first token.
    pub first_token: Histogram,
    /// From its arrival to its end.
    pub whole: Histogram,
}

/// A histogram of durations.
pub struct Histogram {
    /// The upper bound of each bucket, and how many fell below it.
    buckets: Vec<(f64, u64)>,
    count: u64,
    sum: f64,
}

impl Metrics {
    /// Metrics of a model that is served under this name.
    pub fn of(model: &str) -> Self {
        Self {
            labels: format!("engine=\"0\",model_name=\"{model}\""),
            running: 0,
            waiting: 0,
            first_token: Histogram::new(&FIRST_TOKEN),
            whole: Histogram::new(&WHOLE),
        }
    }
}

impl Histogram {
    fn new(bounds: &[f64]) -> Self {
        Self { buckets: bounds.iter().map(|bound| (*bound, 0)).collect(), count: 0, sum: 0.0 }
    }

    /// Adds a duration.
    pub fn observe(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.buckets.iter_mut().filter(|(bound, _)| seconds <= *bound).for_each(|(_, count)| *count += 1);
        self.count += 1;
        self.sum += seconds;
    }

    fn write(&self, to: &mut fmt::Formatter<'_>, name: &str, labels: &str) -> fmt::Result {
        writeln!(to, "# TYPE {name} histogram")?;
        for (bound, count) in &self.buckets {
            writeln!(to, "{name}_bucket{{{labels},le=\"{bound:?}\"}} {count}")?;
        }
        writeln!(to, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", self.count)?;
        writeln!(to, "{name}_sum{{{labels}}} {}", self.sum)?;
        writeln!(to, "{name}_count{{{labels}}} {}", self.count)
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in [("vllm:num_requests_running", self.running), ("vllm:num_requests_waiting", self.waiting)]
        {
            writeln!(to, "# TYPE {name} gauge\n{name}{{{}}} {value}", self.labels)?;
        }
        self.first_token.write(to, "vllm:time_to_first_token_seconds", &self.labels)?;
        self.whole.write(to, "vllm:e2e_request_latency_seconds", &self.labels)
    }
}
