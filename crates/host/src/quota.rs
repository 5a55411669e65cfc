//! The CPU quota of pubmark itself, as in a container with half a processor: of its own control
//! group and of those above it, in both versions.
//!
//! Source: the kernel's `scheduler/sched-bwc`, `admin-guide/cgroup-v2`.

use crate::server::accounts::{Hierarchy, hierarchies};
use pubmark_model::record::CpuThrottle;
use pubmark_model::units::Ns;
use serde::{Deserialize, Serialize};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// A quota, and its effect so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quota {
    /// Lowest limit of any of the groups, processors.
    pub cpus: f64,
    /// Periods in which the groups ran.
    pub periods: u64,
    /// Periods in which the quota stopped them.
    pub throttled: u64,
    /// Time for which they were stopped, summed over processors, ns.
    pub waited_ns: Ns,
}

impl Quota {
    /// Reads the quota; `None` if nothing limits this process.
    pub fn now() -> Option<Quota> {
        of(&hierarchies("self"))
    }

    /// Returns its effect since an earlier reading.
    pub fn since(self, earlier: Option<Quota>) -> CpuThrottle {
        let earlier = earlier.unwrap_or_default();
        CpuThrottle {
            cpus: self.cpus,
            periods: self.periods.saturating_sub(earlier.periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns),
        }
    }
}

fn of(hierarchies: &[Hierarchy]) -> Option<Quota> {
    let limiting = hierarchies.iter().filter(|it| it.version == 2 || it.controllers.iter().any(|name| name == "cpu"));
    limiting.flat_map(|it| groups(it).into_iter().filter_map(|folder| read(it.version, &folder))).reduce(
        |one, other| Quota {
            cpus: one.cpus.min(other.cpus),
            periods: one.periods.saturating_add(other.periods),
            throttled: one.throttled.saturating_add(other.throttled),
            waited_ns: one.waited_ns.saturating_add(other.waited_ns),
        },
    )
}

/// Returns a process's own group and those above it.
fn groups(hierarchy: &Hierarchy) -> Vec<PathBuf> {
    hierarchy.own.ancestors().take_while(|folder| folder.starts_with(&hierarchy.mount)).map(Path::to_owned).collect()
}

/// Returns the quota of one group; `None` if it has none.
fn read(version: u8, folder: &Path) -> Option<Quota> {
    let text = |file: &str| read_to_string(folder.join(file)).ok();
    let number = |file: &str| text(file)?.trim().parse::<f64>().ok();
    let (quota, period) = match version {
        2 => {
            let text = text("cpu.max")?;
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
        }
        _ => (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?),
    };
    let stat = text("cpu.stat").unwrap_or_default();
    let count = |name: &str| {
        let find = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok();
        stat.lines().find_map(find)
    };
    let waited_us = || count("throttled_usec").map(|us| us.saturating_mul(1_000));
    (quota > 0.0 && period > 0.0).then(|| Quota {
        cpus: quota / period,
        periods: count("nr_periods").unwrap_or(0),
        throttled: count("nr_throttled").unwrap_or(0),
        waited_ns: count("throttled_time").or_else(waited_us).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(folder: &Path, files: &[(&str, &str)]) {
        std::fs::create_dir_all(folder).unwrap();
        files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
    }

    fn hierarchy(version: u8, controllers: &str, mount: &Path, own: &str) -> Hierarchy {
        let controllers = controllers.split(',').map(str::to_owned).collect();
        Hierarchy { version, controllers, mount: mount.to_owned(), own: mount.join(own) }
    }

    #[test]
    fn the_second_version_is_read_up_to_its_root() {
        let place = tempfile::tempdir().unwrap();
        let stat = "usage_usec 9\nnr_periods 88\nnr_throttled 76\nthrottled_usec 3100000\nnr_bursts 0\n";
        group(&place.path().join("a/b"), &[("cpu.max", "max 100000\n"), ("cpu.stat", "usage_usec 5\n")]);
        group(&place.path().join("a"), &[("cpu.max", "50000 100000\n"), ("cpu.stat", stat)]);
        let own = [hierarchy(2, "rw", place.path(), "a/b")];
        let half = Quota { cpus: 0.5, periods: 88, throttled: 76, waited_ns: 3_100_000_000 };
        assert_eq!(of(&own), Some(half), "the group's own has none, and the one above it has");
        // Like within a container, where its own group is mounted.
        assert_eq!(of(&[hierarchy(2, "rw", &place.path().join("a"), "")]), Some(half));
        assert_eq!(of(&[hierarchy(2, "rw", &place.path().join("a/b"), "")]), None);
        group(
            &place.path().join("a/b"),
            &[("cpu.max", "20000 100000\n"), ("cpu.stat", "nr_periods 2\nnr_throttled 1\n")],
        );
        assert_eq!(of(&own), Some(Quota { cpus: 0.2, periods: 90, throttled: 77, waited_ns: 3_100_000_000 }));
    }

    #[test]
    fn the_first_version_is_read_where_its_controller_is() {
        let place = tempfile::tempdir().unwrap();
        let stat = "nr_periods 40\nnr_throttled 18446744073709551615\nthrottled_time 18446744073709551615\n";
        let files = [("cpu.cfs_quota_us", "150000\n"), ("cpu.cfs_period_us", "100000\n"), ("cpu.stat", stat)];
        group(&place.path().join("docker/x"), &files);
        group(place.path(), &[("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n"), ("cpu.stat", stat)]);
        let own = [hierarchy(1, "rw,cpu,cpuacct", place.path(), "docker/x")];
        let seen = Quota { cpus: 1.5, periods: 40, throttled: u64::MAX, waited_ns: u64::MAX };
        assert_eq!(of(&own), Some(seen));
        assert_eq!(of(&[hierarchy(1, "rw,memory", place.path(), "docker/x")]), None, "another controller's");
        let before = Quota { periods: 30, throttled: 0, waited_ns: u64::MAX, ..seen };
        assert_eq!(seen.since(Some(before)), CpuThrottle { cpus: 1.5, periods: 10, throttled: u64::MAX, waited_ns: 0 });
    }

    #[test]
    fn what_is_no_quota_is_none() {
        let place = tempfile::tempdir().unwrap();
        for text in ["", "max", "max 100000", "0 100000", "50000 0", "-1 100000", "many 100000"] {
            group(place.path(), &[("cpu.max", text)]);
            assert_eq!(of(&[hierarchy(2, "rw", place.path(), "")]), None, "{text}");
        }
        assert_eq!(of(&[]), None);
    }
}
