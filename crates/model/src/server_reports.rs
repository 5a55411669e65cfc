//! A host's reports on the servers of a run, for its record.

use crate::record::{Deployment, SyncFigures, Usage};
use serde::{Deserialize, Serialize};

/// A host's report on a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Its deployment and limits.
    pub deployment: Deployment,
    /// Its usage in the window.
    pub usage: Option<Usage>,
    /// Its name and version, if its own program reports them.
    pub version: Option<String>,
    /// Reason why it ended before it was stopped.
    pub exit_reason: Option<String>,
    /// Failure of pubmark's own processes beside it, such as its keeper; the run then says nothing
    /// about the server.
    #[serde(default)]
    pub own_failure: Option<String>,
}

impl ServerReport {
    /// Joins the reports of two hosts on members of one server: the place is that of the first.
    #[must_use]
    pub fn and(self, other: ServerReport) -> ServerReport {
        let (one, two) = (self.deployment, other.deployment);
        let mut members = [one.members, two.members].concat();
        members.sort_by_key(|member| member.number);
        let deployment = Deployment {
            oom_kills: one.oom_kills + two.oom_kills,
            out_of_memory: one.out_of_memory.or(two.out_of_memory),
            limit_reached: one.limit_reached.or(two.limit_reached),
            throttled_s: one.throttled_s + two.throttled_s,
            // They need not have been the largest at the same time.
            cgroup_memory_bytes_max: both(one.cgroup_memory_bytes_max, two.cgroup_memory_bytes_max),
            processes: [one.processes, two.processes].concat(),
            members,
            syncs: one.syncs.zip(two.syncs).map(|(one, two)| SyncFigures {
                count: one.count + two.count,
                time_ns: both(one.time_ns, two.time_ns),
            }),
            started_s: one.started_s.zip(two.started_s).map(|(one, two)| one.max(two)),
            ..one
        };
        ServerReport {
            deployment,
            usage: self.usage.zip(other.usage).map(|(one, two)| one.and(two)),
            version: self.version.or(other.version),
            exit_reason: self.exit_reason.or(other.exit_reason),
            own_failure: self.own_failure.or(other.own_failure),
        }
    }
}

impl Usage {
    /// Returns the usage of the processes of two hosts. The spread of the sum over time is unknown.
    #[must_use]
    pub fn and(self, other: Usage) -> Usage {
        Usage {
            cpu_s: self.cpu_s + other.cpu_s,
            cpu_cores: self.cpu_cores + other.cpu_cores,
            user_s: self.user_s + other.user_s,
            rss_bytes_median: self.rss_bytes_median + other.rss_bytes_median,
            rss_bytes_max: self.rss_bytes_max + other.rss_bytes_max,
            uss_bytes_median: self.uss_bytes_median + other.uss_bytes_median,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
            written_bytes: both(self.written_bytes, other.written_bytes),
            busiest_thread_cores: self.busiest_thread_cores.zip(other.busiest_thread_cores).map(|(a, b)| a.max(b)),
            cpu_cores_stddev: None,
        }
    }
}

/// Returns the sum of two counts, if both are known.
fn both(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    Some(one? + two?)
}

/// A host's report on a link's proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// Its usage in the window.
    pub usage: Option<Usage>,
    /// Its name and version.
    pub version: Option<String>,
}
