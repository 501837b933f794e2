//! Durations as kubectl writes ages: their two greatest units.

/// A duration for people.
pub fn duration(seconds: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let (unit, name, smaller, smaller_name) = match seconds {
        0..MINUTE => return format!("{seconds}s"),
        MINUTE..HOUR => (MINUTE, 'm', 1, 's'),
        HOUR..DAY => (HOUR, 'h', MINUTE, 'm'),
        _ => (DAY, 'd', HOUR, 'h'),
    };
    match seconds % unit / smaller {
        0 => format!("{}{name}", seconds / unit),
        rest => format!("{}{name}{rest}{smaller_name}", seconds / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn a_duration_has_its_two_greatest_units() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (330, "5m30s"),
            (3600, "1h"),
            (3659, "1h"),
            (5400, "1h30m"),
            (86_400, "1d"),
            (200_000, "2d7h"),
        ] {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
    }
}
