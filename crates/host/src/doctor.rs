//! Checks this machine for causes of bad measurements, with advice.

use crate::ledger::{self, EndedRun};
use crate::quota::Quota;
use crate::{clock, machine};
use nix::sys::resource::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::time::{Duration, Instant};

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As it should be.
    Good,
    /// Worth knowing.
    Note,
    /// Disturbs measurements.
    Bad,
}

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorCheck {
    /// Subject of the check.
    pub what: String,
    /// Severity of the finding.
    pub severity: Severity,
    /// The finding.
    pub found: String,
    /// The command that fixes it, or advice.
    pub mend: Option<String>,
}

fn good(what: &str, found: impl Into<String>) -> DoctorCheck {
    DoctorCheck { what: what.to_owned(), severity: Severity::Good, found: found.into(), mend: None }
}

fn finding(what: &str, severity: Severity, found: impl Into<String>, mend: &str) -> DoctorCheck {
    DoctorCheck { what: what.to_owned(), severity, found: found.into(), mend: Some(mend.to_owned()) }
}

/// Runs all checks.
pub fn examine() -> Vec<DoctorCheck> {
    vec![
        processors(machine::usable_cpus().len(), machine::cores(), Quota::now()),
        isolated(&machine::isolated_cpus()),
        governor(machine::line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        virtual_machine(machine::is_virtual()),
        wake_ups(wake_up()),
        load(&line("/proc/loadavg"), machine::cores()),
        steal(&read_to_string("/proc/stat").unwrap_or_default()),
        clocksource(line("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        open_files(getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default()),
        ports(&line("/proc/sys/net/ipv4/ip_local_port_range")),
        congestion(line("/proc/sys/net/ipv4/tcp_congestion_control")),
        socket_buffers(&line("/proc/sys/net/core/wmem_max")),
        swap(&read_to_string("/proc/swaps").unwrap_or_default()),
        pages(machine::line("/sys/kernel/mm/transparent_hugepage/enabled")),
        left_at_servers(&ledger::abandoned()),
    ]
}

fn line(path: &str) -> String {
    machine::line(path).unwrap_or_default()
}

fn processors(usable: usize, cores: u32, quota: Option<Quota>) -> DoctorCheck {
    let found = format!("{usable} of {cores} usable");
    if let Some(quota) = quota.filter(|quota| quota.cpus < usable as f64) {
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

/// Checks for processors on which nothing else runs, and which only processes bound to
/// them use.
fn isolated(isolated: &[usize]) -> DoctorCheck {
    let list = isolated.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    match isolated.len() {
        0 => good("isolated processors", "none"),
        1 => good("isolated processors", format!("{list}: for `pin = \"publishers {list}\"`, say")),
        _ => good("isolated processors", format!("{list}: `pin = \"roles\"` uses them")),
    }
}

fn governor(governor: Option<String>) -> DoctorCheck {
    match governor {
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

fn virtual_machine(is_virtual: bool) -> DoctorCheck {
    if is_virtual {
        return finding(
            "virtual machine",
            Severity::Note,
            "yes: neighbours may take processor time",
            "look at `machine.steal` in the records, and repeat more often",
        );
    }
    good("virtual machine", "no")
}

/// Measures the median wake-up delay of a sleeping thread.
fn wake_up() -> Duration {
    /// Number of sleeps, and the length of each.
    const SLEEPS: usize = 40;
    const SLEEP: Duration = Duration::from_micros(500);
    clock::exact_timers();
    let late = || {
        let began = Instant::now();
        std::thread::sleep(SLEEP);
        began.elapsed().saturating_sub(SLEEP)
    };
    let mut all: Vec<Duration> = (0..SLEEPS).map(|_| late()).collect();
    all.sort_unstable();
    all[SLEEPS / 2]
}

/// Judges the wake-up delay of a sleeping subscriber, which is added to every latency.
fn wake_ups(median: Duration) -> DoctorCheck {
    /// Costly from here on.
    const DEAR: Duration = Duration::from_micros(30);
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

fn load(text: &str, cores: u32) -> DoctorCheck {
    let minute: f64 = text.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or_default();
    let found = format!("{minute} over the last minute");
    if minute > 0.2 * f64::from(cores) {
        return finding("load", Severity::Bad, found, "end what else is running (`top` shows it), then wait a minute");
    }
    good("load", found)
}

fn steal(stat: &str) -> DoctorCheck {
    let fields: Vec<u64> = stat
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

fn clocksource(source: String) -> DoctorCheck {
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

fn open_files((soft, hard): (u64, u64)) -> DoctorCheck {
    let found = if soft < hard { format!("{soft} (may be raised to {hard})") } else { soft.to_string() };
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

/// The kernel writes a tab between the first and the last port.
fn ports_in_words(range: &str) -> String {
    range.split_whitespace().collect::<Vec<_>>().join(" to ")
}

fn ports(range: &str) -> DoctorCheck {
    let range = ports_in_words(range);
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

fn congestion(control: String) -> DoctorCheck {
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

fn socket_buffers(most: &str) -> DoctorCheck {
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

fn swap(swaps: &str) -> DoctorCheck {
    if swaps.lines().count() > 1 {
        return finding("swap", Severity::Note, "on", "sudo swapoff -a, while measuring");
    }
    good("swap", "off")
}

fn pages(setting: Option<String>) -> DoctorCheck {
    let setting = setting.unwrap_or_else(|| "not supported".into());
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

/// Reports what killed runs may have left at servers that stay.
fn left_at_servers(runs: &[EndedRun]) -> DoctorCheck {
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
    fn each_finding_is_judged_at_its_bound_and_says_what_to_do() {
        use Severity::{Bad, Good, Note};
        let quota = |cpus| Some(Quota { cpus, ..Quota::default() });
        let us = Duration::from_micros;
        let text = str::to_owned;
        // The eighth figure is the stolen part of a hundred ticks.
        let stolen = |ticks: u64| steal(&format!("cpu {} 0 0 0 0 0 0 {ticks} 7 7\ncpu0 1\n", 1_000 - ticks));
        for (found, severity, says) in [
            (processors(4, 8, None), Good, "4 of 8 usable"),
            (processors(3, 8, None), Note, "3 of 8 usable"),
            (processors(4, 4, quota(4.0)), Good, "4 of 4 usable"),
            (processors(4, 4, quota(2.0)), Note, "limited to 2 by cgroup"),
            (processors(4, 4, quota(1.5)), Bad, "limited to 1.5 by cgroup"),
            (isolated(&[]), Good, "none"),
            (isolated(&[3]), Good, "publishers 3"),
            (isolated(&[2, 3]), Good, "2, 3: `pin = \"roles\"`"),
            (governor(None), Good, "none to be seen"),
            (governor(Some(text("performance"))), Good, "performance"),
            (governor(Some(text("powersave"))), Bad, "powersave"),
            (virtual_machine(false), Good, "no"),
            (virtual_machine(true), Note, "yes"),
            (wake_ups(us(30)), Good, "30 µs late"),
            (wake_ups(us(31)), Note, "31 µs late"),
            (load("0.80 0.1 0.1 1/100 7", 4), Good, "0.8 over"),
            (load("0.81 0.1 0.1 1/100 7", 4), Bad, "0.81 over"),
            (load("", 4), Good, "0 over"),
            (stolen(10), Good, "1.00 %"),
            (stolen(11), Bad, "1.10 %"),
            (steal(""), Good, "0.00 %"),
            (clocksource(text("tsc")), Good, "tsc"),
            (clocksource(text("hpet")), Bad, "hpet: reading the clock"),
            (open_files((1_024, 65_536)), Good, "1024 (may be raised to 65536)"),
            (open_files((1_024, 65_535)), Note, "65535"),
            (open_files((65_536, 65_536)), Good, "65536"),
            (ports("32000\t60999"), Good, "32000 to 60999"),
            (ports("31999\t60999"), Note, "31999 to 60999: they overlap"),
            (congestion(text("cubic")), Good, "cubic"),
            (congestion(text("bbr")), Note, "bbr"),
            (socket_buffers("4194304"), Good, "up to 4194304"),
            (socket_buffers("4194303"), Note, "4194303"),
            (swap("Filename Type Size\n"), Good, "off"),
            (swap("Filename Type Size\n/swap file 1\n"), Note, "on"),
            (pages(None), Good, "not supported"),
            (pages(Some(text("always [madvise] never"))), Good, "[madvise]"),
            (pages(Some(text("[always] madvise never"))), Note, "always"),
            (left_at_servers(&[]), Good, "nothing"),
        ] {
            assert_eq!(found.severity, severity, "{found:?}");
            assert!(found.found.contains(says), "{says}: {found:?}");
            assert_eq!(found.mend.is_some(), severity != Good, "{found:?}");
        }
    }

    #[test]
    fn everything_is_looked_at_once() {
        let looked: Vec<String> = examine().into_iter().map(|checkup| checkup.what).collect();
        assert_eq!(looked.iter().collect::<BTreeSet<_>>().len(), looked.len(), "{looked:?}");
        assert_eq!(looked.len(), 15);
    }
}
