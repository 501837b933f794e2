//! What the version of a plugin at work does: its calls and their time, by the metrics of the host. Counts nothing itself and prints nothing.

/// The calls of a plugin since the host began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Calls {
    number: f64,
    /// Of all of them, in seconds.
    time: f64,
}

impl Calls {
    /// Those of a plugin, by the host's metrics in the classic text format.
    pub(super) fn of(plugin: &str, metrics: &str) -> Self {
        let value = |suffix: &str| {
            let begin = format!("pilothouse_plugin_call_seconds_{suffix}{{plugin=\"{plugin}\"}} ");
            metrics.lines().find_map(|line| line.strip_prefix(&begin)?.parse().ok()).unwrap_or_default()
        };
        Self { number: value("count"), time: value("sum") }
    }
}

/// The calls of a plugin that were told of.
#[derive(Default)]
pub(super) struct CallsTold {
    told: Calls,
    seen: Calls,
}

impl CallsTold {
    /// What is to be told of the calls so far: those since the last time, once no further ones come. None if there are none, or if they go on.
    pub(super) fn news(&mut self, now: Calls) -> Option<String> {
        let is_at_rest = now == std::mem::replace(&mut self.seen, now);
        let (number, time) = (now.number - self.told.number, now.time - self.told.time);
        if !is_at_rest || number < 1.0 {
            return None;
        }
        self.told = now;
        let plural = if number > 1.0 { "s" } else { "" };
        Some(format!("{number} call{plural}, {:.2} ms each", time / number * 1e3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_once_no_further_ones_come() {
        let mut told = CallsTold::default();
        for (calls, expected) in [
            (0.0, None),
            (3.0, None),
            (4.0, None),
            (4.0, Some("4 calls, 2.00 ms each")),
            (4.0, None),
            (5.0, None),
            (5.0, Some("1 call, 2.00 ms each")),
        ] {
            let now = Calls { number: calls, time: calls * 0.002 };
            assert_eq!(told.news(now).as_deref(), expected, "{calls}");
        }
    }

    #[test]
    fn the_calls_of_a_plugin_are_read_from_the_metrics() {
        let metrics = "# TYPE pilothouse_plugin_call_seconds histogram
pilothouse_plugin_call_seconds_sum{plugin=\"web\"} 0.25
pilothouse_plugin_call_seconds_count{plugin=\"web\"} 4
pilothouse_plugin_call_seconds_count{plugin=\"other\"} 7
";
        assert_eq!(Calls::of("web", metrics), Calls { number: 4.0, time: 0.25 });
        assert_eq!(Calls::of("missing", metrics), Calls::default());
    }
}
