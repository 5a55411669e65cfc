//! Files that others may have created: reading with limits, and writing as a whole.
//!
//! A results folder may come from another person, and a path that the user typed may name anything:
//! a FIFO, which never ends, a device, or a link to another file.
#![forbid(unsafe_code)]

use nix::unistd::{AccessFlags, access};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Largest study, hosts file, system file, CSV file or `environment.json` that is read, bytes.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Treatment of a symbolic link in place of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Follows it: the user named this path.
    Follow,
    /// Refuses it: pubmark itself creates no links in a results folder.
    Refuse,
}

/// Opens a regular file for reading. Does not wait for the other end of a FIFO.
///
/// # Errors
/// It cannot be opened, or, with [`ErrorKind::InvalidInput`], it is not a regular file.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path, links)
}

/// Opens a regular file like [`open`], with the access that `options` select.
///
/// # Errors
/// Those of [`open`].
pub fn open_with(options: &mut OpenOptions, path: &Path, links: Links) -> io::Result<File> {
    let follow = if links == Links::Refuse { nix::libc::O_NOFOLLOW } else { 0 };
    let flags = follow | nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let opened = options.custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(nix::libc::ELOOP) if links == Links::Refuse => refused("a symbolic link"),
        // A socket, or a FIFO without a reader.
        Some(nix::libc::ENXIO) => refused("a socket or a FIFO"),
        _ => error,
    })?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    Err(refused(match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "a socket",
    }))
}

fn refused(kind: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("it is {kind}, and not a file"))
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// Those of [`open`], and [`ErrorKind::FileTooLarge`].
pub fn read(path: &Path, most: u64, links: Links) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, links)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(ErrorKind::FileTooLarge, format!("larger than {most} bytes"))),
        false => Ok(bytes),
    }
}

/// Reads a regular text file of at most [`TEXT_BYTES_MAX`] bytes.
///
/// # Errors
/// Those of [`read`], and [`ErrorKind::InvalidData`] with the line from which on it is not UTF-8.
pub fn read_text(path: &Path, links: Links) -> io::Result<String> {
    read_text_of(path, TEXT_BYTES_MAX, links)
}

/// Reads a regular text file of at most `most` bytes.
///
/// # Errors
/// Those of [`read_text`].
pub fn read_text_of(path: &Path, most: u64, links: Links) -> io::Result<String> {
    String::from_utf8(read(path, most, links)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        io::Error::new(ErrorKind::InvalidData, format!("it is not UTF-8 text from line {line} on"))
    })
}

/// Writes a file completely or not at all: writes a new file in its folder and renames it. A link
/// of that name is replaced, and its target is left unchanged.
///
/// # Errors
/// The new file cannot be written; it is then removed.
pub fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| refused("a folder"))?.to_string_lossy();
    let fresh = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    // It may be left from a killed process with the same ID.
    let _ = std::fs::remove_file(&fresh);
    let mut out = BufWriter::new(File::create_new(&fresh)?);
    let written = write(&mut out).and_then(|()| out.flush()).and_then(|()| std::fs::rename(&fresh, path));
    written.inspect_err(|_| {
        let _ = std::fs::remove_file(&fresh);
    })
}

/// Checks that a file can be written at a path, without creating one.
///
/// # Errors
/// Its folder does not exist or is not writable, or an existing file is not writable.
pub fn check_writable(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(refused("a folder"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match path.exists() {
        true => access(path, AccessFlags::W_OK)?,
        false if !folder.exists() => {
            return Err(io::Error::new(ErrorKind::NotFound, format!("there is no folder {}", folder.display())));
        }
        false => access(folder, AccessFlags::W_OK | AccessFlags::X_OK)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    /// Everything that a path may name and that is not a regular file.
    #[test]
    fn only_regular_files_are_read() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        nix::unistd::mkfifo(&at("fifo"), Mode::S_IRWXU).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        let said = |name: &str, links| read_text(&at(name), links).unwrap_err().to_string();
        assert_eq!(read_text(&at("file"), Links::Refuse).unwrap(), "text");
        assert_eq!(read_text(&at("link"), Links::Follow).unwrap(), "text");
        assert_eq!(said("link", Links::Refuse), "it is a symbolic link, and not a file");
        assert_eq!(said("zero", Links::Refuse), "it is a symbolic link, and not a file");
        for links in [Links::Follow, Links::Refuse] {
            assert_eq!(said("fifo", links), "it is a FIFO, and not a file");
            assert_eq!(said("socket", links), "it is a socket or a FIFO, and not a file");
            assert_eq!(said("", links), "it is a folder, and not a file");
        }
        assert_eq!(said("zero", Links::Follow), "it is a device, and not a file");
        // The FIFO has no reader, and the open does not wait for one.
        let appended = open_with(OpenOptions::new().append(true), &at("fifo"), Links::Refuse);
        assert_eq!(appended.unwrap_err().to_string(), "it is a socket or a FIFO, and not a file");
        assert_eq!(read(&at("gone"), 1, Links::Follow).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5, Links::Refuse).unwrap(), b"12345");
        let error = read(&path, 4, Links::Refuse).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::FileTooLarge, "larger than 4 bytes"));
        // A very long file, of which only its length is known.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read_text(&path, Links::Refuse).unwrap_err().kind(), ErrorKind::FileTooLarge);
        std::fs::write(&path, b"one\n\xff").unwrap();
        assert_eq!(read_text(&path, Links::Refuse).unwrap_err().to_string(), "it is not UTF-8 text from line 2 on");
    }

    #[test]
    fn a_file_is_replaced_whole_and_no_link_is_written_through() {
        let place = tempfile::tempdir().unwrap();
        let (precious, path) = (place.path().join("precious"), place.path().join("summary.csv"));
        std::fs::write(&precious, "theirs").unwrap();
        symlink(&precious, &path).unwrap();
        replace(&path, |out| out.write_all(b"one")).unwrap();
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "theirs");
        assert!(std::fs::symlink_metadata(&path).unwrap().is_file());
        let failed = |out: &mut dyn Write| {
            out.write_all(b"half")?;
            Err(ErrorKind::StorageFull.into())
        };
        assert_eq!(replace(&path, failed).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
        // A link under the new file's name is not followed.
        symlink(&precious, place.path().join(format!(".summary.csv.{}.new", std::process::id()))).unwrap();
        replace(&path, |out| out.write_all(b"two")).unwrap();
        assert_eq!(
            (std::fs::read_to_string(&precious).unwrap(), std::fs::read_to_string(&path).unwrap()),
            ("theirs".into(), "two".into())
        );
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn a_place_that_takes_no_file_is_known_before() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        check_writable(&at("new.xml")).unwrap();
        assert!(!at("new.xml").exists());
        std::fs::write(at("old.xml"), "").unwrap();
        check_writable(&at("old.xml")).unwrap();
        check_writable(Path::new("new.xml")).unwrap();
        let said = |path: &Path| check_writable(path).unwrap_err();
        assert!(said(&at("none/x.xml")).to_string().starts_with("there is no folder "));
        assert_eq!(said(place.path()).to_string(), "it is a folder, and not a file");
    }
}
