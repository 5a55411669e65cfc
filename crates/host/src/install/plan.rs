//! The commands that bring a system here: functions of its file alone.

use pubmark_model::system::{Install, System};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// The plugin that fetches Maven artifacts, pinned like all else.
const MAVEN_PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1";

/// How long a download may take.
const DOWNLOAD: Duration = Duration::from_secs(30 * 60);
/// How long a program may take to compile.
const COMPILE: Duration = Duration::from_secs(90 * 60);

/// A command, and how long it may take.
#[derive(Clone, Debug, PartialEq)]
pub struct InstallStep {
    /// Program and arguments; before them variables (`NAME=value`), as a shell has them.
    pub command: Vec<String>,
    /// The longest that it may take.
    pub limit: Duration,
}

fn step(limit: Duration, words: &[&str]) -> InstallStep {
    InstallStep { command: words.iter().map(|word| (*word).to_owned()).collect(), limit }
}

/// The file that says that an installation is whole: what was installed.
pub const STAMP: &str = "installed";

/// What stands in that file.
pub fn stamp(install: &Install) -> String {
    let mut text = String::new();
    for (from, pins) in
        [("maven", &install.maven), ("pip", &install.pip), ("cargo", &install.cargo), ("go", &install.go)]
    {
        for pin in pins {
            let _ = writeln!(text, "{from} {pin}");
        }
    }
    text
}

/// Debian packages that an installation needs: the system's own, and the
/// tools that fetch the rest, unless `has` finds their programs.
pub fn debian(install: &Install, has: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut packages = install.debian.clone();
    let tools = [
        (&install.maven, "mvn", "maven"),
        (&install.maven, "javac", "default-jdk-headless"),
        (&install.pip, "pip3", "python3-pip"),
    ];
    for (pins, program, package) in tools {
        if !pins.is_empty() && !has(program) {
            packages.push(package.to_owned());
        }
    }
    packages
}

