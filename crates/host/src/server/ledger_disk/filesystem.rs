//! The tree of a ledger as a file system of the kernel.
//!
//! All changes come through the mount, so the kernel may keep names, attributes and pages for as long as it lasts. It
//! writes through: a write is here when its call returns. Only pages that a process maps and changes come later, and
//! like other writes they count as synced when the process syncs them.

use super::tree::{AttributeChange, NewNode, Node, NodeContent, SpecialKind, Tree};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use nix::libc::{O_DSYNC, S_IFBLK, S_IFCHR, S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK};
use nix::sys::statvfs::statvfs;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Time for which the kernel keeps names and attributes: longer than any run.
const KEPT: Duration = Duration::from_secs(365 * 24 * 3_600);
/// Size that `stat` calls the best for reads and writes, bytes.
const BLOCK: u32 = 4_096;

type Outcome<T> = Result<T, nix::errno::Errno>;

/// One mount of a tree.
pub struct LedgerMount {
    tree: Arc<Mutex<Tree>>,
    store: PathBuf,
    /// File for the count of syncs.
    counts: File,
    /// Number of this mount.
    attachment: u64,
    open: Mutex<Handles>,
}

/// Entries of a folder: number, kind and name.
type Listing = Arc<Vec<(u64, FileType, OsString)>>;

/// Files and folders that the kernel has opened in one mount.
#[derive(Default)]
struct Handles {
    next: u64,
    files: HashMap<u64, Arc<File>>,
    listings: HashMap<u64, Listing>,
}

impl Handles {
    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of_nix(error: nix::errno::Errno) -> Errno {
    Errno::from_i32(error as i32)
}

impl LedgerMount {
    /// Returns mount number `attachment` of a tree that has its files in `store`, and writes the number of syncs to
    /// `counts`.
    pub fn new(tree: Arc<Mutex<Tree>>, store: &Path, counts: File, attachment: u64) -> LedgerMount {
        let mount = LedgerMount { tree, store: store.to_owned(), counts, attachment, open: Mutex::default() };
        mount.write_counts(lock(&mount.tree).syncs());
        mount
    }

    /// Writes the counts down, in a fixed length, so that no reader sees parts of two.
    fn write_counts(&self, syncs: u64) {
        let _ = self.counts.write_all_at(format!("{:020} {syncs:020}", self.attachment).as_bytes(), 0);
    }

    /// Locks the tree.
    ///
    /// # Errors
    /// EIO after the power cut.
    fn tree(&self) -> Outcome<MutexGuard<'_, Tree>> {
        let tree = lock(&self.tree);
        tree.check()?;
        Ok(tree)
    }

    fn file(&self, handle: FileHandle) -> Outcome<Arc<File>> {
        lock(&self.open).files.get(&handle.0).cloned().ok_or(nix::errno::Errno::EBADF)
    }

    fn attributes(&self, number: u64) -> Outcome<FileAttr> {
        self.tree()?.node(number).map(|node| attributes(number, node))
    }

    /// Makes a node, and counts that the kernel knows it.
    fn make(&self, request: &Request, at: (INodeNo, &OsStr), content: NodeContent, mode: u32) -> Outcome<FileAttr> {
        let mut tree = self.tree()?;
        let new = NewNode { mode: (mode & 0o7777) as u16, uid: request.uid(), gid: request.gid() };
        let number = tree.make(at.0.0, at.1, content, new)?;
        tree.look_up(number);
        tree.node(number).map(|node| attributes(number, node))
    }

    fn open(&self, number: u64) -> Outcome<u64> {
        let file = self.tree()?.open(number)?;
        let mut open = lock(&self.open);
        let handle = open.next();
        open.files.insert(handle, file);
        Ok(handle)
    }

    /// Returns what a folder contained when it was read from its beginning, so that a change between two reads neither
    /// hides an entry nor shows one twice.
    fn listing(&self, folder: u64, handle: FileHandle, is_anew: bool) -> Outcome<Listing> {
        let tree = self.tree()?;
        let mut open = lock(&self.open);
        if let Some(listed) = open.listings.get(&handle.0).filter(|_| !is_anew) {
            return Ok(listed.clone());
        }
        let kind = |number| tree.node(number).map_or(FileType::RegularFile, kind_of);
        let entries = tree.list(folder)?.into_iter().map(|(number, name)| (number, kind(number), name));
        let listed = Listing::new(entries.collect());
        open.listings.insert(handle.0, listed.clone());
        Ok(listed)
    }

