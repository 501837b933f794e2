//! Times in the one form that the status and the host's clock use: `2026-01-31T12:00:00Z`, in UTC and whole seconds. It reads
//! no other form: a library that does would make the plugin twice as big.

use pilothouse_sdk::{Error, clock};

/// A point in time, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(i64);

const SECONDS_PER_DAY: i64 = 86_400;

impl Time {
    /// The time of this call.
    ///
    /// # Errors
    /// [`Error::Clock`] if the host's text is not a time.
    pub fn now() -> Result<Self, Error> {
        let text = clock::now_text();
        Self::parse(&text).ok_or(Error::Clock(text))
    }

    /// Reads a time. Fractions of a second are dropped.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.strip_suffix('Z')?.split_once('T')?;
        let time = rest.split_once('.').map_or(rest, |(whole, _)| whole);
        let [year, month, day] = numbers(date, '-')?;
        let [hour, minute, second] = numbers(time, ':')?;
        let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
        let date = Date { year, month, day };
        is_time.then(|| Self(date.days_since_epoch() * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second))
    }

    /// The time so many seconds later.
    pub fn plus(self, seconds: u32) -> Self {
        Self(self.0 + i64::from(seconds))
    }

    /// The time so many seconds earlier.
    pub fn minus(self, seconds: u32) -> Self {
        Self(self.0 - i64::from(seconds))
    }

    /// How many seconds it is after another time; zero if it is before.
    pub fn since(self, other: Self) -> u32 {
        u32::try_from((self.0 - other.0).max(0)).unwrap_or(u32::MAX)
    }

    /// As text in a status.
    pub fn to_rfc3339(self) -> String {
        let Date { year, month, day } = Date::from_days_since_epoch(self.0.div_euclid(SECONDS_PER_DAY));
        let second = self.0.rem_euclid(SECONDS_PER_DAY);
        format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
    }
}

/// The time so many seconds after another, where both are known.
pub fn after(since: Option<&String>, seconds: Option<u32>) -> Option<Time> {
    Some(Time::parse(since?)?.plus(seconds?))
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    let numbers: Option<Vec<i64>> = text.split(separator).map(number).collect();
    numbers?.try_into().ok()
}

/// A day of the Gregorian calendar.
///
/// The arithmetic counts years from March to February: the leap day is then the last day of a year, and the lengths of the
/// other months follow a pattern of five months.
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

/// Days from March 1 of the year 0 to January 1, 1970.
const EPOCH: i64 = 719_468;

impl Date {
    fn days_since_epoch(&self) -> i64 {
        let (year, month) = if self.month < 3 { (self.year - 1, self.month + 9) } else { (self.year, self.month - 3) };
        days_before_year(year) + days_before_month(month) + self.day - 1 - EPOCH
    }

    fn from_days_since_epoch(days: i64) -> Self {
        let days = days + EPOCH;
        // 400 years have 146,097 days. The estimate is never too small, and at most one year too big.
        let estimate = (days * 400).div_euclid(146_097) + 1;
        let year = (estimate - 2..=estimate).rev().find(|year| days_before_year(*year) <= days).unwrap_or(estimate);
        let day_of_year = days - days_before_year(year);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - days_before_month(month) + 1;
        if month < 10 { Self { year, month: month + 3, day } } else { Self { year: year + 1, month: month - 9, day } }
    }
}

/// Days from March 1 of the year 0 to March 1 of a year.
fn days_before_year(year: i64) -> i64 {
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400)
}

/// Days from March 1 to the first day of a month; March is month 0.
fn days_before_month(month: i64) -> i64 {
    (153 * month + 2) / 5
}

#[cfg(test)]
mod tests {
    use super::Time;
    use k8s_openapi::jiff::Timestamp;

    #[test]
    fn times_are_read_added_and_written() {
        let text = "2026-01-31T23:59:50Z";
        let Some(time) = Time::parse(text) else { return assert_eq!(text, "") };
        assert_eq!(time.to_rfc3339(), text);
        assert_eq!(time.plus(20).to_rfc3339(), "2026-02-01T00:00:10Z");
        assert_eq!((time.plus(20).since(time), time.since(time.plus(20))), (20, 0));
        assert_eq!(Time::parse("2026-01-31T23:59:50.900Z"), Some(time));
    }

    #[test]
    fn dates_agree_with_a_calendar_library() -> Result<(), k8s_openapi::jiff::Error> {
        // In 200 years, steps of a little more than 11 days cover every day of the year and every hour.
        for seconds in (0..6_311_433_600).step_by(987_654) {
            let text = Timestamp::from_second(seconds)?.to_string();
            assert_eq!(Time::parse(&text), Some(Time(seconds)), "{text}");
            assert_eq!(Time(seconds).to_rfc3339(), text);
        }
        for text in ["2000-02-29T00:00:00Z", "2024-02-29T23:59:59Z", "2100-03-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
            let seconds = text.parse::<Timestamp>()?.as_second();
            assert_eq!((Time::parse(text), Time(seconds).to_rfc3339()), (Some(Time(seconds)), text.to_owned()));
        }
        Ok(())
    }

    #[test]
    fn text_in_any_other_form_is_refused() {
        for text in ["", "yesterday", "2026-01-31", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+01:00", "2026-1T0:0Z"]
        {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }
}
