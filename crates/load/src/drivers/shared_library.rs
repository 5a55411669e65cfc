//! Common parts of the drivers of C libraries: loading a library at run time, a table of
//! its functions, and a bind that finds a free port.
//!
//! Nothing is linked: a build needs no C library, and two versions of one library can be
//! compared by their paths.

use super::socket::{DriverError, SocketSpec, WAIT_MS};
use super::{build_info, port};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use nix::libc;
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::workload::{Pattern, Transport};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

/// [`WAIT_MS`] as a duration.
pub(super) const WAIT: Duration = Duration::from_millis(WAIT_MS as u64);

/// Names of a library, here and in packages.
pub(super) struct Names {
    /// The system that it belongs to: `zeromq`.
    pub(super) system: &'static str,
    /// The library's common name: `libzmq`.
    pub(super) library: &'static str,
    /// Names passed to the loader, in this order.
    pub(super) sonames: &'static [&'static str],
    /// The Debian package that contains it.
    pub(super) debian: &'static str,
}

/// A loaded library. It stays loaded until the process ends, since some of these
/// libraries keep their own threads until then: pointers into it never dangle.
pub(super) struct SharedLibrary {
    names: &'static Names,
    handle: Library,
    asked: String,
}

impl SharedLibrary {
    /// Loads the path in the option `library`, or else the library that the loader finds.
    pub(super) fn open(names: &'static Names, options: &Options) -> Result<Self, DriverError> {
        match options.text("library") {
            Some(path) => Self::open_named(names, path),
            None => Self::open_installed(names),
        }
    }

    fn open_installed(names: &'static Names) -> Result<Self, DriverError> {
        let mut reasons = Vec::new();
        for soname in names.sonames {
            match load(soname) {
                Ok(handle) => {
                    return Ok(SharedLibrary { names, handle, asked: (*soname).into() });
                }
                Err(reason) => reasons.push(reason),
            }
        }
        let Names { system, debian, .. } = names;
        Err(DriverError::new(format!(
            "{} is not installed ({}): run `pubmark systems {system} --install` or `apt-get install {debian}`, \
             or name its path with the option `library`",
            names.sonames[0],
            reasons.join("; ")
        )))
    }

    fn open_named(names: &'static Names, path: &str) -> Result<Self, DriverError> {
        let library = names.library;
        // Without a slash it is a name, which the loader looks up in its own folders.
        if path.contains('/') && !Path::new(path).exists() {
            return Err(DriverError::new(format!(
                "the option `library` names {path}, which does not exist: name a {library} that does, \
                 or leave the option out to take the installed one"
            )));
        }
        let handle = load(path).map_err(|reason| {
            DriverError::new(format!(
                "the option `library` names {path}, which is not a shared library that can be loaded here ({reason}): \
                 name a {library} built for this machine, or leave the option out to take the installed one"
            ))
        })?;
        Ok(SharedLibrary { names, handle, asked: path.into() })
    }

    /// Returns the address of a function as a function pointer.
    ///
    /// # Safety
    /// `F` must be the type of an `extern "C"` function pointer that matches the C
    /// declaration of `name`.
    pub(super) unsafe fn function<F: Copy>(&self, name: &'static CStr) -> Result<F, DriverError> {
        // SAFETY: the caller vouches for the type. The library is never unloaded, so the copied pointer stays valid.
        match unsafe { self.handle.get::<F>(name.to_bytes_with_nul()) } {
            Ok(symbol) => Ok(*symbol),
            Err(_) => Err(self.refuse(&format!(
                "has no function {}, so it is not a {}",
                name.to_string_lossy(),
                self.names.library
            ))),
        }
    }

    /// Makes an error with the reason why this library cannot be used, and advice.
    pub(super) fn refuse(&self, why: &str) -> DriverError {
        let Names { system, library, debian, .. } = self.names;
        DriverError::new(format!(
            "{} {why}: name another {library} with the option `library`, or leave the option out to take the installed one \
             (`pubmark systems {system} --install` or `apt-get install {debian}`)",
            self.asked
        ))
    }

