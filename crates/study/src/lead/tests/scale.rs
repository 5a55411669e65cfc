//! One coordinator that leads many hosts with many agents, in virtual time. Its costs are counted; they must grow with
//! the number of agents and not with its square.

use super::*;
use crate::lead::assignment::{ClientHost, Layout, streams_between};
use crate::lead::location::lead_ns;
use allocation_counter::measure;
use pubmark_model::protocol::Progress;
use std::path::Path;

/// Agents of a host, half of them on either side.
const AGENTS: usize = 10;
/// Maximum factor of the costs for ten times the agents: trees grow deeper, and processors' caches do not grow.
const MOST: f64 = 25.0;
/// Progress reports of each agent.
const WORDS: u64 = 3;

/// Costs of leading a run.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// Lines sent to hosts.
    lines: u64,
    /// Bytes sent to agents.
    told_bytes: u64,
    /// Allocations of the coordinator, including those for its agents' messages.
    allocations: u64,
    /// Peak memory of the coordinator, including its agents' messages, bytes.
    memory_bytes: u64,
    /// Processor time, s.
    cpu_s: f64,
}

fn many(hosts: usize) -> Cell {
    cell(&format!("pairs = {}", hosts * AGENTS / 2))
}

/// Assigns clients of both sides to each of this many hosts.
fn dealt(cell: &Cell, hosts: usize) -> Vec<AgentPlan> {
    let spot = |host| ClientHost { host, address: "10.0.0.1", scratch: Path::new("/x") };
    let spots: Vec<ClientHost<'_>> = (0..hosts).map(spot).collect();
    let agents = assignment::deal(&cell.flows(), &[spots.clone(), spots], Layout::Sides { processes: AGENTS / 2 });
    assert_eq!(agents.len(), hosts * AGENTS);
    agents
}

/// Leads a run on this many hosts, whose agents have these faults.
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
        let began_ns = stage.now + lead_ns(&vec![AgentResources::default(); count]);
        for agent in (0..count).filter(|_| in_time) {
            for word in 1..=WORDS {
                let progress = Progress { sent: word, ..Progress::default() };
                // Within the window.
                stage.send(agent, began_ns + SECOND + word * SECOND / 2, AgentInput::Event(Event::Progress(progress)));
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

/// Returns the processor time of this thread, s, which does not depend on other load of the machine.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Timing depends on the machine as well, so the best of a few tries counts. One scan of all agents for each of their
/// messages would take a hundred times as long.
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

/// Of ten thousand agents a few are lost, late or faulty: the run ends in time, with an error that names them.
#[test]
fn among_ten_thousand_who_is_lost_late_or_wrong_is_named() {
    const HOSTS: usize = 1_000;
    // The messages of an agent that sends are hello, bound, ready, sent, drained, result.
    let agents = dealt(&many(HOSTS), HOSTS);
    let sends: Vec<usize> = (0..agents.len()).filter(|index| agents[*index].role().sends()).collect();
    let hears: Vec<usize> = (0..agents.len()).filter(|index| !agents[*index].role().sends()).collect();
    let name = |index: usize| agents[index].name.as_str();
    for (wrong, says) in [
        (vec![(sends[4_321], 3, Way::Death)], format!("agent {} ended in mid-run: signal: 9", name(sends[4_321]))),
        (vec![(hears[77], 4, Way::Lie)], format!("agent {} does not answer for what", name(hears[77]))),
        (vec![(sends[9], 1, Way::Garbage)], format!("agent {} said what is not a word", name(sends[9]))),
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
    // Late by less than the limit: all results arrive.
    let late =
        [(hears[1], 4, Way::Late(9 * SECOND)), (sends[2], 2, Way::Late(SECOND / 5)), (sends[3], 0, Way::Late(3))];
    let (played, _) = led(HOSTS, late.to_vec());
    assert_eq!(played.outcome.unwrap_or_else(|refusal| panic!("{refusal}")).len(), HOSTS * AGENTS);
}
