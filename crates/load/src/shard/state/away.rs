//! Who is away: nothing is kept for a client that is present.

use pubmark_model::units::Ns;
use pubmark_stats::Histogram;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// Losses that the remarks describe one by one.
pub const DESCRIBED: usize = 3;

/// A client without its connection.
pub struct Absence {
    pub since_ns: Ns,
    /// When the present attempt began; none between two attempts.
    pub began_ns: Option<Ns>,
    /// Attempts that failed.
    pub failed: u32,
}

/// Who is away, and when whose next attempt is due.
pub struct Away {
    /// Whether clients come back at all.
    pub returns: bool,
    pub absent: HashMap<u32, Absence>,
    pub due: BinaryHeap<Reverse<(Ns, u32)>>,
    /// Attempts by their beginning. Those that have ended stay until they would be too old.
    pub begun: VecDeque<(Ns, u32)>,
    pub under_way: usize,
    pub times: Histogram,
    /// How the first connections were lost, and what else is to be remarked.
    pub losses: Vec<String>,
    /// How the very first was.
    pub first_loss: Option<String>,
}

impl Away {
    pub fn new(returns: bool) -> Away {
        Away {
            returns,
            absent: HashMap::new(),
            due: BinaryHeap::new(),
            begun: VecDeque::new(),
            under_way: 0,
            times: Histogram::latency(),
            losses: Vec::new(),
            first_loss: None,
        }
    }

    /// Whether this client is away, and will be back.
    pub fn has(&self, index: usize) -> bool {
        self.absent.contains_key(&(index as u32))
    }

    /// Nobody will be back any more.
    pub fn give_up(&mut self) {
        self.absent.clear();
        self.due.clear();
        self.begun.clear();
        self.under_way = 0;
    }

    pub fn take_times(&mut self) -> Histogram {
        std::mem::replace(&mut self.times, Histogram::latency())
    }

    /// What the record should say of losses, of which there were so many.
    pub fn remarks(&mut self, lost: u64, reconnected: u64) -> Vec<String> {
        let mut remarks = std::mem::take(&mut self.losses);
        if lost > 0 && self.returns {
            remarks.push(format!("{reconnected} of {lost} lost connections came back"));
        } else if lost > DESCRIBED as u64 {
            remarks.push(format!("{lost} connections were lost in all"));
        }
        remarks
    }

    /// No attempt of this client is under way any more.
    pub fn ended(&mut self, index: usize) {
        if let Some(absence) = self.absent.get_mut(&(index as u32))
            && absence.began_ns.take().is_some()
        {
            self.under_way -= 1;
        }
    }

    /// Counts the client among those present, or among those gone for good.
    pub fn remove(&mut self, index: usize) -> Option<Absence> {
        self.ended(index);
        self.absent.remove(&(index as u32))
    }
}