    /// Returns the real path of the file that contains a function of this library.
    pub(super) fn path_of(&self, function: *const c_void) -> String {
        // SAFETY: Dl_info is a C struct of pointers, for which all zeroes is a value.
        let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: dladdr only compares the address and writes to `found`, which outlives the call.
        let known = unsafe { libc::dladdr(function, &mut found) } != 0;
        if !known || found.dli_fname.is_null() {
            return self.asked.clone();
        }
        // SAFETY: dladdr succeeded, so the name is a NUL-terminated string that the loader keeps for as long as the library.
        let path = unsafe { text(found.dli_fname) };
        std::fs::canonicalize(&path).map_or(path, |real| real.display().to_string())
    }

    /// Keeps the library until the end of the process and returns its fields of the
    /// record.
    pub(super) fn keep(self, version: &str, function: *const c_void) -> Map<String, Value> {
        let mut versions = Map::new();
        versions.insert("library".into(), self.names.library.into());
        versions.insert("version".into(), version.into());
        versions.insert("path".into(), self.path_of(function).into());
        std::mem::forget(self.handle);
        versions
    }
}

/// Returns the build info of a driver that calls the functions of a library with these
/// `versions`.
pub(super) fn made(versions: &Map<String, Value>, copies: &str) -> BTreeMap<String, String> {
    let text = |key: &str| versions.get(key).and_then(Value::as_str).unwrap_or_default();
    let library = format!("{} {}", text("library"), text("version"));
    build_info::in_rust(&[
        ("binding", "none: C functions"),
        ("library", &library),
        ("call", "blocking"),
        ("copies", copies),
    ])
}

fn load(name: &str) -> Result<Library, String> {
    // SAFETY: loading runs the library's own initialisers. That is what the user asks for by naming it, and the known ones are harmless.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        let mut deepest: &dyn std::error::Error = &error;
        while let Some(source) = deepest.source() {
            deepest = source;
        }
        deepest.to_string()
    })
}

