//! Devices and software of the machine that can affect figures: disks of the folders,
//! network cards, and the Java that brokers run on.

use serde_json::{Value, json};
use std::fs::{read_link, read_to_string};
use std::path::{Path, PathBuf};

/// The mount that contains a path.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    /// `MAJOR:MINOR`; the major number is 0 for file systems without a device.
    number: String,
    file_system: String,
    source: String,
}

/// Finds the mount in the text of `/proc/self/mountinfo` (proc(5)): the last one with the
/// longest mount point that the path begins with.
fn mount_of(mountinfo: &str, path: &Path) -> Option<Mount> {
    let mut found: Option<(usize, Mount)> = None;
    for line in mountinfo.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let (left, right): (Vec<&str>, Vec<&str>) = (left.split(' ').collect(), right.split(' ').collect());
        let (Some(number), Some(point), [file_system, source, ..]) = (left.get(2), left.get(4), right.as_slice())
        else {
            continue;
        };
        // A blank in a name is escaped like this.
        let point = PathBuf::from(point.replace("\\040", " "));
        let depth = point.components().count();
        if path.starts_with(&point) && found.as_ref().is_none_or(|(deepest, _)| depth >= *deepest) {
            let mount = Mount {
                number: (*number).to_owned(),
                file_system: (*file_system).to_owned(),
                source: (*source).to_owned(),
            };
            found = Some((depth, mount));
        }
    }
    found.map(|(_, mount)| mount)
}

/// Returns `rotating`, `solid-state` or `memory`; `None` if unknown.
fn kind(mount: &Mount, block: &Path) -> Option<&'static str> {
    if ["tmpfs", "ramfs"].contains(&mount.file_system.as_str()) {
        return Some("memory");
    }
    let device = block.join(&mount.number);
    // A partition has the queue of its disk.
    let queues = [device.join("queue/rotational"), device.join("../queue/rotational")];
    match queues.iter().find_map(|queue| read_to_string(queue).ok())?.trim() {
        "0" => Some("solid-state"),
        "1" => Some("rotating"),
        _ => None,
    }
}

/// Describes the disk of a folder, which need not exist yet.
pub fn disk(folder: &Path) -> Value {
    let absolute = std::path::absolute(folder).unwrap_or_default();
    let there = absolute.ancestors().find_map(|path| path.canonicalize().ok());
    let mountinfo = read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let Some(mount) = there.and_then(|path| mount_of(&mountinfo, &path)) else { return Value::Null };
    json!({
        "device": mount.source,
        "kind": kind(&mount, Path::new("/sys/dev/block")),
        "file_system": mount.file_system,
    })
}

/// Lists every network interface except the loopback, by name, from `/sys/class/net`.
pub fn network(class: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(class).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name != "lo");
    names.sort();
    let described = |name: String| {
        let of = |file: &str| read_to_string(class.join(&name).join(file)).ok().map(|text| text.trim().to_owned());
        // An interface without a link and a virtual one have a speed of -1 or none.
        let speed = of("speed").and_then(|speed| speed.parse::<i64>().ok()).filter(|speed| *speed > 0);
        let driver = read_link(class.join(&name).join("device/driver")).ok();
        let driver = driver.and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned()));
        json!({"name": name, "speed_mbit_per_s": speed, "driver": driver, "state": of("operstate")})
    };
    names.into_iter().map(described).collect()
}

/// Returns version and vendor of the Java that a server is started with, from its file
/// `release`, so that no Java is started for it.
pub fn java() -> Option<Value> {
    let path = std::env::var_os("PATH")?;
    let program = std::env::split_paths(&path).map(|folder| folder.join("java")).find(|program| program.is_file())?;
    let program = program.canonicalize().ok()?;
    release(&read_to_string(program.parent()?.parent()?.join("release")).ok()?)
}

