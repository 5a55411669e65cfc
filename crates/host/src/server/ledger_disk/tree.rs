//! Files and folders of a ledger, with the state to which a power cut takes them back.
//!
//! Names are in memory, and the bytes of each file in a file of the store, whose name is the number of its node. For each
//! name that changed since it was made durable, the node that it led to then is kept.

use super::contents::Contents;
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Number of the topmost folder.
pub const ROOT: u64 = 1;

/// Kind of a node that has neither bytes nor names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialKind {
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
}

/// Content of a node.
#[derive(Debug)]
pub enum NodeContent {
    /// A file.
    File(Contents),
    /// A folder: its names, and the folder that it is in.
    Folder(BTreeMap<OsString, u64>, u64),
    /// A symbolic link: its target.
    Link(OsString),
    /// Anything else.
    Special(SpecialKind),
}

/// A file, folder, link or other node. A change of its attributes is durable at once.
#[derive(Debug)]
pub struct Node {
    /// Its content.
    pub content: NodeContent,
    /// Permissions, 12 bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Time of the last access.
    pub accessed: SystemTime,
    /// Time of the last change of its content.
    pub modified: SystemTime,
    /// Time of the last change.
    pub changed: SystemTime,
    /// Number of names that lead to it.
    pub links: u32,
    /// Number of times that the kernel was given its number, less those that it gave back.
    lookups: u64,
    /// Number of changed names that led to it when they were durable.
    held: u32,
}

/// Owner and permissions of a node that is made.
#[derive(Clone, Copy, Debug)]
pub struct NewNode {
    /// Permissions, 12 bits.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// Changes of a node's attributes; `None` leaves one as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttributeChange {
    /// Permissions, 12 bits.
    pub mode: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Time of the last access.
    pub accessed: Option<SystemTime>,
    /// Time of the last change of its content.
    pub modified: Option<SystemTime>,
}

/// The nodes of a ledger.
#[derive(Debug)]
pub struct Tree {
    store: PathBuf,
    /// True if only a sync of its folder makes a name durable; else every sync does.
    strict: bool,
    nodes: HashMap<u64, Node>,
    next: u64,
    /// Names of folders that changed, with the node that each led to when it was durable.
    changed_names: HashMap<(u64, OsString), Option<u64>>,
    /// True after the power cut: nothing can be read or written.
    failed: bool,
    /// Syncs that had something to make durable.
    syncs: u64,
}

impl Node {
    fn new(content: NodeContent, new: NewNode) -> Node {
        let now = SystemTime::now();
        Node {
            content,
            mode: new.mode & 0o7777,
            uid: new.uid,
            gid: new.gid,
            accessed: now,
            modified: now,
            changed: now,
            links: 0,
            lookups: 0,
            held: 0,
        }
    }

    /// Returns its size, bytes.
    pub fn size(&self) -> u64 {
        match &self.content {
            NodeContent::File(contents) => contents.size(),
            NodeContent::Link(target) => target.len() as u64,
            NodeContent::Folder(..) | NodeContent::Special(_) => 0,
        }
    }

    fn names(&self) -> Result<&BTreeMap<OsString, u64>, Errno> {
        if let NodeContent::Folder(names, _) = &self.content { Ok(names) } else { Err(Errno::ENOTDIR) }
    }

    fn is_folder(&self) -> bool {
        matches!(self.content, NodeContent::Folder(..))
    }
}

impl Tree {
    /// Makes the store, and takes what a folder contains into it, as durable.
    ///
    /// # Errors
    /// If a file cannot be read, or the store cannot be made.
    pub fn of_folder(folder: &Path, store: &Path, strict: bool) -> std::io::Result<Tree> {
        fs::create_dir(store)?;
        let root = fs::metadata(folder)?;
        let mut tree = Tree {
            store: store.to_owned(),
            strict,
            nodes: HashMap::new(),
            next: ROOT,
            changed_names: HashMap::new(),
            failed: false,
            syncs: 0,
        };
        let number = tree.add(NodeContent::Folder(BTreeMap::new(), ROOT), of_metadata(&root));
        tree.take_in(folder, number)?;
        tree.settle();
        Ok(tree)
    }