/// Returns a C string as text.
///
/// # Safety
/// `pointer` must be null, or point at a NUL-terminated string that no one changes during
/// the call.
pub(super) unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return "unknown error".into();
    }
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// Declares a struct of C function pointers, and how to fill it from a library.
macro_rules! function_table {
    ($(#[$doc:meta])* struct $table:ident { $(fn $name:ident($($argument:ty),* $(,)?) $(-> $result:ty)?;)+ }) => {
        $(#[$doc])*
        struct $table { $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?),+ }

        impl $table {
            /// Looks up every function, so that a library without one of them is refused at
            /// once.
            fn load(library: &$crate::drivers::shared_library::SharedLibrary) -> Result<Self, $crate::drivers::socket::DriverError> {
                const fn name(bytes: &'static [u8]) -> &'static std::ffi::CStr {
                    match std::ffi::CStr::from_bytes_with_nul(bytes) { Ok(name) => name, Err(_) => c"" }
                }
                Ok($table { $(
                    // SAFETY: the type is that of the function's declaration in the library's C header.
                    $name: unsafe { library.function(name(concat!(stringify!($name), "\0").as_bytes())) }?
                ),+ })
            }
        }
    };
}
pub(super) use function_table;

/// Binds an endpoint, or for `tcp://HOST:0` the first free port, and returns the endpoint
/// that others can connect to. `bind` returns whether it succeeded or the address is in
/// use.
pub fn bind_free(
    endpoint: &str,
    mut bind: impl FnMut(&str) -> Result<bool, DriverError>,
) -> Result<String, DriverError> {
    let Some(host) = endpoint.strip_prefix("tcp://").and_then(|address| address.strip_suffix(":0")) else {
        return match bind(endpoint)? {
            true => Ok(endpoint.into()),
            false => Err(DriverError::new(format!(
                "cannot bind {endpoint}: the address is in use; end what uses it, or bind another"
            ))),
        };
    };
    let address = host.trim_matches(['[', ']']).parse().unwrap_or(Ipv4Addr::LOCALHOST.into());
    let mut tried = 0;
    for port in port::candidates(address) {
        let candidate = format!("tcp://{host}:{port}");
        if bind(&candidate)? {
            return Ok(candidate);
        }
        tried += 1;
    }
    Err(DriverError::new(format!(
        "cannot bind {endpoint}: {tried} ports that looked free were in use; end what takes them all"
    )))
}

/// Refuses the transports and patterns that these libraries do not have.
pub fn check_spec(system: &str, spec: &SocketSpec<'_>) -> Result<(), DriverError> {
    match spec.transport {
        Transport::Inproc | Transport::Ipc | Transport::Tcp => {}
        other => {
            return Err(DriverError::new(format!("{system} has no transport {other}: use inproc, ipc or tcp")));
        }
    }
    for endpoint in spec.bind.into_iter().chain(spec.connect.iter().map(String::as_str)) {
        if !endpoint.starts_with(&format!("{}://", spec.transport)) {
            return Err(DriverError::new(format!(
                "{endpoint} is not a {0} endpoint: it must start with {0}://",
                spec.transport
            )));
        }
    }
    Ok(())
}

/// Converts an endpoint to a C string.
pub(super) fn c_endpoint(endpoint: &str) -> Result<CString, DriverError> {
    CString::new(endpoint)
        .map_err(|_| DriverError::new(format!("the endpoint {endpoint:?} has a NUL in it: leave it out")))
}

/// Refuses a number of I/O threads other than 1, for libraries without such an option.
pub(super) fn check_one_io_thread(system: &str, threads: &str, options: &Options) -> Result<(), DriverError> {
    match options.get("io_threads").and_then(Value::as_u64) {
        None | Some(1) => Ok(()),
        Some(other) => {
            Err(DriverError::new(format!("{system}: io_threads is {other}, but {threads}: leave io_threads at 1")))
        }
    }
}

/// The socket types, which have the same names in all libraries; no library has all of
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Copies each message to every subscriber.
    Pub,
    /// Receives what publishers send.
    Sub,
    /// Distributes messages among pullers.
    Push,
    /// Receives its share of pushed messages.
    Pull,
    /// Sends a request, then waits for the reply.
    Req,
    /// Waits for a request, then replies.
    Rep,
    /// One end of a pair: sent messages wait for the other end.
    Pair,
    /// Sends requests without having to wait for replies.
    Dealer,
    /// Replies to the requester that it names.
    Router,
    /// Sends a request to all respondents.
    Surveyor,
    /// Replies to a survey.
    Respondent,
    /// Sends to all connected peers, and receives from all of them.
    Bus,
}

/// Socket types that a library has in addition to the usual ones, by the option that
/// selects them: the option's name, its value, the type that sends or requests, and the
/// type that receives or replies.
pub type Others = &'static [(&'static str, &'static str, Kind, Kind)];

impl Kind {
    /// Returns the socket type of a client.
    pub fn of(spec: &SocketSpec<'_>, others: Others) -> Result<Kind, DriverError> {
        let (option, usual, (sends, hears)) = match spec.pattern {
            Pattern::Pairs => ("pairs", "pub-sub", (Kind::Pub, Kind::Sub)),
            Pattern::FanOut => ("fan_out", "pub-sub", (Kind::Pub, Kind::Sub)),
            Pattern::RequestReply => ("request_reply", "req-rep", (Kind::Req, Kind::Rep)),
            pattern if pattern.competing() => ("", "", (Kind::Push, Kind::Pull)),
            _ => ("", "", (Kind::Pub, Kind::Sub)),
        };
        let (sends, hears) = match spec.options.text(option) {
            None => (sends, hears),
            Some(word) if word == usual => (sends, hears),
            Some(word) => {
                let mine = others.iter().filter(|(of, ..)| *of == option);
                let found = mine.clone().find(|(_, known, ..)| *known == word);
                let (_, _, sends, hears) = found.ok_or_else(|| {
                    let known = [usual].into_iter().chain(mine.map(|(_, word, ..)| *word)).collect::<Vec<_>>();
                    DriverError::new(format!("{option} is `{word}`, which is not one of {}", known.join(", ")))
                })?;
                (*sends, *hears)
            }
        };
        Ok(if spec.role.sends() { sends } else { hears })
    }
}

/// Returns a count as the C `int` of a socket option, at most `most`.
pub fn clamped(value: u64, most: i32) -> i32 {
    i32::try_from(value).unwrap_or(most).min(most)
}

/// Returns the buffer that the kernel grants a process that asks for `asked` bytes: at
/// most its limit (`net.core.wmem_max` for sending, `net.core.rmem_max` for receiving).
/// It then doubles the figure for its own book-keeping.
pub fn kernel_grants(asked: i32, limit: &str) -> i64 {
    let limit = std::fs::read_to_string(format!("/proc/sys/net/core/{limit}")).ok();
    let limit = limit.and_then(|text| text.trim().parse().ok()).unwrap_or(i64::MAX);
    i64::from(asked).min(limit)
}
