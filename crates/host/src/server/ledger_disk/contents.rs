//! The bytes of a file, and those that it had when it was synced last.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are kept together when they are overwritten.
const PAGE: u64 = 4_096;

/// State of a file's bytes, which lie in a file of the store.
///
/// The file of the store has the newest bytes. Here is what leads back to the synced ones: their length, and each page
/// of them that was overwritten since, as it was. So appending costs nothing but the append.
#[derive(Debug, Default)]
pub struct Contents {
    size: u64,
    synced_size: u64,
    /// Pages as they were at the last sync, by number.
    overwritten: BTreeMap<u64, Box<[u8]>>,
}

impl Contents {
    /// Returns the state of a synced file of `size` bytes.
    pub fn synced(size: u64) -> Contents {
        Contents { size, synced_size: size, ..Contents::default() }
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// True if nothing was written since the last sync.
    pub fn is_clean(&self) -> bool {
        self.size == self.synced_size && self.overwritten.is_empty()
    }

    /// Writes bytes. `file` is that of the store, open for reading and writing.
    ///
    /// # Errors
    /// Those of the store.
    pub fn write(&mut self, file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = end_of(offset, bytes.len() as u64)?;
        self.keep(file, offset, end)?;
        file.write_all_at(bytes, offset)?;
        self.size = self.size.max(end);
        Ok(())
    }

    /// Cuts the file, or extends it with zeros.
    ///
    /// # Errors
    /// Those of the store.
    pub fn resize(&mut self, file: &File, size: u64) -> io::Result<()> {
        self.keep(file, size, self.synced_size)?;
        file.set_len(size)?;
        self.size = size;
        Ok(())
    }

    /// Has `change` change these bytes in a way of its own, such as a hole, up to an end that may lie behind that of the
    /// file. With `extends`, the file is longer then.
    ///
    /// # Errors
    /// Those of the store and of the change.
    pub fn change(
        &mut self,
        file: &File,
        (offset, length): (u64, u64),
        extends: bool,
        change: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let end = end_of(offset, length)?;
        self.keep(file, offset, end)?;
        change()?;
        if extends {
            self.size = self.size.max(end);
        }
        Ok(())
    }

    /// Makes the present bytes the synced ones.
    pub fn sync(&mut self) {
        self.synced_size = self.size;
        self.overwritten.clear();
    }

    /// Goes back to the synced bytes.
    ///
    /// # Errors
    /// Those of the store.
    pub fn go_back(&mut self, file: &File) -> io::Result<()> {
        file.set_len(self.synced_size)?;
        for (page, bytes) in &self.overwritten {
            file.write_all_at(bytes, page * PAGE)?;
        }
        self.size = self.synced_size;
        self.overwritten.clear();
        Ok(())
    }

    /// Keeps the synced pages between two offsets that are not kept yet.
    fn keep(&mut self, file: &File, from: u64, to: u64) -> io::Result<()> {
        let to = to.min(self.synced_size);
        if from >= to {
            return Ok(());
        }
        for page in from / PAGE..to.div_ceil(PAGE) {
            if !self.overwritten.contains_key(&page) {
                let begin = page * PAGE;
                let mut bytes = vec![0; (self.synced_size - begin).min(PAGE) as usize];
                file.read_exact_at(&mut bytes, begin)?;
                self.overwritten.insert(page, bytes.into());
            }
        }
        Ok(())
    }
}

fn end_of(offset: u64, length: u64) -> io::Result<u64> {
    offset.checked_add(length).filter(|end| *end <= i64::MAX as u64).ok_or_else(|| io::ErrorKind::FileTooLarge.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        Resize(u64),
        Sync,
        GoBack,
    }

    fn step() -> impl Strategy<Value = Step> {
        let bytes = (1_usize..6_000, 1_u8..).prop_map(|(length, byte)| vec![byte; length]);
        prop_oneof![
            4 => (0_u64..20_000, bytes).prop_map(|(offset, bytes)| Step::Write(offset, bytes)),
            2 => (0_u64..20_000).prop_map(Step::Resize),
            1 => Just(Step::Sync),
            1 => Just(Step::GoBack),
        ]
    }

    proptest! {
        #[test]
        fn going_back_leads_to_the_bytes_of_the_last_sync(steps in prop::collection::vec(step(), 0..40)) {
            let file = tempfile::tempfile().unwrap();
            let (mut contents, mut now, mut synced) = (Contents::default(), Vec::new(), Vec::new());
            for step in steps {
                match step {
                    Step::Write(offset, bytes) => {
                        contents.write(&file, offset, &bytes).unwrap();
                        let (from, to) = (offset as usize, offset as usize + bytes.len());
                        now.resize(now.len().max(to), 0);
                        now[from..to].copy_from_slice(&bytes);
                    }
                    Step::Resize(size) => {
                        contents.resize(&file, size).unwrap();
                        now.resize(size as usize, 0);
                    }
                    Step::Sync => {
                        contents.sync();
                        synced.clone_from(&now);
                    }
                    Step::GoBack => {
                        contents.go_back(&file).unwrap();
                        now.clone_from(&synced);
                    }
                }
                let mut bytes = vec![0; contents.size() as usize];
                file.read_exact_at(&mut bytes, 0).unwrap();
                prop_assert_eq!(file.metadata().unwrap().len(), contents.size());
                prop_assert!(bytes == now);
            }
        }
    }

    #[test]
    fn an_append_keeps_no_page() {
        let file = tempfile::tempfile().unwrap();
        let mut contents = Contents::default();
        for _ in 0..3 {
            contents.write(&file, contents.size(), &[7; 100]).unwrap();
            assert!(contents.overwritten.is_empty() && !contents.is_clean());
            contents.sync();
            assert!(contents.is_clean());
        }
        assert!(contents.write(&file, u64::MAX, &[0; 2]).is_err() && contents.is_clean());
    }
}
