//! Two arms in turns: block after block, each a run of A and a run of B one
//! straight after the other, until somebody says that the records tell, or the
//! time is over.

use crate::conduct::{Conduct, ConductError, Conductor, Ending, Observer, begin_open};
use crate::plan::StudyPlan;
use pubmark_host::clock;
use pubmark_host::lock::Lock;
use pubmark_model::ab::ArmsPoint;
use pubmark_model::cell::Cell;
use pubmark_model::plan::Place;
use pubmark_model::record::RunRecord;
use pubmark_model::units::Ns;
use pubmark_stats::a_goes_first;

/// The most blocks of a point.
pub const BLOCKS_MAX: u32 = 512;
/// Blocks of a point that fail one after the other, until no more are made.
const FAILED_MAX: u32 = 3;

/// What is to be measured in turns, and how long that may take.
pub struct TurnsRequest<'a> {
    /// The study, with both arms.
    pub plan: &'a StudyPlan,
    /// The places at which they are held against each other.
    pub points: &'a [ArmsPoint],
    /// How long it may take. A block that would not end in time is not begun, but for the first.
    pub budget_ns: Ns,
}

/// What is wanted of each point after a round of blocks: how many blocks it has to
/// have for the next look, 0 where it is told.
pub type BlocksWanted = Vec<u32>;

/// Watches arms take turns, on the coordinator's thread, and says what is wanted
/// next: nothing here may wait.
pub trait TurnsObserver: Observer {
    /// All records so far: after each round of blocks, and before the first.
    fn look(&mut self, records: &[RunRecord]) -> BlocksWanted;
}

/// Why no more blocks were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnsEnd {
    /// All is told.
    Told,
    /// The time would not have been enough for the next look.
    Time,
    /// Run after run could not be made.
    Failing,
    /// As many blocks as there may be.
    Most,
    /// The user stopped it.
    Interrupted,
}

/// Turns that are over.
pub struct TurnsEnding {
    /// How the runs went.
    pub ending: Ending,
    /// Why no more were made.
    pub end: TurnsEnd,
    /// What a block of all open points took, the last time.
    pub round_ns: Ns,
    /// Keeps the results folder for this process.
    pub lock: Lock,
}

/// Makes blocks until `observer` wants no more, or the time is over.
///
/// # Errors
/// Where the results folder cannot be used.
pub fn take_turns(
    request: &TurnsRequest<'_>,
    how: &Conduct<'_>,
    observer: &mut dyn TurnsObserver,
) -> Result<TurnsEnding, ConductError> {
    let (plan, begun) = (request.plan, clock::now());
    let (mut conductor, mut records) = Conductor::open(plan, how)?;
    begin_open(&plan.study().title, plan.cells(), &records, observer);
    let mut failed = vec![0; request.points.len()];
    let mut rounds = Rounds::default();
    let end = loop {
        let wanted = observer.look(&records);
        let made: Vec<u32> = request.points.iter().map(|point| blocks(plan.cells(), *point, &records)).collect();
        let is_open = |index: &usize| wanted.get(*index).copied().unwrap_or_default() > 0;
        let open: Vec<usize> = (0..request.points.len()).filter(is_open).collect();
        let left: Vec<usize> =
            open.iter().copied().filter(|index| failed[*index] < FAILED_MAX && made[*index] < BLOCKS_MAX).collect();
        if left.is_empty() {
            let gave_up = open.iter().any(|index| failed[*index] >= FAILED_MAX);
            break match (open.is_empty(), gave_up) {
                (true, _) => TurnsEnd::Told,
                (false, true) => TurnsEnd::Failing,
                (false, false) => TurnsEnd::Most,
            };
        }
        // Blocks that lead to no look before the time is over would be made for nothing.
        let short = left.iter().map(|index| wanted[*index].saturating_sub(made[*index]).max(1)).min();
        let spent_ns = clock::now().saturating_sub(begun);
        if !rounds.fit(short.unwrap_or(1), left.len(), spent_ns, request.budget_ns) {
            break TurnsEnd::Time;
        }
        let from_ns = clock::now();
        for index in &left {
            let block = made[*index] + 1;
            let turn = Turn { plan, point: request.points[*index], index: *index, block };
            match turn.make(&mut conductor, &mut records, observer)? {
                Some(true) => failed[*index] = 0,
                Some(false) => failed[*index] += 1,
                None => {}
            }
            if conductor.is_interrupted() {
                break;
            }
        }
        if conductor.is_interrupted() {
            break TurnsEnd::Interrupted;
        }
        rounds.note(clock::now().saturating_sub(from_ns), left.len());
    };
    let (ending, lock) = conductor.close()?;
    Ok(TurnsEnding { ending, end, round_ns: rounds.block_ns * request.points.len() as u64, lock })
}

/// How long blocks take.
#[derive(Default)]
struct Rounds {
    /// Of one point; 0 before the first.
    block_ns: Ns,
}

impl Rounds {
    fn note(&mut self, took_ns: Ns, points: usize) {
        let block_ns = took_ns / points.max(1) as u64;
        self.block_ns = block_ns.max(self.block_ns * 3 / 4);
    }

    fn fit(&self, rounds: u32, points: usize, spent_ns: Ns, budget_ns: Ns) -> bool {
        self.block_ns == 0 || spent_ns + self.block_ns * u64::from(rounds) * points as u64 <= budget_ns
    }
}

/// How many blocks of a point have been begun.
fn blocks(cells: &[Cell], point: ArmsPoint, records: &[RunRecord]) -> u32 {
    let (a, b) = (&cells[point.a].axes, &cells[point.b].axes);
    let mine = records.iter().filter(|record| record.cell == *a || record.cell == *b);
    mine.map(|record| record.repeat).max().unwrap_or_default()
}

/// A block of a point.
struct Turn<'a> {
    plan: &'a StudyPlan,
    point: ArmsPoint,
    index: usize,
    block: u32,
}

impl Turn<'_> {
    /// Whether both of its runs could be made; none where the user stopped it.
    fn make(
        &self,
        conductor: &mut Conductor<'_>,
        records: &mut Vec<RunRecord>,
        observer: &mut dyn TurnsObserver,
    ) -> Result<Option<bool>, ConductError> {
        let ArmsPoint { a, b } = self.point;
        let order = if a_goes_first(self.plan.study().seed(), self.index, self.block) { [a, b] } else { [b, a] };
        let mut all_made = true;
        for cell in order {
            let place = Place { repeat: self.block, position: records.len() as u64 };
            let Some(record) = conductor.run(&self.plan.cells()[cell], place, None, observer)? else {
                return Ok(None);
            };
            all_made &= record.error.is_none();
            records.push(record);
        }
        Ok(Some(all_made))
    }
}