    /// Performs a sync, and writes their number down, for those who count.
    fn sync(&self, sync: impl FnOnce(&mut Tree) -> Outcome<()>) -> Outcome<()> {
        let mut tree = self.tree()?;
        let before = tree.syncs();
        sync(&mut tree)?;
        if tree.syncs() > before {
            self.write_counts(tree.syncs());
        }
        Ok(())
    }

    fn resize(&self, number: u64, handle: Option<FileHandle>, size: u64) -> Outcome<()> {
        let mut tree = self.tree()?;
        let file = match handle.and_then(|handle| self.file(handle).ok()) {
            Some(file) => file,
            None => tree.open(number)?,
        };
        tree.resize(number, &file, size)
    }
}

fn kind_of(node: &Node) -> FileType {
    match &node.content {
        NodeContent::File(_) => FileType::RegularFile,
        NodeContent::Folder(..) => FileType::Directory,
        NodeContent::Link(_) => FileType::Symlink,
        NodeContent::Special(SpecialKind::Pipe) => FileType::NamedPipe,
        NodeContent::Special(SpecialKind::Socket) => FileType::Socket,
        NodeContent::Special(SpecialKind::Device) => FileType::CharDevice,
    }
}

fn attributes(number: u64, node: &Node) -> FileAttr {
    let (kind, size) = (kind_of(node), node.size());
    FileAttr {
        ino: INodeNo(number),
        size,
        blocks: size.div_ceil(512),
        atime: node.accessed,
        mtime: node.modified,
        ctime: node.changed,
        crtime: node.changed,
        kind,
        perm: node.mode,
        nlink: node.links.max(1),
        uid: node.uid,
        gid: node.gid,
        rdev: 0,
        blksize: BLOCK,
        flags: 0,
    }
}

fn time(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => SystemTime::now(),
    }
}

fn answer(reply: ReplyEmpty, done: Outcome<()>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(of_nix(error)),
    }
}

fn enter(reply: ReplyEntry, found: Outcome<FileAttr>) {
    match found {
        Ok(attributes) => reply.entry(&KEPT, &attributes, Generation(0)),
        Err(error) => reply.error(of_nix(error)),
    }
}

fn opened(reply: ReplyOpen, handle: Outcome<u64>) {
    match handle {
        Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::FOPEN_KEEP_CACHE),
        Err(error) => reply.error(of_nix(error)),
    }
}

