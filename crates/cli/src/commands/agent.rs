//! `pubmark agent`.

use crate::failure::{Code, Failure};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use pubmark_load::agent::{BUILT_IN, serve};
use std::io::{BufReader, BufWriter};

/// Ends the process if a thread panics: without that thread its clients would be silent, and everybody would wait for them.
fn end_at_a_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

/// Serves a coordinator until it sends the command to stop or has exited.
pub fn agent() -> Result<Code, Failure> {
    // A stopped agent wakes up when its coordinator dies, finds its input closed, and ends. (If this cannot be set, a
    // stopped agent stays.)
    let _ = set_pdeathsig(Signal::SIGCONT);
    end_at_a_panic();
    let served = serve(BUILT_IN, BufReader::new(std::io::stdin()), BufWriter::new(std::io::stdout()));
    // Client threads may still be in library calls: end without them.
    match served {
        Ok(_) => std::process::exit(Code::Done as i32),
        Err(error) => Err(Failure::run(format!("the coordinator has gone: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::end_at_a_panic;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    const CHILD: &str = "PUBMARK_TEST_OF_PANICS";

    /// The test runs itself as another process, whose main thread would wait for ever.
    #[test]
    fn a_thread_that_panics_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            end_at_a_panic();
            let _ = std::thread::spawn(|| panic!("on purpose"));
            loop {
                std::thread::park();
            }
        }
        let name = "commands::agent::tests::a_thread_that_panics_ends_the_process";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let ended = child.args(["--exact", name]).env(CHILD, "1").stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert_eq!(ended.unwrap().signal(), Some(nix::libc::SIGABRT));
    }
}
