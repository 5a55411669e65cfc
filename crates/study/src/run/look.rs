//! What a run's surroundings used.

use pubmark_host::awake::Awake;
use pubmark_host::clock;
use pubmark_host::machine::Ticks;
use pubmark_model::units::Ns;

/// What the machine and the coordinator had done up to an instant.
pub struct Look {
    /// The instant, ns.
    pub at: Ns,
    /// The machine's processors.
    pub ticks: Ticks,
    /// The coordinator's own CPU time, ns.
    pub own_cpu: Ns,
}

impl Look {
    /// Up to now. `awake` belongs to us: its processor time is nobody else's.
    pub fn now(awake: Option<&Awake>) -> Look {
        let own_cpu = clock::own_cpu() + awake.map_or(0, Awake::cpu_ns);
        Look { at: clock::now(), ticks: Ticks::now(), own_cpu }
    }
}
