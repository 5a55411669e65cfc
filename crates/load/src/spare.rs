//! Empty buffers of a thread, which its connections and sessions share.

use std::cell::RefCell;

/// Spare buffers that a thread keeps, and the maximum bytes of one of them.
const SPARES: usize = 64;
const SPARE_BYTES: usize = 1 << 20;

thread_local! {
    /// Empty buffers. The few connections that need one at a time share them, so that
    /// most connections hold none, and no message costs an allocation.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Appends to a buffer; an empty one is exchanged for a spare one first.
#[inline]
pub fn keep(buffer: &mut Vec<u8>, bytes: &[u8]) {
    if buffer.capacity() == 0 {
        *buffer = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
    }
    buffer.extend_from_slice(bytes);
}

/// Returns an unused buffer to the spares.
pub fn release(buffer: &mut Vec<u8>) {
    let mut buffer = std::mem::take(buffer);
    if buffer.capacity() > 0 && buffer.capacity() <= SPARE_BYTES {
        buffer.clear();
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < SPARES {
                spare.push(buffer);
            }
        });
    }
}
