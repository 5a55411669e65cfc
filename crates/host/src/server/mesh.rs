//! Networks of the members of a server, so that the links between them can be cut: a network namespace for each member,
//! a pair of virtual interfaces between each two of them, and one to this machine, over which clients come.
//!
//! A cut makes two members send to each other under a hardware address that nobody has: packets are lost without an
//! answer, as on a cut line, and connections stay open. The kernel removes all interfaces, addresses and routes with the
//! last process of a member, whatever ends it.
//!
//! Addresses are of 198.18.0.0/15, which RFC 2544 reserves for benchmarks.

use super::command::{CommandError, output};
use super::{disk, processes};
use crate::clock;
use crate::error::HostError;
use crate::programs::find_program;
use pubmark_model::units::Ns;
use std::hash::{BuildHasher, Hasher};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Number of blocks of addresses, of 16 each.
const BLOCKS: u32 = 1 << 13;
/// The address of this machine within a block; members have theirs from 1.
const HERE: u32 = 14;
/// A hardware address that no interface has.
const NOWHERE: &str = "02:00:00:00:00:01";
/// Capability to change networks, and to make namespaces.
const CAPABILITIES: u64 = 1 << 12 | disk::SYS_ADMIN;
/// Time limit of each change.
const CHANGE: Duration = Duration::from_secs(10);
/// Time limit for a keeper to have a network of its own.
const APART: Duration = Duration::from_secs(10);
/// Interval at which that is checked.
const LOOK: Duration = Duration::from_millis(2);

/// The networks of the members of one server.
pub struct Mesh {
    /// Number of its block of addresses.
    block: u32,
    #[expect(dead_code, reason = "it reserves the block among the pubmarks of this machine while it is open")]
    reserved: UnixDatagram,
}

/// Returns why members cannot have networks of their own here, and what to do; `None` if they can.
pub fn missing() -> Option<String> {
    if !disk::capable(CAPABILITIES) {
        let help = "run pubmark as root, with CAP_NET_ADMIN and CAP_SYS_ADMIN, or stop a member instead";
        return Some(format!("networks can only be made by root: {help}"));
    }
    let without = ["ip", "nsenter"].into_iter().find(|program| find_program(program).is_none());
    without.map(|program| format!("there is no `{program}`: install iproute2 and util-linux"))
}

impl Mesh {
    /// Reserves addresses that no other pubmark of this machine uses.
    ///
    /// # Errors
    /// If there are none.
    pub fn reserve() -> Result<Mesh, HostError> {
        let random = std::collections::hash_map::RandomState::new().build_hasher().finish();
        let first = (random % u64::from(BLOCKS)) as u32;
        let reserved = (0..BLOCKS).find_map(|step| {
            let block = (first + step) % BLOCKS;
            let name = SocketAddr::from_abstract_name(format!("pubmark-network-{block}")).ok()?;
            let reserved = UnixDatagram::bind_addr(&name).ok()?;
            let mesh = Mesh { block, reserved };
            // One that was killed may still have processes there.
            let is_used = Path::new("/sys/class/net").join(mesh.interface(0)).exists();
            (!is_used).then_some(mesh)
        });
        reserved.ok_or_else(|| "all addresses of 198.18.0.0/15 are used by other runs".into())
    }

    /// Returns the address of the member at a place.
    pub fn address(&self, place: usize) -> String {
        self.at(place as u32 + 1)
    }

    fn at(&self, number: u32) -> String {
        let address = self.block * 16 + number;
        format!("198.{}.{}.{}", 18 + (address >> 16), address >> 8 & 255, address & 255)
    }

    /// Returns the name of this machine's interface to the member at a place.
    fn interface(&self, place: usize) -> String {
        format!("pm{}m{}", self.block, place + 1)
    }

