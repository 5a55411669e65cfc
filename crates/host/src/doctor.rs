//! What on this machine would spoil a measurement, and what mends it.

use crate::quota::Quota;
use crate::{clock, ledger, machine};
use nix::sys::resource::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::time::{Duration, Instant};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// Spoils measurements.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkup {
    /// What was looked at.
    pub what: String,
    /// How it is.
    pub severity: Severity,
    /// What was found.
    pub found: String,
    /// The command that mends it, or what to do.
    pub mend: Option<String>,
}

fn good(what: &str, found: impl Into<String>) -> Checkup {
    Checkup { what: what.to_owned(), severity: Severity::Good, found: found.into(), mend: None }
}

fn finding(what: &str, severity: Severity, found: impl Into<String>, mend: &str) -> Checkup {
    Checkup { what: what.to_owned(), severity, found: found.into(), mend: Some(mend.to_owned()) }
}

/// Looks at everything.
pub fn examine() -> Vec<Checkup> {
    vec![
        processors(),
        isolated(),
        governor(),
        virtual_machine(),
        wake_ups(),
        load(),
        steal(),
        clocksource(),
        open_files(),
        ports(),
        congestion(),
        socket_buffers(),
        swap(),
        pages(),
        left_at_servers(),
    ]
}

fn processors() -> Checkup {
    let usable = machine::usable_cpus().len();
    let found = format!("{usable} of {} usable", machine::cores());
    if let Some(quota) = Quota::now().filter(|quota| quota.cpus < usable as f64) {
        let severity = if quota.cpus < 2.0 { Severity::Bad } else { Severity::Note };
        return finding(
            "processors",
            severity,
            format!("{found}, limited to {} by cgroup", quota.cpus),
            "the kernel stops pubmark for the rest of a period when they are used up: give the container or the service \
             whole processors (`docker run --cpuset-cpus`, `CPUQuota=` left out)",
        );
    }
    if usable < 4 {
        return finding(
            "processors",
            Severity::Note,
            found,
            "publisher, subscriber and library threads share them: compare systems with one another, not with published figures",
        );
    }
    good("processors", found)
}

/// Processors on which nothing else runs, and that only who is bound to them uses.
fn isolated() -> Checkup {
    let isolated = machine::isolated_cpus();
    let list = isolated.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    match isolated.len() {
        0 => good("isolated processors", "none"),
        1 => good("isolated processors", format!("{list}: for `pin = \"publishers {list}\"`, say")),
        _ => good("isolated processors", format!("{list}: `pin = \"roles\"` uses them")),
    }
}

fn governor() -> Checkup {
    match machine::line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") {
        None => good("frequency governor", "none to be seen (often so in a virtual machine)"),
        Some(governor) if governor == "performance" => good("frequency governor", governor),
        Some(governor) => finding(
            "frequency governor",
            Severity::Bad,
            governor,
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        ),
    }
}

fn virtual_machine() -> Checkup {
    if machine::is_virtual() {
        return finding(
            "virtual machine",
            Severity::Note,
            "yes: neighbours may take processor time",
            "look at `machine.steal` in the records, and repeat more often",
        );
    }
    good("virtual machine", "no")
}

/// How late a sleeper is awake, as a rule: what a subscriber that sleeps adds
/// to every latency.
fn wake_ups() -> Checkup {
    /// Sleeps, and the length of each.
    const SLEEPS: usize = 40;
    const SLEEP: Duration = Duration::from_micros(500);
    /// Dear from here on.
    const DEAR: Duration = Duration::from_micros(30);
    clock::exact_timers();
    let late = || {
        let began = Instant::now();
        std::thread::sleep(SLEEP);
        began.elapsed().saturating_sub(SLEEP)
    };
    let mut all: Vec<Duration> = (0..SLEEPS).map(|_| late()).collect();
    all.sort_unstable();
    let median = all[SLEEPS / 2];
    let found = format!("{:.0} µs late at the median", median.as_secs_f64() * 1e6);
    if median > DEAR {
        return finding(
            "timer wake-ups",
            Severity::Note,
            found,
            "publishers keep that out of the figures; for subscribers compare receive = \"spin\", or `awake = true` under [run]",
        );
    }
    good("timer wake-ups", found)
}