/// Installs Debian packages. Another apt-get is waited for.
pub fn apt(packages: &[String], root: bool) -> InstallStep {
    let mut step = step(
        DOWNLOAD,
        &["sudo", "apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "--yes", "--no-install-recommends"],
    );
    if root {
        step.command.remove(0);
    }
    step.command.extend_from_slice(packages);
    step
}

/// Fetches what is pinned into a folder, in which `pom.xml` stands already.
pub fn fetch(system: &System, folder: &Path) -> Vec<InstallStep> {
    let folder = folder.display();
    let install = &system.install;
    let mut steps = Vec::new();
    let mut maven = |goal: &str, more: &[String]| {
        let pom = format!("{folder}/pom.xml");
        let goal = format!("{MAVEN_PLUGIN}:{goal}");
        // Strict checksums: what arrives damaged is refused.
        let mut fetch = step(DOWNLOAD, &["mvn", "-B", "-C", "-ntp", "-f", &pom, &goal, "-DincludeScope=runtime"]);
        fetch.command.extend_from_slice(more);
        steps.push(fetch);
    };
    let mut archives: Vec<&str> = install.maven.iter().filter_map(|pin| archive(pin)).collect();
    archives.sort_unstable();
    archives.dedup();
    let archives = archives.join(",");
    if install.maven.iter().any(|pin| archive(pin).is_none()) {
        let mut more = vec![format!("-DoutputDirectory={folder}/lib")];
        if !archives.is_empty() {
            more.push(format!("-DexcludeTypes={archives}"));
        }
        maven("copy-dependencies", &more);
    }
    if !archives.is_empty() {
        let more = [
            format!("-DoutputDirectory={folder}"),
            format!("-DincludeTypes={archives}"),
            "-DexcludeTransitive=true".to_owned(),
        ];
        maven("unpack-dependencies", &more);
    }
    if !install.pip.is_empty() {
        let target = format!("{folder}/python");
        let words = ["pip3", "install", "--disable-pip-version-check", "--no-deps", "--target", &target];
        let mut fetch = step(DOWNLOAD, &words);
        fetch.command.extend_from_slice(&install.pip);
        steps.push(fetch);
    }
    for pin in &install.cargo {
        // Not --locked: the lock files of older programs name libraries that newer compilers refuse.
        steps.push(step(COMPILE, &["cargo", "install", "--root", &folder.to_string(), pin]));
    }
    for pin in &install.go {
        steps.push(step(COMPILE, &[&format!("GOBIN={folder}/bin"), "go", "install", pin]));
    }
    steps
}

/// The type of an artifact that is unpacked instead of being put on the class path.
fn archive(pin: &str) -> Option<&str> {
    pin.split(':').nth(3).filter(|extension| *extension != "jar")
}

/// The project that asks Maven for a system's artifacts.
pub fn pom(install: &Install) -> String {
    let mut text = String::from(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n  \
         <groupId>pubmark</groupId>\n  <artifactId>system</artifactId>\n  <version>1</version>\n  \
         <packaging>pom</packaging>\n  <dependencies>\n",
    );
    for pin in &install.maven {
        text.push_str("    <dependency>");
        let tags = ["groupId", "artifactId", "version", "type", "classifier"];
        for (tag, value) in tags.iter().zip(pin.split(':')) {
            let value = value.replace('&', "&amp;").replace('<', "&lt;");
            let _ = write!(text, "<{tag}>{value}</{tag}>");
        }
        text.push_str("</dependency>\n");
    }
    text.push_str("  </dependencies>\n</project>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(install: &str) -> System {
        let top =
            "title = \"T\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n[install]\n";
        System::parse("t", "t.toml", &format!("{top}{install}")).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn lines(steps: &[InstallStep]) -> Vec<String> {
        steps.iter().map(|step| step.command.join(" ")).collect()
    }

    #[test]
    fn tools_that_are_missing_come_first() {
        let install = system("debian = [\"a\"]\nmaven = [\"g:a:1\"]\npip = [\"p==2\"]").install;
        assert_eq!(debian(&install, &|_| false), ["a", "maven", "default-jdk-headless", "python3-pip"]);
        assert_eq!(debian(&install, &|program| program == "mvn"), ["a", "default-jdk-headless", "python3-pip"]);
        assert_eq!(debian(&system("debian = [\"a\"]").install, &|_| false), ["a"]);
        let packages = ["a".to_owned(), "b".to_owned()];
        let line = "apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends a b";
        assert_eq!(lines(&[apt(&packages, true), apt(&packages, false)]), [line.to_owned(), format!("sudo {line}")]);
    }

    #[test]
    fn jars_go_to_lib_and_archives_are_unpacked() {
        let mixed = system("maven = [\"g:a:1\", \"g:b:2:tar.gz:bin\"]");
        let maven = format!("mvn -B -C -ntp -f /c/pom.xml {MAVEN_PLUGIN}");
        let jars =
            format!("{maven}:copy-dependencies -DincludeScope=runtime -DoutputDirectory=/c/lib -DexcludeTypes=tar.gz");
        let archives = format!(
            "{maven}:unpack-dependencies -DincludeScope=runtime -DoutputDirectory=/c -DincludeTypes=tar.gz -DexcludeTransitive=true"
        );
        assert_eq!(lines(&fetch(&mixed, Path::new("/c"))), [jars, archives]);
        let pom = pom(&mixed.install);
        assert!(
            pom.contains("<groupId>g</groupId><artifactId>a</artifactId><version>1</version></dependency>"),
            "{pom}"
        );
        assert!(
            pom.contains("<version>2</version><type>tar.gz</type><classifier>bin</classifier></dependency>"),
            "{pom}"
        );
    }

    #[test]
    fn programs_of_python_rust_and_go_stay_in_the_folder() {
        let system = system("pip = [\"p==2\"]\ncargo = [\"r@3\"]\ngo = [\"g/h@v4\"]");
        let wanted = [
            "pip3 install --disable-pip-version-check --no-deps --target /c/python p==2",
            "cargo install --root /c r@3",
            "GOBIN=/c/bin go install g/h@v4",
        ];
        assert_eq!(lines(&fetch(&system, Path::new("/c"))), wanted);
        assert_eq!(stamp(&system.install), "pip p==2\ncargo r@3\ngo g/h@v4\n");
        assert!(fetch(&self::system("manual = \"ask\""), Path::new("/c")).is_empty());
    }
}
