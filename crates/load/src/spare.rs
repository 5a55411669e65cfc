//! Empty buffers of a thread, which its connections and sessions share.

use std::cell::RefCell;

/// Spare buffers that a thread keeps, and the maximum bytes of one of them.
pub const SPARES: usize = 16;
const SPARE_BYTES: usize = 1 << 20;

thread_local! {
    /// Empty buffers. The few connections that need one at a time share them, so that
    /// most connections hold none, and no message costs an allocation.
    static SPARE: Spares<Vec<u8>> = const { Spares::new(SPARES) };
}

/// Empty buffers of one kind, and the most of them.
pub struct Spares<T>(RefCell<Vec<T>>, usize);

impl<T: Default> Spares<T> {
    /// Makes a collection without any, for so many.
    pub const fn new(most: usize) -> Spares<T> {
        Spares(RefCell::new(Vec::new()), most)
    }

    /// Takes a spare buffer, or makes one.
    #[inline]
    pub fn take(&self) -> T {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes in an empty buffer with this many bytes, unless it is too long or there are enough.
    #[inline]
    pub fn put(&self, buffer: T, bytes: usize) {
        let mut spares = self.0.borrow_mut();
        if bytes > 0 && bytes <= SPARE_BYTES && spares.len() < self.1 {
            spares.push(buffer);
        }
    }
}

/// Appends to a buffer; an empty one is exchanged for a spare one first.
#[inline]
pub fn keep(buffer: &mut Vec<u8>, bytes: &[u8]) {
    if buffer.capacity() == 0 {
        *buffer = SPARE.with(Spares::take);
    }
    buffer.extend_from_slice(bytes);
}

/// Returns an unused buffer to the spares.
pub fn release(buffer: &mut Vec<u8>) {
    let mut buffer = std::mem::take(buffer);
    buffer.clear();
    let bytes = buffer.capacity();
    SPARE.with(|spares| spares.put(buffer, bytes));
}