fn load() -> Checkup {
    let text = machine::line("/proc/loadavg").unwrap_or_default();
    let minute: f64 = text.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or_default();
    let found = format!("{minute} over the last minute");
    if minute > 0.2 * f64::from(machine::cores()) {
        return finding("load", Severity::Bad, found, "end what else is running (`top` shows it), then wait a minute");
    }
    good("load", found)
}

fn steal() -> Checkup {
    let fields: Vec<u64> = read_to_string("/proc/stat")
        .unwrap_or_default()
        .lines()
        .next()
        .map(|line| line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect())
        .unwrap_or_default();
    let (all, stolen) = (fields.iter().take(8).sum::<u64>(), fields.get(7).copied().unwrap_or_default());
    let share = if all > 0 { stolen as f64 / all as f64 * 100.0 } else { 0.0 };
    let found = format!("{share:.2} % since boot");
    if share > 1.0 {
        return finding(
            "stolen time",
            Severity::Bad,
            found,
            "the host is overbooked: use a machine with processors of its own",
        );
    }
    good("stolen time", found)
}

fn clocksource() -> Checkup {
    let source = machine::line("/sys/devices/system/clocksource/clocksource0/current_clocksource").unwrap_or_default();
    if ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"].contains(&source.as_str()) {
        return good("clock source", source);
    }
    finding(
        "clock source",
        Severity::Bad,
        format!("{source}: reading the clock costs a system call"),
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
    )
}

fn open_files() -> Checkup {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default();
    let found = format!("{soft} (may be raised to {hard})");
    if hard < 65_536 {
        return finding(
            "open files a process",
            Severity::Note,
            found,
            "for many thousands of clients raise the hard limit in /etc/security/limits.conf",
        );
    }
    good("open files a process", found)
}

/// The kernel has a tab between the first and the last.
fn ports_in_words(range: &str) -> String {
    range.split_whitespace().collect::<Vec<_>>().join(" to ")
}

fn ports() -> Checkup {
    let range = machine::line("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let range = ports_in_words(&range);
    let first: u32 = range.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(32_768);
    if first < 32_000 {
        return finding(
            "ephemeral ports",
            Severity::Note,
            format!("{range}: they overlap the ports that are bound (10000 to 31999)"),
            "sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'",
        );
    }
    good("ephemeral ports", range)
}

fn congestion() -> Checkup {
    let control = machine::line("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    if control == "bbr" {
        return finding(
            "congestion control",
            Severity::Note,
            "bbr paces TCP on loopback as well",
            "sudo sysctl -w net.ipv4.tcp_congestion_control=cubic",
        );
    }
    good("congestion control", control)
}

fn socket_buffers() -> Checkup {
    let most = machine::line("/proc/sys/net/core/wmem_max").unwrap_or_default();
    if most.parse::<u64>().is_ok_and(|most| most < 4 << 20) {
        return finding(
            "socket buffers",
            Severity::Note,
            format!("programs may ask for {most} bytes: nanomsg, which sets its own, gets less than it asks for"),
            "sudo sysctl -w net.core.wmem_max=8388608 net.core.rmem_max=8388608",
        );
    }
    good("socket buffers", format!("up to {most} bytes"))
}

fn swap() -> Checkup {
    let swaps = read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() > 1 {
        return finding("swap", Severity::Note, "on", "sudo swapoff -a, while measuring");
    }
    good("swap", "off")
}

fn pages() -> Checkup {
    let setting =
        machine::line("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_else(|| "not supported".into());
    if setting.contains("[always]") {
        return finding(
            "huge pages",
            Severity::Note,
            "always: memory figures come in steps of 2 MiB",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        );
    }
    good("huge pages", setting)
}

/// What runs that were killed may have left at servers that stay.
fn left_at_servers() -> Checkup {
    let runs = ledger::abandoned();
    let commands: BTreeSet<String> = runs.iter().map(|run| run.leftovers.command()).collect();
    if runs.is_empty() {
        return good("left at servers", "nothing that is known");
    }
    let commands: Vec<String> = commands.into_iter().collect();
    finding("left at servers", Severity::Note, format!("something of {} runs", runs.len()), &commands.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_ports_is_in_words() {
        assert_eq!(ports_in_words("32768\t60999"), "32768 to 60999");
    }

    #[test]
    fn whatever_is_not_good_says_what_to_do() {
        for checkup in examine() {
            assert_eq!(checkup.severity == Severity::Good, checkup.mend.is_none(), "{checkup:?}");
            assert!(!checkup.found.is_empty(), "{checkup:?}");
        }
    }
}
