//! Reads an SLA, and computes how many replicas it needs. Pure.

use crate::api::{LatencyMetric, ModelDeploymentSpec, Sla};
use crate::sla_error::SlaError;
use llm_serving::engine::EngineMetrics;

/// The most replicas that an object may ask for.
const MAX_REPLICAS: u32 = 10_000;

/// An SLA whose fields could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// The most milliseconds of latency, if there is such a target.
    pub max_latency: Option<u64>,
    /// Which latency.
    pub metric: LatencyMetric,
    /// Whether the throughput that is asked for says nothing of replicas, for nobody knows what one takes.
    pub has_unknown_capacity: bool,
}

impl Targets {
    /// The targets of an SLA.
    ///
    /// # Errors
    /// The latency cannot be read, or is nothing.
    pub fn of(sla: Option<&Sla>) -> Result<Self, SlaError> {
        let Some(sla) = sla else { return Ok(Self::default()) };
        match by_throughput(sla) {
            Some(replicas) if replicas > MAX_REPLICAS => {
                let throughput = sla.min_throughput.unwrap_or_default();
                return Err(SlaError::TooManyReplicas { throughput, replicas });
            }
            _ => {}
        }
        let max_latency = match &sla.max_latency {
            None => None,
            Some(text) => Some(milliseconds(text).ok_or_else(|| SlaError::InvalidLatency(text.clone()))?),
        };
        Ok(Self {
            max_latency,
            metric: sla.latency_metric.unwrap_or_default(),
            has_unknown_capacity: sla.min_throughput.is_some() && sla.throughput_per_replica.is_none(),
        })
    }

    /// The name of the engine's metric of this latency; empty if it has none.
    pub fn metric_of<'e>(&self, metrics: &'e EngineMetrics) -> &'e str {
        match self.metric {
            LatencyMetric::TimeToFirstToken => &metrics.time_to_first_token,
            LatencyMetric::InterTokenLatency => &metrics.inter_token_latency,
            LatencyMetric::EndToEndLatency => &metrics.end_to_end_latency,
        }
    }
}

/// How many replicas the throughput takes; none if nobody asks for one, or nobody knows.
fn by_throughput(sla: &Sla) -> Option<u32> {
    let of_one = sla.throughput_per_replica.filter(|of_one| *of_one > 0)?;
    Some(sla.min_throughput?.div_ceil(of_one))
}

/// How many replicas are needed: those that the user asks for, or as many as the throughput takes.
pub fn needed_replicas(spec: &ModelDeploymentSpec) -> i32 {
    let by_throughput = spec.sla.as_ref().and_then(by_throughput).and_then(|replicas| i32::try_from(replicas).ok());
    // Who wants no replica at all wants none for the throughput either.
    if spec.replicas <= 0 { spec.replicas } else { spec.replicas.max(by_throughput.unwrap_or_default()) }
}

/// The milliseconds of `100ms` or `1.5s`; none for anything else, and for nothing at all.
fn milliseconds(text: &str) -> Option<u64> {
    let (number, factor) = match text.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => (text.strip_suffix('s')?, 1000.0),
    };
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value = number.parse::<f64>().ok().filter(|_| is_number)? * factor;
    // At most a day: beyond that it is no latency.
    (1.0..=86_400_000.0).contains(&value).then_some(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_read_in_milliseconds() {
        let cases = [
            ("100ms", Some(100)),
            ("1.5s", Some(1500)),
            ("2s", Some(2000)),
            ("0ms", None),
            ("soon", None),
            ("ms", None),
            ("-1ms", None),
            ("1e3ms", None),
            ("100", None),
            ("9999999s", None),
        ];
        for (text, expected) in cases {
            assert_eq!(milliseconds(text), expected, "{text}");
        }
    }

    #[test]
    fn needed_replicas_follow_from_the_throughput() {
        let spec = |replicas, wanted, of_one| ModelDeploymentSpec {
            replicas,
            sla: Some(Sla { min_throughput: wanted, throughput_per_replica: of_one, ..Sla::default() }),
            ..ModelDeploymentSpec::default()
        };
        let cases = [
            (spec(2, None, None), 2),
            (spec(2, Some(50), Some(10)), 5),
            (spec(2, Some(51), Some(10)), 6),
            (spec(8, Some(50), Some(10)), 8),
            (spec(2, Some(50), None), 2),
            (spec(0, Some(50), Some(10)), 0),
        ];
        for (spec, expected) in cases {
            assert_eq!(needed_replicas(&spec), expected, "{:?}", spec.sla);
        }
    }
}
