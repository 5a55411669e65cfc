//! What one coordinator leads: many hosts of many agents, in virtual time. What it
//! costs is counted, and has to grow with the agents and not with their square.

use super::*;
use crate::lead::deal::{Layout, Spot, streams_between};
use crate::lead::seat::lead_ns;
use allocation_counter::measure;
use pubmark_model::protocol::Progress;
use std::path::Path;

/// Agents of a host, half of them on either side.
const AGENTS: usize = 10;
/// How much dearer ten times the agents may be: trees grow deeper, and processors'
/// caches do not grow.
const MOST: f64 = 25.0;
/// Words that each agent says of how far it has come.
const WORDS: u64 = 3;

/// What leading a run has cost.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Lines that hosts were told.
    lines: u64,
    /// Bytes of what agents were told.
    told_bytes: u64,
    /// Allocations of the coordinator's, those for its agents' words among them.
    allocations: u64,
    /// The most memory of the coordinator's at once, its agents' words among it, bytes.
    memory_bytes: u64,
    /// Time of a processor, s.
    cpu_s: f64,
}

fn many(hosts: usize) -> Cell {
    cell(&format!("pairs = {}", hosts * AGENTS / 2))
}

/// Both sides on each of so many hosts.
fn dealt(cell: &Cell, hosts: usize) -> Vec<AgentPlan> {
    let spot = |host| Spot { host, address: "10.0.0.1", scratch: Path::new("/x") };
    let spots: Vec<Spot<'_>> = (0..hosts).map(spot).collect();
    let agents = deal::deal(&cell.workload, [spots.clone(), spots], Layout::Sides { processes: AGENTS / 2 });
    assert_eq!(agents.len(), hosts * AGENTS);
    agents
}

/// A run of so many hosts, of which agents do something wrong.
fn led(hosts: usize, wrong: Vec<(usize, usize, Way)>) -> (Played, Cost) {
    let (cell, in_time) = (many(hosts), wrong.is_empty());
    let mut led = None;
    let memory = measure(|| {
        let began_s = cpu_s();
        let agents = dealt(&cell, hosts);
        assert!(streams_between(&agents).is_empty(), "both ends of a pair are on one host");
        let count = agents.len();
        let mut stage = Stage::of(&cell, agents, wrong);
        // One that is late would be ahead of its own start.
        let began_ns = stage.now + lead_ns(&vec![Seat::default(); count]);
        for agent in (0..count).filter(|_| in_time) {
            for word in 1..=WORDS {
                let progress = Progress { sent: word, ..Progress::default() };
                // Within the window.
                stage.send(agent, began_ns + SECOND + word * SECOND / 2, Said::Event(Event::Progress(progress)));
            }
        }
        let played = stage.play();
        led = Some((played, cpu_s() - began_s));
    });
    let (played, cpu_s) = led.unwrap();
    let Played { lines, told_bytes, .. } = played;
    let (allocations, memory_bytes) = (memory.count_total, memory.bytes_max);
    (played, Cost { lines, told_bytes, allocations, memory_bytes, cpu_s })
}

