//! Points in time as the status and the host's clock hold them: `2026-01-31T12:00:00Z`, in UTC and whole seconds. A library
//! that knows all other forms would make the plugin twice as big.

use pilothouse_sdk::{Error, clock};

/// A point in time, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(i64);

const DAY: i64 = 86_400;

impl Time {
    /// The time of this call.
    ///
    /// # Errors
    /// [`Error::Clock`] if the host's text is not a time.
    pub fn now() -> Result<Self, Error> {
        let text = clock::now_text();
        Self::parse(&text).ok_or(Error::Clock(text))
    }

    /// The time that a text is. Fractions of a second are left out.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.strip_suffix('Z')?.split_once('T')?;
        let time = rest.split_once('.').map_or(rest, |(whole, _)| whole);
        let [year, month, day] = numbers(date, '-')?;
        let [hour, minute, second] = numbers(time, ':')?;
        let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
        is_time.then(|| Self(days(year, month, day) * DAY + hour * 3600 + minute * 60 + second))
    }

    /// So many seconds later.
    pub fn plus(self, seconds: u32) -> Self {
        Self(self.0 + i64::from(seconds))
    }

    /// How many seconds it is after another time; zero if it is before.
    pub fn since(self, other: Self) -> u32 {
        u32::try_from((self.0 - other.0).max(0)).unwrap_or(u32::MAX)
    }

    /// As it is in a status.
    pub fn text(self) -> String {
        let (year, month, day) = date(self.0.div_euclid(DAY));
        let second = self.0.rem_euclid(DAY);
        format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
    }
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    let numbers: Option<Vec<i64>> = text.split(separator).map(number).collect();
    numbers?.try_into().ok()
}

/// Days of the years that end in February and come before one, since the year 0: leap days are last in such a year.
fn days_before(year: i64) -> i64 {
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400)
}

/// Days before a month in a year that begins in March; March is 0.
fn days_before_month(month: i64) -> i64 {
    (153 * month + 2) / 5
}

/// Days from the first of March of the year 0 to the first of January 1970.
const EPOCH: i64 = 719_468;

fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    days_before(year) + days_before_month(month) + day - 1 - EPOCH
}

fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    // Never too small, and at most one too big.
    let guess = (days * 400).div_euclid(146_097) + 1;
    let year = (guess - 2..=guess).rev().find(|year| days_before(*year) <= days).unwrap_or(guess);
    let rest = days - days_before(year);
    let month = (5 * rest + 2) / 153;
    let day = rest - days_before_month(month) + 1;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::Time;
    use k8s_openapi::jiff::Timestamp;

    #[test]
    fn counts_in_whole_seconds() {
        let text = "2026-01-31T23:59:50Z";
        let Some(time) = Time::parse(text) else { return assert_eq!(text, "") };
        assert_eq!(time.text(), text);
        assert_eq!(time.plus(20).text(), "2026-02-01T00:00:10Z");
        assert_eq!((time.plus(20).since(time), time.since(time.plus(20))), (20, 0));
        assert_eq!(Time::parse("2026-01-31T23:59:50.900Z"), Some(time));
    }

    #[test]
    fn agrees_with_the_calendar() -> Result<(), k8s_openapi::jiff::Error> {
        // Steps of a little more than 11 days meet every day of the year and every hour in 200 years.
        for seconds in (0..6_311_433_600).step_by(987_654) {
            let text = Timestamp::from_second(seconds)?.to_string();
            assert_eq!(Time::parse(&text), Some(Time(seconds)), "{text}");
            assert_eq!(Time(seconds).text(), text);
        }
        for text in ["2000-02-29T00:00:00Z", "2024-02-29T23:59:59Z", "2100-03-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
            let seconds = text.parse::<Timestamp>()?.as_second();
            assert_eq!((Time::parse(text), Time(seconds).text()), (Some(Time(seconds)), text.to_owned()));
        }
        Ok(())
    }

    #[test]
    fn what_is_no_such_time_is_none() {
        for text in ["", "yesterday", "2026-01-31", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+01:00", "2026-1T0:0Z"]
        {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }
}
