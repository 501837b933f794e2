//! The publishers' own downloads, each checked against the SHA-256 sum that the publisher serves beside it. That
//! guards against damage and mix-ups on the way, not against a publisher gone bad. kwok publishes no sums, so it is
//! never downloaded. A failure is told and left to the build from source, never fatal.

use super::cache::Cache;
use super::run::run;
use crate::{ETCD, Part, Report};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// One file to download.
struct Source {
    url: String,
    sums_url: String,
    /// Where the program lies inside an archive; None when the file is the program itself.
    inside: Option<String>,
}

/// Downloads what it can of `parts`, those of Kubernetes in this version.
pub(crate) async fn fetch(parts: &[Part], kubernetes: &str, cache: &Cache, report: &Report) {
    if env::var("PILOTHOUSE_OFFLINE").is_ok_and(|value| !value.is_empty() && value != "0") {
        return;
    }
    for &part in parts {
        let Some(source) = source(part, kubernetes) else { continue };
        if let Err(error) = fetch_one(part, &source, cache, report).await {
            // The next file would fail likewise, and each try costs seconds.
            report(&format!("no downloads: {error:#}"));
            return;
        }
    }
}

fn source(part: Part, kubernetes: &str) -> Option<Source> {
    let arch = match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        _ => return None,
    };
    match part {
        Part::Kwok => None,
        Part::Etcd => {
            let release = format!("https://github.com/etcd-io/etcd/releases/download/{ETCD}");
            let name = format!("etcd-{ETCD}-linux-{arch}");
            Some(Source {
                url: format!("{release}/{name}.tar.gz"),
                sums_url: format!("{release}/SHA256SUMS"),
                inside: Some(format!("{name}/etcd")),
            })
        }
        Part::ApiServer | Part::ControllerManager | Part::Scheduler => {
            let url = format!("https://dl.k8s.io/release/{kubernetes}/bin/linux/{arch}/{part}");
            Some(Source { sums_url: format!("{url}.sha256"), url, inside: None })
        }
    }
}

async fn fetch_one(part: Part, source: &Source, cache: &Cache, report: &Report) -> Result<()> {
    let sums = curl(&["--max-time", "5", &source.sums_url], &source.sums_url, report).await?;
    let expected = expected_sum(&sums, &source.url).with_context(|| format!("no sum in {}", source.sums_url))?;

    report(&format!("downloading {}", source.url));
    let dir = cache.workspace("download")?;
    let file = dir.join("file");
    let target = file.to_string_lossy().into_owned();
    // Ends a transfer that has stalled, however long a good one takes.
    curl(&["--speed-limit", "1000", "--speed-time", "30", "-o", &target, &source.url], &source.url, report).await?;
    let found = sum_of(&file)?;
    if found != expected {
        bail!("{} has SHA-256 {found}, its publisher says {expected}", source.url);
    }
    let program = match &source.inside {
        Some(inside) => unpack(&file, inside, &dir, report).await?,
        None => file,
    };
    cache.install(part, &program)?;
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

async fn curl(arguments: &[&str], url: &str, report: &Report) -> Result<String> {
    let mut command = Command::new("curl");
    command.args(["--fail", "--silent", "--show-error", "--location", "--connect-timeout", "3"]).args(arguments);
    run(&mut command, &format!("downloading {url}"), report).await
}

async fn unpack(archive: &Path, inside: &str, dir: &Path, report: &Report) -> Result<PathBuf> {
    let mut command = Command::new("tar");
    command.arg("-xzf").arg(archive).arg("-C").arg(dir).arg(inside);
    run(&mut command, "unpacking", report).await?;
    Ok(dir.join(inside))
}

/// Either the file holds nothing but the sum, or one line per file: sum, blanks, name.
fn expected_sum(sums: &str, url: &str) -> Option<String> {
    let name = url.rsplit('/').next()?;
    let mut lines = sums.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let sum = lines.find_map(|words| match words[..] {
        [sum] => Some(sum.to_lowercase()),
        [sum, of] if of.trim_start_matches('*') == name => Some(sum.to_lowercase()),
        _ => None,
    })?;
    (sum.len() == 64 && sum.chars().all(|c| c.is_ascii_hexdigit())).then_some(sum)
}

fn sum_of(file: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(file)?, &mut hash)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A publisher on the local disk: an archive with etcd in it, beside a file of sums.
    fn publish(dir: &Path, sum: impl Fn(&Path) -> Result<String>) -> Result<Source> {
        std::fs::create_dir(dir.join("v1"))?;
        std::fs::write(dir.join("v1/etcd"), "the program")?;
        let archive = dir.join("etcd.tar.gz");
        let status =
            std::process::Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(dir).arg("v1/etcd").status()?;
        anyhow::ensure!(status.success());
        std::fs::write(dir.join("sums"), format!("{}  etcd.tar.gz\n", sum(&archive)?))?;
        let url = |name: &str| format!("file://{}", dir.join(name).display());
        Ok(Source { url: url("etcd.tar.gz"), sums_url: url("sums"), inside: Some("v1/etcd".into()) })
    }

    #[tokio::test]
    async fn takes_only_what_has_the_published_sum() -> Result<()> {
        let (good, bad, dir) = (tempfile::tempdir()?, tempfile::tempdir()?, tempfile::tempdir()?);
        let cache = Cache::at(dir.path().join("cache"))?;

        let source = publish(bad.path(), |_| Ok("0".repeat(64)))?;
        let silent: Report = std::sync::Arc::new(crate::silent);
        let refused = fetch_one(Part::Etcd, &source, &cache, &silent).await;
        assert!(refused.is_err_and(|error| error.to_string().contains("its publisher says")));
        assert!(!cache.path(Part::Etcd).exists());

        let source = publish(good.path(), sum_of)?;
        fetch_one(Part::Etcd, &source, &cache, &silent).await?;
        assert_eq!(std::fs::read_to_string(cache.path(Part::Etcd))?, "the program");
        Ok(())
    }

    #[test]
    fn finds_the_sum_in_both_kinds_of_file() {
        let (a, b) = ("a".repeat(64), "B".repeat(64));
        let url = "https://example.invalid/x/tool.tar.gz";
        assert_eq!(expected_sum(&format!("{a}\n"), url), Some(a.clone()));
        assert_eq!(expected_sum(&format!("{a}  other\n{b}  tool.tar.gz\n"), url), Some(b.to_lowercase()));
        assert_eq!(expected_sum(&format!("{a}  other\n"), url), None);
        assert_eq!(expected_sum("<html>not found</html>", url), None);
    }
}
