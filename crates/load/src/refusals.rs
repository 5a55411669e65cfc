//! Counts of refused messages by reason.

use crate::session::{MessageRefusal, RefusalKind};
use pubmark_model::counts::RefusalCount;

/// Maximum number of separate reasons; further ones are counted together.
const REASONS: usize = 16;
const OTHERS: &str = "other reasons";

/// Counts by reason. Counting a known reason allocates nothing.
#[derive(Default)]
pub struct RefusalTally(Vec<Reason>);

struct Reason {
    code: Option<u8>,
    words: String,
    kind: RefusalKind,
    count: u64,
}

impl RefusalTally {
    /// Counts a message.
    pub fn count(&mut self, refusal: &MessageRefusal<'_>) {
        let MessageRefusal { code, words, kind } = *refusal;
        let known = |reason: &&mut Reason| (reason.code, &*reason.words) == (code, words);
        if let Some(reason) = self.0.iter_mut().find(known) {
            reason.count += 1;
        } else if self.0.len() < REASONS || words == OTHERS {
            self.0.push(Reason { code, words: words.to_owned(), kind, count: 1 });
        } else {
            self.count(&MessageRefusal { code: None, words: OTHERS, kind });
        }
    }

    /// Returns the reasons with their counts, in the order of their first message.
    pub fn counts(&self) -> Vec<RefusalCount> {
        let told = |Reason { code, words, kind, count }: &Reason| RefusalCount {
            reason: MessageRefusal { code: *code, words, kind: *kind }.to_string(),
            count: *count,
            limit: *kind == RefusalKind::Limit,
        };
        self.0.iter().map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_apart_and_no_more_than_so_many() {
        let mut tally = RefusalTally::default();
        let quota = MessageRefusal { code: Some(0x97), words: "quota exceeded", kind: RefusalKind::Limit };
        (0..3).for_each(|_| tally.count(&quota));
        tally.count(&MessageRefusal { code: Some(0x80), words: "quota exceeded", kind: RefusalKind::Final });
        for number in 0..100 {
            tally.count(&MessageRefusal { code: None, words: &format!("no {number}"), kind: RefusalKind::Final });
        }
        let counts = tally.counts();
        assert_eq!(counts.len(), REASONS + 1);
        let told = |at: usize| (counts[at].reason.as_str(), counts[at].count, counts[at].limit);
        assert_eq!(told(0), ("quota exceeded (code 0x97)", 3, true));
        assert_eq!(told(1), ("quota exceeded (code 0x80)", 1, false));
        assert_eq!((told(2), told(16)), (("no 0", 1, false), (OTHERS, 86, false)));
    }
}