    /// Links the network of a keeper with this machine, and with the networks of the keepers of the members before it.
    ///
    /// # Errors
    /// If it has no network of its own in time, or the kernel refuses.
    pub fn join(&self, keeper: i32, before: &[i32]) -> Result<(), HostError> {
        await_network(keeper)?;
        let (place, here) = (before.len(), self.at(HERE));
        let (name, own) = (self.interface(place), self.address(place));
        let outside = format!(
            "link add {name} type veth peer name here netns {keeper}\naddr add {here}/32 dev {name}\n\
             link set {name} up\n"
        );
        batch(None, &outside)?;
        let inside = format!(
            "link set lo up\naddr add {own}/32 dev lo\nlink set here up\nroute add {here}/32 dev here src {own}\n"
        );
        batch(Some(keeper), &inside)?;
        batch(None, &format!("route add {own}/32 dev {name} src {here}\n"))?;
        for (other, pid) in before.iter().enumerate() {
            let (mine, theirs) = (member_link(other), member_link(place));
            let link = |name: &str, to: &str, from: &str| {
                format!("link set {name} up\nroute add {to}/32 dev {name} src {from}\n")
            };
            let far = self.address(other);
            let add = format!("link add {mine} type veth peer name {theirs} netns {pid}\n");
            batch(Some(keeper), &(add + &link(&mine, &far, &own)))?;
            batch(Some(*pid), &link(&theirs, &own, &far))?;
        }
        Ok(())
    }

    /// Cuts the links between pairs of members, by place, or repairs them. `keepers` are those of all members. Returns
    /// the two instants between which that happened.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set_links(&self, keepers: &[i32], pairs: &[(usize, usize)], open: bool) -> Result<(Ns, Ns), HostError> {
        let from_ns = clock::now();
        for (place, keeper) in keepers.iter().enumerate() {
            let other = |(a, b): &(usize, usize)| match place {
                here if here == *a => Some(*b),
                here if here == *b => Some(*a),
                _ => None,
            };
            let change = |other: usize| {
                let (to, name) = (self.address(other), member_link(other));
                match open {
                    true => format!("neigh del {to} dev {name}\n"),
                    false => format!("neigh replace {to} lladdr {NOWHERE} dev {name} nud permanent\n"),
                }
            };
            let changes: String = pairs.iter().filter_map(other).map(change).collect();
            if !changes.is_empty() {
                batch(Some(*keeper), &changes)?;
            }
        }
        Ok((from_ns, clock::now()))
    }
}

/// Returns the name that the link to the member at a place has at the other members.
fn member_link(place: usize) -> String {
    format!("member{}", place + 1)
}

/// Waits until a process is in another network namespace than this one.
fn await_network(pid: i32) -> Result<(), HostError> {
    let network = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net"));
    let own = network("self").map_err(HostError::io("this network namespace"))?;
    let deadline = Instant::now() + APART;
    while network(&pid.to_string()).map_or(true, |theirs| theirs == own) {
        if !processes::lives(pid) || Instant::now() >= deadline {
            return Err("a member has no network of its own: see its log, or run pubmark as root".into());
        }
        thread::park_timeout(LOOK);
    }
    Ok(())
}

/// Has `ip` make changes, one a line, in the network of a process, or here.
fn batch(within: Option<i32>, changes: &str) -> Result<(), HostError> {
    let script = "printf '%s' \"$0\" | ip -batch -";
    let mut command: Vec<String> = Vec::new();
    if let Some(pid) = within {
        command.extend(["nsenter".to_owned(), format!("--net=/proc/{pid}/ns/net")]);
    }
    command.extend(["sh", "-c", script, changes].map(str::to_owned));
    let failed = |error: CommandError| HostError::Failed(format!("the networks of members: {error}"));
    output(&command, &[], CHANGE).map_err(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meshes_have_addresses_of_their_own() {
        let (one, two) = (Mesh::reserve().unwrap(), Mesh::reserve().unwrap());
        assert_ne!(one.block, two.block);
        let last = Mesh { block: BLOCKS - 1, reserved: UnixDatagram::unbound().unwrap() };
        assert_eq!((last.address(8), last.at(HERE)), ("198.19.255.249".into(), "198.19.255.254".into()));
        assert!(last.interface(8).len() <= 15, "the kernel's limit");
    }
}