impl Filesystem for LedgerMount {
    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = || {
            let mut tree = self.tree()?;
            let number = tree.child(parent.0, name)?;
            tree.look_up(number);
            tree.node(number).map(|node| attributes(number, node))
        };
        enter(reply, found());
    }

    fn forget(&self, _request: &Request, ino: INodeNo, nlookup: u64) {
        lock(&self.tree).forget(ino.0, nlookup);
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino.0) {
            Ok(attributes) => reply.attr(&KEPT, &attributes),
            Err(error) => reply.error(of_nix(error)),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let set = || {
            if let Some(size) = size {
                self.resize(ino.0, fh, size)?;
            }
            let mode = mode.map(|mode| (mode & 0o7777) as u16);
            let change = AttributeChange { mode, uid, gid, accessed: atime.map(time), modified: mtime.map(time) };
            self.tree()?.set_attributes(ino.0, change)?;
            self.attributes(ino.0)
        };
        match set() {
            Ok(attributes) => reply.attr(&KEPT, &attributes),
            Err(error) => reply.error(of_nix(error)),
        }
    }

    fn readlink(&self, _request: &Request, ino: INodeNo, reply: ReplyData) {
        let target = || match &self.tree()?.node(ino.0)?.content {
            NodeContent::Link(target) => Ok(target.clone()),
            _ => Err(nix::errno::Errno::EINVAL),
        };
        match target() {
            Ok(target) => reply.data(target.as_bytes()),
            Err(error) => reply.error(of_nix(error)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        let content = match mode & S_IFMT {
            0 | S_IFREG => Ok(NodeContent::File(Default::default())),
            S_IFIFO => Ok(NodeContent::Special(SpecialKind::Pipe)),
            S_IFSOCK => Ok(NodeContent::Special(SpecialKind::Socket)),
            S_IFCHR | S_IFBLK => Err(nix::errno::Errno::EPERM),
            _ => Err(nix::errno::Errno::EINVAL),
        };
        enter(reply, content.and_then(|content| self.make(request, (parent, name), content, mode)));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        enter(reply, self.make(request, (parent, name), NodeContent::Folder(Default::default(), parent.0), mode));
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.tree().and_then(|mut tree| tree.remove(parent.0, name, false)));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.tree().and_then(|mut tree| tree.remove(parent.0, name, true)));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, link_name: &OsStr, target: &Path, reply: ReplyEntry) {
        enter(reply, self.make(request, (parent, link_name), NodeContent::Link(target.into()), 0o777));
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        // What exchanges two names, or leaves a whiteout, is for file systems that lie over others.
        if !RenameFlags::RENAME_NOREPLACE.contains(flags) {
            return reply.error(Errno::EINVAL);
        }
        let renamed = self.tree().and_then(|mut tree| {
            tree.rename((parent.0, name), (newparent.0, newname), flags.contains(RenameFlags::RENAME_NOREPLACE))
        });
        answer(reply, renamed);
    }

    fn link(&self, _request: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        let linked = || {
            let mut tree = self.tree()?;
            tree.link(ino.0, newparent.0, newname)?;
            tree.look_up(ino.0);
            tree.node(ino.0).map(|node| attributes(ino.0, node))
        };
        enter(reply, linked());
    }

    fn open(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        opened(reply, self.open(ino.0));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.make(request, (parent, name), NodeContent::File(Default::default()), mode);
        match made.and_then(|attributes| Ok((attributes, self.open(attributes.ino.0)?))) {
            Ok((attributes, handle)) => {
                reply.created(&KEPT, &attributes, Generation(0), FileHandle(handle), FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(error) => reply.error(of_nix(error)),
        }
    }

    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = || {
            drop(self.tree()?);
            let (file, mut bytes) = (self.file(fh)?, vec![0; size as usize]);
            let mut done = 0;
            while done < bytes.len() {
                match file.read_at(&mut bytes[done..], offset + done as u64) {
                    Ok(0) => break,
                    Ok(more) => done += more,
                    Err(error) => return Err(super::tree::errno(error)),
                }
            }
            bytes.truncate(done);
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(of_nix(error)),
        }
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let write = || {
            let file = self.file(fh)?;
            self.tree()?.write(ino.0, &file, offset, data)?;
            // Mapped pages come with the flags of any that has the file open.
            if flags.0 & O_DSYNC != 0 && !write_flags.contains(WriteFlags::FUSE_WRITE_CACHE) {
                self.sync(|tree| tree.sync(ino.0))?;
            }
            Ok(())
        };
        match write() {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(of_nix(error)),
        }
    }

    fn flush(&self, _request: &Request, _ino: INodeNo, _fh: FileHandle, _lock_owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _request: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        lock(&self.open).files.remove(&fh.0);
        reply.ok();
    }

    fn fsync(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        answer(reply, self.sync(|tree| tree.sync(ino.0)));
    }

    fn opendir(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let handle = lock(&self.open).next();
        reply.opened(FileHandle(handle), FopenFlags::empty());
    }

    fn readdir(&self, _request: &Request, ino: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let entries = match self.listing(ino.0, fh, offset == 0) {
            Ok(entries) => entries,
            Err(error) => return reply.error(of_nix(error)),
        };
        for (place, (number, kind, name)) in entries.iter().enumerate().skip(offset as usize) {
            if reply.add(INodeNo(*number), place as u64 + 1, *kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _request: &Request, _ino: INodeNo, fh: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        lock(&self.open).listings.remove(&fh.0);
        reply.ok();
    }

    fn fsyncdir(&self, _request: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        let sync = |tree: &mut Tree| {
            tree.sync_folder(ino.0);
            Ok(())
        };
        answer(reply, self.sync(sync));
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match statvfs(&self.store) {
            Ok(found) => reply.statfs(
                found.blocks(),
                found.blocks_free(),
                found.blocks_available(),
                found.files(),
                found.files_free(),
                found.block_size() as u32,
                found.name_max() as u32,
                found.fragment_size() as u32,
            ),
            Err(error) => reply.error(of_nix(error)),
        }
    }

    fn fallocate(
        &self,
        _request: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let allocate = || {
            let file = self.file(fh)?;
            self.tree()?.allocate(ino.0, &file, (offset, length), mode)
        };
        answer(reply, allocate());
    }
}
