//! How long something has been there, as `kubectl` prints it: `45s`, `12m`, `3h`, `8d`. Pure.

use jiff::Timestamp;

/// The time from `since` to `now`; 0s if it lies ahead, for two clocks may differ.
pub fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The same for a time as RFC 3339; nothing if it is none.
pub fn age_of(since: &str, now: Timestamp) -> String {
    since.parse().map(|since| age(since, now)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        for (seconds, expected) in
            [(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7_199, "119m"), (7_200, "2h"), (172_800, "2d")]
        {
            let now = Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_secs(seconds);
            assert_eq!(age(Timestamp::UNIX_EPOCH, now), expected);
        }
        assert_eq!(age_of("soon", Timestamp::UNIX_EPOCH), "");
    }
}
