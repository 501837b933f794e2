//! `pilothouse bench`: measures what calls of a plugin cost, without a cluster. Compares no answers; that is the work of `test`.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use anyhow::{Context, bail, ensure};
use clap::Args;
use pilothouse_engine::Plugin;
use pilothouse_offline::{
    cases::{self, Case},
    reconcile,
};
use serde_json::{Value, json};

use crate::{
    cache_dir::CacheDir,
    duration::duration,
    logging::Logging,
    offline::{self, Output},
    output,
};

/// Measure what calls of a plugin cost: time, peak memory, and the bytes of the answer.
///
/// Each call has a fresh instance and the host's limits, as in the host; one that waits from the call before, where the manifest lets an
/// instance answer several calls (`callsPerInstance`). Of a case with steps, it is the call for the first one.
#[derive(Args)]
pub struct Bench {
    /// The plugin.
    plugin: PathBuf,
    /// File with one or more test cases.
    case: PathBuf,
    /// How many calls are measured, after a tenth as many that are not.
    #[arg(long, default_value = "1000", value_parser = clap::value_parser!(u32).range(1..))]
    calls: u32,
    /// Fail if a case needs more, such as `p99=5ms,memory=16Mi,output=64Ki`. Times are p50 and p99.
    #[arg(long, value_name = "WHAT=MOST", value_delimiter = ',')]
    budget: Vec<Budget>,
    /// Print as.
    #[arg(long, short, default_value = "text")]
    output: Output,
    #[command(flatten)]
    cache_dir: CacheDir,
    #[command(flatten)]
    logging: Logging,
}

/// The most that something may be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Budget {
    P50(Duration),
    P99(Duration),
    Memory(usize),
    Output(usize),
}

/// The cost of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    p50: Duration,
    p99: Duration,
    memory: usize,
    output: usize,
}

impl Bench {
    /// Runs the command.
    ///
    /// # Errors
    /// If the plugin or a case cannot be used, the plugin gives no answer, or a case needs more than its budget.
    pub fn execute(&self) -> anyhow::Result<()> {
        self.logging.start()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("failed to start")?;
        runtime.block_on(self.run())
    }

    async fn run(&self) -> anyhow::Result<()> {
        let cases = cases::read(&self.case)?;
        let config = cases.first().map(|case| &case.inputs.config);
        let plugin = offline::load_configured(&self.plugin, &self.cache_dir, config).await?;
        let mut costs = Vec::new();
        for case in &cases {
            let cost = self.measure(&plugin, case).await.with_context(|| format!("{}: {}", case.place, case.name))?;
            if self.output == Output::Text {
                output::print_line(format_args!("{}: {cost}", case.name))?;
            }
            costs.push((case, cost));
        }
        if self.output == Output::Json {
            let cases: Vec<_> = costs.iter().map(|(case, cost)| cost.json(&case.name)).collect();
            output::print_line(json!({"calls": self.calls, "cases": cases}))?;
        }
        let over: Vec<_> = costs
            .iter()
            .flat_map(|(case, cost)| {
                self.budget.iter().filter_map(|budget| Some(format!("{}: {}", case.name, budget.excess(cost)?)))
            })
            .collect();
        ensure!(over.is_empty(), "over budget: {}", over.join("; "));
        Ok(())
    }

    async fn measure(&self, plugin: &Plugin, case: &Case) -> anyhow::Result<Cost> {
        let (mut times, mut memory, mut output) = (Vec::new(), 0, 0);
        let unmeasured = self.calls / 10;
        for number in 0..unmeasured + self.calls {
            let round = reconcile(plugin, &case.inputs).await?;
            if let Err(why) = round.answer {
                bail!("there is no answer to measure: {why}");
            }
            if number >= unmeasured {
                times.push(round.usage.duration);
                memory = memory.max(round.usage.memory_peak);
                output = output.max(round.output_bytes);
            }
        }
        times.sort();
        Ok(Cost { p50: percentile(&times, 50), p99: percentile(&times, 99), memory, output })
    }
}

