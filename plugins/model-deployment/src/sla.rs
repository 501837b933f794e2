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
            Some(text) => Some(milliseconds(text)?),
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

/// The most milliseconds of a latency: those of a day.
const MAX_MILLISECONDS: u64 = 86_400_000;

/// The milliseconds of `100ms` or `1.5s`.
fn milliseconds(text: &str) -> Result<u64, SlaError> {
    let invalid = || SlaError::InvalidLatency(text.to_owned());
    let micros = microseconds(text).ok_or_else(invalid)?;
    if !micros.is_multiple_of(1000) {
        return Err(SlaError::TooFine(text.to_owned()));
    }
    Some(micros / 1000).filter(|millis| (1..=MAX_MILLISECONDS).contains(millis)).ok_or_else(invalid)
}

/// The microseconds of a latency, of which a part counts as one more; none for what is no latency.
fn microseconds(text: &str) -> Option<u64> {
    let (number, decimals) = match text.strip_suffix("ms") {
        Some(number) => (number, 3),
        None => (text.strip_suffix('s')?, 6),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let (kept, cut) = fraction.split_at(fraction.len().min(decimals));
    let is_finer = cut.bytes().any(|digit| digit != b'0');
    format!("{whole}{kept:0<decimals$}").parse::<u64>().ok()?.checked_add(u64::from(is_finer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_read_in_milliseconds() {
        let cases = [
            ("100ms", Some(100)),
            ("100.0ms", Some(100)),
            ("1.5s", Some(1500)),
            ("1.2345000s", None),
            ("0.001000s", Some(1)),
            ("2s", Some(2000)),
            ("86400s", Some(86_400_000)),
            ("86401s", None),
            ("99999999999999999999ms", None),
            ("1.ms", None),
            (".5s", None),
            ("0ms", None),
            ("soon", None),
            ("ms", None),
            ("-1ms", None),
            ("1e3ms", None),
            ("100", None),
            ("9999999s", None),
        ];
        for (text, expected) in cases {
            assert_eq!(milliseconds(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_latency_finer_than_a_millisecond_is_refused_and_not_rounded() {
        for text in ["1.5ms", "0.5ms", "1.0005s", "0.0001s", "2.0000001ms", "100.00000000000000000001ms"] {
            assert_eq!(milliseconds(text), Err(SlaError::TooFine(text.to_owned())), "{text}");
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
