//! Clients that are away. Connected clients take no memory here.

use pubmark_model::units::Ns;
use pubmark_stats::Histogram;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// Losses that the remarks describe one by one.
const DESCRIBED: usize = 3;

/// A client without its connection.
pub struct Absence {
    pub since_ns: Ns,
    /// Beginning of the current attempt; `None` between two attempts.
    pub began_ns: Option<Ns>,
    /// Failed attempts.
    pub failed: u32,
    /// True of a subscriber that starts late and has not yet.
    pub is_before_start: bool,
}

/// Clients that are away, and the due times of their next attempts.
pub struct Away {
    /// True if clients reconnect at all.
    pub returns: bool,
    pub absent: HashMap<u32, Absence>,
    pub due: BinaryHeap<Reverse<(Ns, u32)>>,
    /// Attempts by their beginning. Ended attempts stay until they would be too old.
    pub begun: VecDeque<(Ns, u32)>,
    pub under_way: usize,
    pub times: Option<Histogram>,
    /// Causes of the first losses, and other remarks.
    pub losses: Vec<String>,
    /// Cause of the very first loss.
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
            times: None,
            losses: Vec::new(),
            first_loss: None,
        }
    }

    /// True if this client is away, and will reconnect.
    pub fn has(&self, index: usize) -> bool {
        self.absent.contains_key(&(index as u32))
    }

    /// Ends all reconnections.
    pub fn give_up(&mut self) {
        self.absent.clear();
        self.due.clear();
        self.begun.clear();
        self.under_way = 0;
    }

    /// Keeps the description of a loss, if it is one of the first.
    pub fn note(&mut self, how: impl FnOnce() -> String) {
        if self.losses.len() < DESCRIBED {
            let how = how();
            self.first_loss.get_or_insert_with(|| how.clone());
            self.losses.push(how);
        }
    }

    /// Returns remarks on losses for the record; `lost` is their number.
    pub fn remarks(&mut self, lost: u64, reconnected: u64) -> Vec<String> {
        let mut remarks = std::mem::take(&mut self.losses);
        if lost > 0 && self.returns {
            remarks.push(format!("{reconnected} of {lost} lost connections came back"));
        } else if lost > DESCRIBED as u64 {
            remarks.push(format!("{lost} connections were lost in all"));
        }
        remarks
    }

    /// Notes that no attempt of this client is active any more.
    pub fn ended(&mut self, index: usize) {
        if let Some(absence) = self.absent.get_mut(&(index as u32))
            && absence.began_ns.take().is_some()
        {
            self.under_way -= 1;
        }
    }

    /// Removes a client that is back, or that will not come back.
    pub fn remove(&mut self, index: usize) -> Option<Absence> {
        self.ended(index);
        self.absent.remove(&(index as u32))
    }
}