    fn take_in(&mut self, folder: &Path, parent: u64) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, name, metadata) = (entry.path(), entry.file_name(), entry.metadata()?);
            let kind = match metadata.file_type() {
                kind if kind.is_dir() => NodeContent::Folder(BTreeMap::new(), parent),
                kind if kind.is_file() => NodeContent::File(Contents::synced(metadata.len())),
                kind if kind.is_symlink() => NodeContent::Link(fs::read_link(&path)?.into_os_string()),
                kind => NodeContent::Special(special(kind)),
            };
            let number = self.add(kind, of_metadata(&metadata));
            self.set_name(parent, &name, Some(number)).map_err(std::io::Error::from)?;
            if metadata.is_dir() {
                self.take_in(&path, number)?;
            } else if metadata.is_file() {
                fs::copy(&path, self.path(number))?;
            }
        }
        Ok(())
    }

    /// Returns the number of syncs that had something to make durable.
    pub fn syncs(&self) -> u64 {
        self.syncs
    }

    /// Returns an error after the power cut.
    ///
    /// # Errors
    /// EIO.
    pub fn check(&self) -> Result<(), Errno> {
        if self.failed { Err(Errno::EIO) } else { Ok(()) }
    }

    /// Returns a node.
    ///
    /// # Errors
    /// ENOENT if there is none of this number.
    pub fn node(&self, number: u64) -> Result<&Node, Errno> {
        self.nodes.get(&number).ok_or(Errno::ENOENT)
    }

    fn node_mut(&mut self, number: u64) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&number).ok_or(Errno::ENOENT)
    }

    /// Returns the node that a name of a folder leads to.
    ///
    /// # Errors
    /// ENOENT or ENOTDIR.
    pub fn child(&self, folder: u64, name: &OsStr) -> Result<u64, Errno> {
        self.node(folder)?.names()?.get(name).copied().ok_or(Errno::ENOENT)
    }

    /// Lists a folder, with `.` and `..`.
    ///
    /// # Errors
    /// ENOENT or ENOTDIR.
    pub fn list(&self, folder: u64) -> Result<Vec<(u64, OsString)>, Errno> {
        let NodeContent::Folder(names, parent) = &self.node(folder)?.content else { return Err(Errno::ENOTDIR) };
        let mut all = vec![(folder, ".".into()), (*parent, "..".into())];
        all.extend(names.iter().map(|(name, number)| (*number, name.clone())));
        Ok(all)
    }

    /// Counts that the kernel was given a node's number.
    pub fn look_up(&mut self, number: u64) {
        self.nodes.entry(number).and_modify(|node| node.lookups += 1);
    }

    /// Counts that the kernel gave a node's number back `times` times.
    pub fn forget(&mut self, number: u64, times: u64) {
        self.nodes.entry(number).and_modify(|node| node.lookups = node.lookups.saturating_sub(times));
        self.drop_unused(number);
    }

    /// Makes a node with a name, and returns its number.
    ///
    /// # Errors
    /// EEXIST if there is one of this name; those of the store.
    pub fn make(&mut self, folder: u64, name: &OsStr, kind: NodeContent, new: NewNode) -> Result<u64, Errno> {
        let parent = self.node(folder)?;
        if parent.names()?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        // A folder with this bit passes its group on.
        let inherits = parent.mode & 0o2000 != 0;
        let mode = if inherits && matches!(kind, NodeContent::Folder(..)) { new.mode | 0o2000 } else { new.mode };
        let new = NewNode { mode, gid: if inherits { parent.gid } else { new.gid }, ..new };
        let is_file = matches!(kind, NodeContent::File(_));
        let number = self.add(kind, new);
        if is_file {
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.path(number));
            made.map_err(errno).inspect_err(|_| drop(self.nodes.remove(&number)))?;
        }
        self.set_name(folder, name, Some(number))?;
        Ok(number)
    }

    /// Gives a node that is not a folder another name.
    ///
    /// # Errors
    /// EEXIST if there is one of this name; EPERM for a folder.
    pub fn link(&mut self, number: u64, folder: u64, name: &OsStr) -> Result<(), Errno> {
        if self.node(number)?.is_folder() {
            return Err(Errno::EPERM);
        }
        if self.node(folder)?.names()?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        self.set_name(folder, name, Some(number))
    }

    /// Removes a name: of a folder if `is_folder`, else of anything else.
    ///
    /// # Errors
    /// ENOENT, ENOTDIR, EISDIR or ENOTEMPTY.
    pub fn remove(&mut self, folder: u64, name: &OsStr, is_folder: bool) -> Result<(), Errno> {
        let node = self.node(self.child(folder, name)?)?;
        match (&node.content, is_folder) {
            (NodeContent::Folder(names, _), true) if !names.is_empty() => return Err(Errno::ENOTEMPTY),
            (NodeContent::Folder(..), false) => return Err(Errno::EISDIR),
            (NodeContent::Folder(..), true) => {}
            (_, true) => return Err(Errno::ENOTDIR),
            (_, false) => {}
        }
        self.set_name(folder, name, None)
    }

    /// Renames a node, in place of the one that has the new name unless `keeps`.
    ///
    /// # Errors
    /// ENOENT; EEXIST if there is a node of the new name, and it is to be kept or is of another kind.
    pub fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr), keeps: bool) -> Result<(), Errno> {
        let number = self.child(from.0, from.1)?;
        match self.child(to.0, to.1) {
            Ok(_) if keeps => return Err(Errno::EEXIST),
            Ok(other) if other == number => return Ok(()),
            Ok(_) => {
                let is_folder = self.node(number)?.is_folder();
                self.remove(to.0, to.1, is_folder)?;
            }
            Err(Errno::ENOENT) => {}
            Err(error) => return Err(error),
        }
        self.set_name(from.0, from.1, None)?;
        self.set_name(to.0, to.1, Some(number))?;
        if let NodeContent::Folder(_, parent) = &mut self.node_mut(number)?.content {
            *parent = to.0;
        }
        Ok(())
    }

    /// Changes attributes.
    ///
    /// # Errors
    /// ENOENT.
    pub fn set_attributes(&mut self, number: u64, change: AttributeChange) -> Result<(), Errno> {
        let node = self.node_mut(number)?;
        node.mode = change.mode.unwrap_or(node.mode) & 0o7777;
        (node.uid, node.gid) = (change.uid.unwrap_or(node.uid), change.gid.unwrap_or(node.gid));
        node.accessed = change.accessed.unwrap_or(node.accessed);
        node.modified = change.modified.unwrap_or(node.modified);
        node.changed = SystemTime::now();
        Ok(())
    }

    /// Opens the file of the store of a node.
    ///
    /// # Errors
    /// Those of the store; EISDIR for a folder, EINVAL for a node without bytes.
    pub fn open(&self, number: u64) -> Result<Arc<File>, Errno> {
        match &self.node(number)?.content {
            NodeContent::File(_) => {}
            NodeContent::Folder(..) => return Err(Errno::EISDIR),
            NodeContent::Link(_) | NodeContent::Special(_) => return Err(Errno::EINVAL),
        }
        let file = OpenOptions::new().read(true).write(true).open(self.path(number)).map_err(errno)?;
        Ok(Arc::new(file))
    }

    /// Writes bytes of a file.
    ///
    /// # Errors
    /// Those of the store.
    pub fn write(&mut self, number: u64, file: &File, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.contents(number)?.write(file, offset, bytes).map_err(errno)
    }

    /// Cuts a file, or extends it with zeros.
    ///
    /// # Errors
    /// Those of the store.
    pub fn resize(&mut self, number: u64, file: &File, size: u64) -> Result<(), Errno> {
        self.contents(number)?.resize(file, size).map_err(errno)
    }

    /// Allocates room in a file, or makes a hole, as fallocate(2) does.
    ///
    /// # Errors
    /// EOPNOTSUPP for modes that move bytes; those of the store.
    pub fn allocate(&mut self, number: u64, file: &File, range: (u64, u64), mode: i32) -> Result<(), Errno> {
        let flags = FallocateFlags::from_bits(mode).ok_or(Errno::EOPNOTSUPP)?;
        if flags.intersects(FallocateFlags::FALLOC_FL_COLLAPSE_RANGE | FallocateFlags::FALLOC_FL_INSERT_RANGE) {
            return Err(Errno::EOPNOTSUPP);
        }
        let extends = !flags.contains(FallocateFlags::FALLOC_FL_KEEP_SIZE);
        let change = || fallocate(file, flags, range.0 as i64, range.1 as i64).map_err(Into::into);
        self.contents(number)?.change(file, range, extends, change).map_err(errno)
    }

    /// Returns the contents of a file that is about to change.
    fn contents(&mut self, number: u64) -> Result<&mut Contents, Errno> {
        let node = self.node_mut(number)?;
        (node.modified, node.changed) = (SystemTime::now(), SystemTime::now());
        if let NodeContent::File(contents) = &mut node.content { Ok(contents) } else { Err(Errno::EINVAL) }
    }

    /// Makes the bytes of a file durable and, unless names are strict, all names.
    ///
    /// # Errors
    /// ENOENT.
    pub fn sync(&mut self, number: u64) -> Result<(), Errno> {
        let mut has_changed = false;
        if let NodeContent::File(contents) = &mut self.node_mut(number)?.content {
            has_changed = !contents.is_clean();
            contents.sync();
        }
        has_changed |= !self.strict && self.keep_names(None);
        self.syncs += u64::from(has_changed);
        Ok(())
    }

    /// Makes the names of a folder durable and, unless names are strict, all others.
    pub fn sync_folder(&mut self, folder: u64) {
        let has_changed = self.keep_names(self.strict.then_some(folder));
        self.syncs += u64::from(has_changed);
    }

    /// Makes everything durable.
    pub fn settle(&mut self) {
        for node in self.nodes.values_mut() {
            if let NodeContent::File(contents) = &mut node.content {
                contents.sync();
            }
        }
        self.keep_names(None);
    }

    /// Cuts the power: nothing can be read or written any more.
    pub fn fail(&mut self) {
        self.failed = true;
    }

    /// Goes back to what was durable. From then on it can be read and written again.
    ///
    /// # Errors
    /// Those of the store.
    pub fn go_back(&mut self) -> std::io::Result<()> {
        for ((folder, name), before) in std::mem::take(&mut self.changed_names) {
            if let Some(NodeContent::Folder(names, _)) = self.nodes.get_mut(&folder).map(|node| &mut node.content) {
                match before {
                    Some(number) => names.insert(name, number),
                    None => names.remove(&name),
                };
            }
        }
        for (number, node) in &mut self.nodes {
            (node.links, node.lookups, node.held) = (0, 0, 0);
            if let NodeContent::File(contents) = &mut node.content
                && !contents.is_clean()
            {
                let path = self.store.join(number.to_string());
                contents.go_back(&OpenOptions::new().read(true).write(true).open(path)?)?;
            }
        }
        let reached = self.reach();
        let gone: Vec<u64> = self.nodes.keys().filter(|number| !reached.contains(number)).copied().collect();
        for number in gone {
            self.discard(number);
        }
        self.failed = false;
        Ok(())
    }

    /// Counts the names that lead to each node, and returns the nodes that a name leads to. A folder that has several,
    /// because its move was not durable in both places, keeps one.
    fn reach(&mut self) -> HashSet<u64> {
        let mut reached = HashSet::from([ROOT]);
        let mut next = vec![ROOT];
        while let Some(folder) = next.pop() {
            let Some(NodeContent::Folder(names, _)) = self.nodes.get(&folder).map(|node| &node.content) else {
                continue;
            };
            for (name, number) in names.clone() {
                let is_folder = self.nodes.get(&number).map(Node::is_folder);
                if is_folder.is_none_or(|is_folder| is_folder && reached.contains(&number)) {
                    if let Some(NodeContent::Folder(names, _)) =
                        self.nodes.get_mut(&folder).map(|node| &mut node.content)
                    {
                        names.remove(&name);
                    }
                    continue;
                }
                reached.insert(number);
                self.nodes.entry(number).and_modify(|node| {
                    node.links += 1;
                    if let NodeContent::Folder(_, parent) = &mut node.content {
                        *parent = folder;
                        next.push(number);
                    }
                });
            }
        }
        reached
    }

    fn path(&self, number: u64) -> PathBuf {
        self.store.join(number.to_string())
    }

    fn add(&mut self, kind: NodeContent, new: NewNode) -> u64 {
        let number = self.next;
        self.next += 1;
        self.nodes.insert(number, Node::new(kind, new));
        number
    }

    /// Has a name lead to another node, or to none.
    fn set_name(&mut self, folder: u64, name: &OsStr, to: Option<u64>) -> Result<(), Errno> {
        let node = self.node_mut(folder)?;
        (node.modified, node.changed) = (SystemTime::now(), SystemTime::now());
        let NodeContent::Folder(names, _) = &mut node.content else { return Err(Errno::ENOTDIR) };
        let before = match to {
            Some(number) => names.insert(name.to_owned(), number),
            None => names.remove(name),
        };
        let nodes = &mut self.nodes;
        self.changed_names.entry((folder, name.to_owned())).or_insert_with(|| {
            if let Some(node) = before.and_then(|number| nodes.get_mut(&number)) {
                node.held += 1;
            }
            before
        });
        for (number, adds) in before.map(|number| (number, false)).into_iter().chain(to.map(|number| (number, true))) {
            self.nodes.entry(number).and_modify(|node| {
                node.links = if adds { node.links + 1 } else { node.links.saturating_sub(1) };
                node.changed = SystemTime::now();
            });
            self.drop_unused(number);
        }
        Ok(())
    }

    /// Makes names durable: those of a folder, or all. Returns whether one had changed.
    fn keep_names(&mut self, of: Option<u64>) -> bool {
        let changed = std::mem::take(&mut self.changed_names);
        let is_kept = |(folder, _): &(u64, OsString)| of.is_none_or(|of| *folder == of);
        let (kept, left): (HashMap<_, _>, HashMap<_, _>) = changed.into_iter().partition(|(name, _)| is_kept(name));
        self.changed_names = left;
        for number in kept.values().flatten() {
            self.nodes.entry(*number).and_modify(|node| node.held = node.held.saturating_sub(1));
            self.drop_unused(*number);
        }
        !kept.is_empty()
    }

    /// Drops a node that no name leads to, now or after a power cut, and that the kernel does not know.
    fn drop_unused(&mut self, number: u64) {
        let is_unused = |node: &Node| node.links == 0 && node.lookups == 0 && node.held == 0;
        if number != ROOT && self.nodes.get(&number).is_some_and(is_unused) {
            self.discard(number);
        }
    }

    fn discard(&mut self, number: u64) {
        if let Some(Node { content: NodeContent::File(_), .. }) = self.nodes.remove(&number) {
            let _ = fs::remove_file(self.path(number));
        }
    }
}

pub(super) fn errno(error: std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

fn of_metadata(metadata: &Metadata) -> NewNode {
    NewNode { mode: (metadata.mode() & 0o7777) as u16, uid: metadata.uid(), gid: metadata.gid() }
}

fn special(kind: FileType) -> SpecialKind {
    match kind {
        kind if kind.is_fifo() => SpecialKind::Pipe,
        kind if kind.is_socket() => SpecialKind::Socket,
        _ => SpecialKind::Device,
    }
}