#[test]
fn what_leading_costs_grows_with_the_agents_and_not_with_their_square() {
    let costs = [10, 100, 1_000].map(|hosts| {
        let (played, cost) = led(hosts, Vec::new());
        assert_eq!(played.outcome.unwrap_or_else(|refusal| panic!("{refusal}")).len(), hosts * AGENTS);
        assert_eq!(played.looks.len(), 2, "a window has two edges, however many are led");
        (hosts, cost)
    });
    println!("hosts  agents  lines  told       allocations  memory      a host     led in");
    for (hosts, Cost { lines, told_bytes, allocations, memory_bytes, cpu_s }) in costs {
        let (agents, a_host) = (hosts * AGENTS, memory_bytes / hosts as u64);
        println!(
            "{hosts:5}  {agents:6}  {lines:5}  {:6} kB  {allocations:11}  {:6} kB  {:6.1} kB  {cpu_s:5.3} s",
            told_bytes / 1_000,
            memory_bytes / 1_000,
            a_host as f64 / 1e3
        );
    }
    let [_, (_, few), (_, all)] = costs;
    let times = |what: fn(&Cost) -> f64| what(&all) / what(&few);
    for (hosts, cost) in costs {
        // Hello, prepare (those that bind, and those that connect), start, drain, stop.
        assert_eq!(cost.lines, 6 * hosts as u64, "however many agents a host has");
    }
    assert!(times(|cost| cost.told_bytes as f64) < 13.0, "numbers have a digit more, and no more: {few:?} {all:?}");
    assert!(times(|cost| cost.allocations as f64) < 11.0, "as many for each word as of few agents: {few:?} {all:?}");
    assert!(times(|cost| cost.memory_bytes as f64) < 15.0, "{few:?} {all:?}");
}

/// What this thread has had of a processor, s: however busy the machine is otherwise.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Time is the machine's as well, so that the best of a few tries counts. With one
/// scan of all agents for each of their words it is a hundred times as much.
#[test]
fn ten_times_the_agents_take_about_ten_times_the_time() {
    let best =
        |hosts: usize, tries: usize| (0..tries).map(|_| led(hosts, Vec::new()).1.cpu_s).fold(f64::INFINITY, f64::min);
    let mut found = Vec::new();
    for _ in 0..3 {
        found.push(best(1_000, 1) / best(100, 5));
        if found[found.len() - 1] < MOST {
            return;
        }
    }
    panic!("ten times the agents take {found:?} times as long");
}

/// Of ten thousand agents a few are lost, late or wrong: the run ends in its time,
/// and says by name who it was.
#[test]
fn among_ten_thousand_who_is_lost_late_or_wrong_is_named() {
    const HOSTS: usize = 1_000;
    // The words of an agent that sends are hello, bound, ready, sent, drained, result.
    let agents = dealt(&many(HOSTS), HOSTS);
    let sends: Vec<usize> = (0..agents.len()).filter(|index| agents[*index].role().sends()).collect();
    let hears: Vec<usize> = (0..agents.len()).filter(|index| !agents[*index].role().sends()).collect();
    let name = |index: usize| agents[index].name.as_str();
    for (wrong, says) in [
        (vec![(sends[4_321], 3, Way::Death)], format!("agent {} ended in mid-run: signal: 9", name(sends[4_321]))),
        (vec![(hears[77], 4, Way::Lie)], format!("agent {} does not answer for what", name(hears[77]))),
        (vec![(sends[9], 1, Way::Garbage)], format!("agent {} said what is no word", name(sends[9]))),
        (
            vec![(hears[7], 3, Way::Silence), (hears[4_999], 3, Way::Silence)],
            format!("agents ({}, {}) did not drain in time", name(hears[7]), name(hears[4_999])),
        ),
        (
            (0..1_000).map(|index| (sends[index], 0, Way::Silence)).collect(),
            format!("{} and 984 more) did not say hello in time", name(sends[15])),
        ),
    ] {
        let (played, _) = led(HOSTS, wrong);
        let refusal = played.outcome.err().unwrap().to_string();
        assert!(refusal.contains(&says) && refusal.len() < 500, "{says}: {refusal}");
        assert!(played.took_ns < 60 * SECOND, "{says}: {} ns", played.took_ns);
    }
    // Late by less than they may be: all results are there.
    let late =
        [(hears[1], 4, Way::Late(9 * SECOND)), (sends[2], 2, Way::Late(SECOND / 5)), (sends[3], 0, Way::Late(3))];
    let (played, _) = led(HOSTS, late.to_vec());
    assert_eq!(played.outcome.unwrap_or_else(|refusal| panic!("{refusal}")).len(), HOSTS * AGENTS);
}
