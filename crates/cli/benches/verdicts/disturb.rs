//! Disturbances of a run: other work on its processors, stopped agents, and a generator with another kind of pacing.

use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Period in which a load is busy and then sleeps.
const TURN: Duration = Duration::from_millis(10);
/// Time from the first message to the window, and from the load to the first message: the time of starting agents.
const RISE: Duration = Duration::from_secs(3);

/// Processes that compete for the processors.
#[derive(Clone, Copy)]
enum Load {
    Nothing,
    /// Processes that are each busy for this share of the time: 0 to 1.
    Busy(&'static [f64]),
    /// A process with this share and a higher priority than all others, like a hypervisor that takes the processor
    /// away.
    First(f64),
    /// This many processes, from idle to always busy within [`RISE`].
    Rising(usize),
}

/// A disturbance.
pub struct Disturbance {
    name: String,
    load: Load,
    arguments: Vec<String>,
    unlimited: bool,
}

impl Disturbance {
    /// No disturbance.
    pub const NONE: Disturbance =
        Disturbance { name: String::new(), load: Load::Nothing, arguments: Vec::new(), unlimited: true };

    /// Returns its name; empty for none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the arguments that it adds to the command.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }

    /// Starts the competing processes; they end when the result is dropped.
    pub fn begin(&self) -> Result<Running, String> {
        let processes = match self.load {
            Load::Nothing => Vec::new(),
            Load::Busy(shares) => shares.iter().map(|share| start(*share, None, false)).collect(),
            Load::First(share) => vec![start(share, None, true)],
            Load::Rising(count) => (0..count).map(|_| start(1.0, Some(RISE), false)).collect(),
        };
        let running = Running(processes.into_iter().collect::<Result<_, _>>()?);
        std::thread::sleep(if running.0.is_empty() { Duration::ZERO } else { Duration::from_millis(100) });
        Ok(running)
    }
}

/// Competing processes, until this is dropped.
pub struct Running(Vec<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended no longer competes.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn start(share: f64, rise: Option<Duration>, first: bool) -> Result<Child, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = if first { Command::new("chrt") } else { Command::new(&own) };
    if first {
        command.args(["-f", "50"]).arg(&own);
    }
    command.arg("--load").arg(share.to_string()).arg(rise.map_or(0.0, |rise| rise.as_secs_f64()).to_string());
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.map_err(|error| format!("a load could not be started: {error}"))
}

/// Plays the load that this process was started for, if it was.
pub fn as_load(arguments: &[String]) -> Option<ExitCode> {
    let [flag, share, rise] = arguments else { return None };
    if flag != "--load" {
        return None;
    }
    let (share, rise): (f64, f64) = (share.parse().ok()?, rise.parse().ok()?);
    let began = Instant::now();
    loop {
        let turn = Instant::now();
        let part = if rise > 0.0 { (began.elapsed().as_secs_f64() / rise).min(share) } else { share };
        while turn.elapsed() < TURN.mul_f64(part) {
            std::hint::spin_loop();
        }
        std::thread::sleep(TURN.saturating_sub(turn.elapsed()));
    }
}

/// Returns the disturbances; if `unlimited`, only those that also apply at `max`, where no publisher waits.
pub fn disturbances(unlimited: bool) -> Vec<Disturbance> {
    let with = |name: &str, load, arguments: &[&str], unlimited| Disturbance {
        name: name.into(),
        load,
        arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
        unlimited,
    };
    let load = |name: &str, load| with(name, load, &[], true);
    let stop = |side: &str, ms: u32, times: u32| {
        let stops: Vec<String> =
            (0..times).map(|turn| format!("stop {side} at {}ms for {ms}ms", 600 + 50 * turn)).collect();
        let name = if times > 1 { format!("stop-{side}-{times}x{ms}ms") } else { format!("stop-{side}-{ms}ms") };
        with(&name, Load::Nothing, &["--fault", &stops.join(", ")], true)
    };
    let mut all = vec![
        load("load-4", Load::Busy(&[0.04])),
        load("load-10", Load::Busy(&[0.10])),
        load("load-20", Load::Busy(&[0.20])),
        load("load-50", Load::Busy(&[0.50])),
        load("load-100", Load::Busy(&[1.0])),
        load("load-150", Load::Busy(&[1.0, 0.5])),
        load("first-4", Load::First(0.04)),
        load("first-20", Load::First(0.20)),
        load("rising", Load::Rising(2)),
        stop("publishers", 5, 20),
        stop("publishers", 50, 1),
        stop("publishers", 200, 1),
        stop("subscribers", 50, 1),
        stop("subscribers", 200, 1),
        stop("subscribers", 600, 1),
        with("sleep", Load::Nothing, &["--set", "pacing=sleep"], false),
        with("spin", Load::Nothing, &["--set", "pacing=spin"], false),
    ];
    all.retain(|one| one.unlimited || !unlimited);
    all
}