/// The smallest time that so many of a hundred do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default()
}

impl Cost {
    fn json(&self, name: &str) -> Value {
        json!({
            "name": name, "p50Microseconds": self.p50.as_secs_f64() * 1e6, "p99Microseconds": self.p99.as_secs_f64() * 1e6,
            "memoryBytes": self.memory, "outputBytes": self.output,
        })
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { p50, p99, memory, output } = self;
        write!(f, "p50 {p50:.0?}, p99 {p99:.0?}, memory {} KiB, output {output} bytes", memory.div_ceil(1024))
    }
}

impl Budget {
    /// What of a cost is more than this, in words; none if nothing is.
    fn excess(self, cost: &Cost) -> Option<String> {
        let time =
            |name, is: Duration, most| (is > most).then(|| format!("{name} is {is:.0?}, at most {most:?} is allowed"));
        let bytes =
            |name, is: usize, most| (is > most).then(|| format!("{name} is {is} bytes, at most {most} are allowed"));
        match self {
            Self::P50(most) => time("p50", cost.p50, most),
            Self::P99(most) => time("p99", cost.p99, most),
            Self::Memory(most) => bytes("memory", cost.memory, most),
            Self::Output(most) => bytes("output", cost.output, most),
        }
    }
}

impl FromStr for Budget {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (what, most) = text.split_once('=').context("it is written WHAT=MOST, such as p99=5ms")?;
        let time = || duration(most).ok().with_context(|| format!("'{most}' is not a time such as 5ms"));
        let bytes = || bytes(most).with_context(|| format!("'{most}' is not a number of bytes such as 16Mi"));
        match what {
            "p50" => time().map(Self::P50),
            "p99" => time().map(Self::P99),
            "memory" => bytes().map(Self::Memory),
            "output" => bytes().map(Self::Output),
            _ => bail!("'{what}' is none of p50, p99, memory and output"),
        }
    }
}

/// A number of bytes, with a suffix of Kubernetes' quantities.
fn bytes(text: &str) -> Option<usize> {
    let suffixes = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("", 1)];
    suffixes.iter().find_map(|(suffix, unit)| text.strip_suffix(suffix)?.parse::<usize>().ok()?.checked_mul(*unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let times: Vec<_> = (1..=200).map(Duration::from_micros).collect();
        for (times, percent, expected) in
            [(&times[..], 50, 100), (&times[..], 99, 198), (&times[..1], 50, 1), (&times[..1], 99, 1), (&[], 99, 0)]
        {
            assert_eq!(percentile(times, percent), Duration::from_micros(expected));
        }
    }

    #[test]
    fn a_budget_says_what_exceeds_it() {
        let ms = Duration::from_millis;
        let cost = Cost { p50: ms(1), p99: ms(3), memory: 2 << 20, output: 500 };
        for (text, excess) in [
            ("p50=1ms", Ok(None)),
            ("p99=2ms", Ok(Some("p99 is 3ms, at most 2ms is allowed"))),
            ("p50=999us", Ok(Some("p50 is 1ms, at most 999µs is allowed"))),
            ("memory=2Mi", Ok(None)),
            ("memory=2047Ki", Ok(Some("memory is 2097152 bytes, at most 2096128 are allowed"))),
            ("output=499", Ok(Some("output is 500 bytes, at most 499 are allowed"))),
            ("p99", Err("it is written WHAT=MOST, such as p99=5ms")),
            ("p99=soon", Err("'soon' is not a time such as 5ms")),
            ("memory=much", Err("'much' is not a number of bytes such as 16Mi")),
            ("p95=1s", Err("'p95' is none of p50, p99, memory and output")),
        ] {
            let found = text.parse::<Budget>().map(|budget| budget.excess(&cost)).map_err(|error| error.to_string());
            assert_eq!(found, excess.map(|why: Option<&str>| why.map(str::to_owned)).map_err(str::to_owned), "{text}");
        }
    }
}
