//! Kafka's default partitioner: the partition of a record with a key.

const SEED: u32 = 0x9747_b28c;
const FACTOR: u32 = 0x5bd1_e995;
const SHIFT: u32 = 24;

/// Returns the partition of a key among this many: the hash of the key without its sign, modulo their number.
pub fn partition_of(key: &[u8], partitions: u32) -> u32 {
    (murmur2(key) & i32::MAX as u32) % partitions.max(1)
}

/// Returns the hash MurmurHash2 of these bytes, with Kafka's seed.
pub(super) fn murmur2(bytes: &[u8]) -> u32 {
    let mut hash = SEED ^ bytes.len() as u32;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let word = word.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte)).wrapping_mul(FACTOR);
        hash = hash.wrapping_mul(FACTOR) ^ (word ^ word >> SHIFT).wrapping_mul(FACTOR);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let rest = rest.iter().rev().fold(0, |rest, byte| rest << 8 | u32::from(*byte));
        hash = (hash ^ rest).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(FACTOR);
    hash ^ hash >> 15
}
