//! The metrics of the process, under the names that all Prometheus clients use. Read from `/proc` at each scrape; a value that
//! cannot be read is left out.

use std::fs;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

#[derive(Debug)]
pub(super) struct ProcessCollector;

/// The fields of `/proc/self/stat` that are exposed.
#[derive(Debug, PartialEq)]
struct Stat {
    threads: u64,
    /// The start of the process, in clock ticks since boot.
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut show = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        // Not from `/proc`, which has a resolution of only a hundredth of a second.
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = ConstCounter::new(cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9);
        show("process_cpu_seconds", "Time on processors, user and system.", &cpu)?;
        if let Some(stat) = read("/proc/self/stat").as_deref().and_then(Stat::parse) {
            let resident = ConstGauge::new(stat.resident_pages * page_size() as u64);
            show("process_resident_memory_bytes", "Memory in use.", &resident)?;
            let virtual_bytes = ConstGauge::new(stat.virtual_bytes);
            show("process_virtual_memory_bytes", "Address space in use.", &virtual_bytes)?;
            show("process_threads", "Threads.", &ConstGauge::new(stat.threads))?;
            if let Some(boot) = read("/proc/stat").as_deref().and_then(boot_time) {
                let start = ConstGauge::new(boot as f64 + stat.start_ticks as f64 / clock_ticks_per_second() as f64);
                show("process_start_time_seconds", "When the process began, in seconds since 1970.", &start)?;
            }
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            show("process_open_fds", "Open file descriptors.", &ConstGauge::new(open.count()))?;
        }
        let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        show("process_max_fds", "The most file descriptors that may be open.", &ConstGauge::new(most))
    }
}

impl Stat {
    /// Parses a line of `/proc/self/stat`. The name of the program may contain anything, so fields are counted from the bracket
    /// that ends it.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<_> = text.rsplit_once(')')?.1.split_whitespace().collect();
        // Index 0 is field 3 of proc(5), the state of the process.
        let number = |field: usize| fields.get(field)?.parse::<u64>().ok();
        Some(Self {
            threads: number(17)?,
            start_ticks: number(19)?,
            virtual_bytes: number(20)?,
            resident_pages: number(21)?,
        })
    }
}

/// The time of boot, in seconds since 1970.
fn boot_time(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_the_program_is_called() {
        let line = "7 (a ) b) S 1 7 7 0 -1 4194304 1 2 3 4 250 50 6 7 20 0 9 0 1234 4096000 500 18446744073709551615";
        let expected = Stat { threads: 9, start_ticks: 1234, virtual_bytes: 4_096_000, resident_pages: 500 };
        assert_eq!(Stat::parse(line), Some(expected));
        assert_eq!(Stat::parse("7 (a) S 1"), None);
        assert_eq!(boot_time("cpu 1 2\nbtime 1700000000\nprocesses 3\n"), Some(1_700_000_000));
    }
}
