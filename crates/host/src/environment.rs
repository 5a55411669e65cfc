//! A host's part of `environment.json`.

use crate::machine::{cores, is_virtual, line, memory_bytes, processor, usable_cpus};
use crate::quota::Quota;
use crate::{devices, doctor};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Describes everything about the machine that can change a figure, including pubmark
/// itself. Results go into `folder`.
pub fn environment(folder: &Path) -> Map<String, Value> {
    let files = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).ok();
    let sysctl = |name: &str| line(&format!("/proc/sys/{name}"));
    let told = json!({
        "pubmark": env!("CARGO_PKG_VERSION"),
        "time": jiff::Timestamp::now().to_string(),
        "kernel": line("/proc/sys/kernel/osrelease"),
        "processor": processor(),
        "cores": cores(),
        "usable_cpus": usable_cpus(),
        "cpu_quota": Quota::now().map(|quota| quota.cpus),
        "virtual": is_virtual(),
        "memory_bytes": memory_bytes(),
        "governor": line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "clocksource": line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "congestion_control": sysctl("net/ipv4/tcp_congestion_control"),
        "wmem_max": sysctl("net/core/wmem_max"),
        "rmem_max": sysctl("net/core/rmem_max"),
        "tcp_wmem": sysctl("net/ipv4/tcp_wmem"),
        "tcp_rmem": sysctl("net/ipv4/tcp_rmem"),
        "transparent_hugepage": line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "open_files": files.map(|(soft, hard)| json!({"soft": soft, "hard": hard})),
        "load_average": line("/proc/loadavg"),
        "java": devices::java(),
        "disk": { "results": devices::disk(folder), "scratch": devices::disk(&std::env::temp_dir()) },
        "network": devices::network(Path::new("/sys/class/net")),
        "doctor": doctor::examine(),
    });
    told.as_object().cloned().unwrap_or_default()
}
