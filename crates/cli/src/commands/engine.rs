//! `--on ENGINE`: another program chooses the machines, and runs this one over them.

use super::shared::program;
use crate::failure::Failure;
use pubmark_host::programs::find_program;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Replaces this process by an engine's program, `pubmark-ENGINE exec [--address ADDRESS] -- ARGUMENTS`. It runs what
/// the variable PUBMARK names with those arguments, and with a file of hosts. Returns only if that fails, with the
/// reason.
pub fn hand_over(on: &str, arguments: impl Iterator<Item = OsString>) -> Failure {
    let (name, address) = on.split_once(':').map_or((on, None), |(name, address)| (name, Some(address)));
    let sound = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !sound {
        return Failure::usage(format!("--on {on}: `{name}` is not a valid engine name: write ray, or ray:ADDRESS"));
    }
    let helper = format!("pubmark-{name}");
    let Some(path) = find_program(&helper) else {
        let how = format!("install it (`pip install {helper}`), or name the machines with --hosts FILE");
        return Failure::usage(format!("--on {on}: there is no program `{helper}` on the path: {how}"));
    };
    let own = match program() {
        Ok(own) => own,
        Err(failure) => return failure,
    };
    let mut command = Command::new(&path);
    command.arg("exec").args(address.map(|address| format!("--address={address}"))).arg("--");
    command.args(without(arguments)).env("PUBMARK", own);
    Failure::run(format!("`{}` cannot be run: {}", path.display(), command.exec()))
}

/// Returns the arguments without the option itself.
fn without(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut kept, mut value_follows) = (Vec::new(), false);
    for argument in arguments {
        if std::mem::take(&mut value_follows) {
            continue;
        }
        value_follows = argument == "--on";
        if !value_follows && !argument.to_string_lossy().starts_with("--on=") {
            kept.push(argument);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_option_is_handed_over() {
        for line in ["run s --on ray:auto --set a=--on -q", "run s --on=ray:auto --set a=--on -q"] {
            let kept = without(line.split(' ').map(OsString::from));
            assert_eq!(kept.join(" ".as_ref()), "run s --set a=--on -q", "{line}");
        }
    }
}