fn release(text: &str) -> Option<Value> {
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        Some(line.trim().trim_matches('"').to_owned())
    };
    let version = of("JAVA_RUNTIME_VERSION").or_else(|| of("JAVA_VERSION"))?;
    Some(json!({"version": version, "implementor": of("IMPLEMENTOR")}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_on_the_deepest_mount_that_was_made_last() {
        let text = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            30 22 0:40 / /tmp rw,nosuid shared:5 - tmpfs tmpfs rw\n\
            31 22 8:17 / /mnt/a\\040b rw - xfs /dev/sdb1 rw\n\
            32 22 0:41 / /tmp rw - overlay over rw\n";
        let of =
            |path: &str| mount_of(text, Path::new(path)).map(|mount| (mount.number, mount.file_system, mount.source));
        let told = |number: &str, file_system: &str, source: &str| {
            Some((number.to_owned(), file_system.to_owned(), source.to_owned()))
        };
        assert_eq!(of("/home/x"), told("8:1", "ext4", "/dev/sda1"));
        assert_eq!(of("/tmpx"), told("8:1", "ext4", "/dev/sda1"), "a name that begins alike is another");
        assert_eq!(of("/tmp/x"), told("0:41", "overlay", "over"));
        assert_eq!(of("/mnt/a b/c"), told("8:17", "xfs", "/dev/sdb1"));
        assert_eq!(mount_of("", Path::new("/")), None);
    }

    #[test]
    fn the_kind_of_a_disk_is_what_its_queue_says_and_that_of_memory_is_known() {
        let place = tempfile::tempdir().unwrap();
        let (disk, partition) = (place.path().join("8:0"), place.path().join("8:0/8:1"));
        std::fs::create_dir_all(disk.join("queue")).unwrap();
        std::fs::create_dir_all(&partition).unwrap();
        let of = |number: &str, file_system: &str| {
            let mount = Mount { number: number.into(), file_system: file_system.into(), source: String::new() };
            kind(&mount, place.path())
        };
        std::fs::write(disk.join("queue/rotational"), "1\n").unwrap();
        assert_eq!(of("8:0", "ext4"), Some("rotating"));
        std::fs::write(disk.join("queue/rotational"), "0\n").unwrap();
        assert_eq!((of("8:0", "ext4"), of("8:0/8:1", "xfs")), (Some("solid-state"), Some("solid-state")));
        assert_eq!((of("0:9", "tmpfs"), of("0:9", "overlay")), (Some("memory"), None));
    }

    #[test]
    fn cards_have_name_speed_and_driver_and_the_loopback_is_none() {
        let place = tempfile::tempdir().unwrap();
        for name in ["lo", "eth0", "veth1"] {
            std::fs::create_dir_all(place.path().join(name).join("device")).unwrap();
        }
        std::fs::write(place.path().join("eth0/speed"), "10000\n").unwrap();
        std::fs::write(place.path().join("eth0/operstate"), "up\n").unwrap();
        std::fs::write(place.path().join("veth1/speed"), "-1\n").unwrap();
        std::os::unix::fs::symlink("/sys/bus/pci/drivers/ixgbe", place.path().join("eth0/device/driver")).unwrap();
        let wanted = [
            json!({"name": "eth0", "speed_mbit_per_s": 10_000, "driver": "ixgbe", "state": "up"}),
            json!({"name": "veth1", "speed_mbit_per_s": null, "driver": null, "state": null}),
        ];
        assert_eq!(network(place.path()), wanted);
    }

    #[test]
    fn a_java_says_its_version_in_a_file() {
        let text =
            "IMPLEMENTOR=\"Debian\"\nJAVA_RUNTIME_VERSION=\"17.0.15+6-Debian-1deb12u1\"\nJAVA_VERSION=\"17.0.15\"\n";
        let wanted = json!({"version": "17.0.15+6-Debian-1deb12u1", "implementor": "Debian"});
        assert_eq!(release(text), Some(wanted));
        assert_eq!(release("JAVA_VERSION=\"1.8.0\"\n"), Some(json!({"version": "1.8.0", "implementor": null})));
        assert_eq!(release("nothing"), None);
    }
}
