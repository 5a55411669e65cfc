//! The commands that install a system here, computed from its file only.

use pubmark_model::system::{Install, System};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The plugin that fetches Maven artifacts, pinned like everything else.
const MAVEN_PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1";

/// Time limit of a download.
const DOWNLOAD: Duration = Duration::from_secs(30 * 60);
/// Time limit of a compilation.
const COMPILE: Duration = Duration::from_secs(90 * 60);

/// A command, and its time limit.
#[derive(Clone, Debug, PartialEq)]
pub struct InstallStep {
    /// Program and arguments; before them variables (`NAME=value`), as in a shell.
    pub command: Vec<String>,
    /// Working folder; `None` for that of pubmark itself.
    pub folder: Option<PathBuf>,
    /// Time limit.
    pub limit: Duration,
}

fn step(limit: Duration, words: &[&str]) -> InstallStep {
    InstallStep { command: words.iter().map(|word| (*word).to_owned()).collect(), folder: None, limit }
}

/// A Python that can make environments. It is not a program's name, but stands for
/// Debian's separate package.
pub const PYTHON: &str = "python3 with venv";

/// The folder of Python's environment.
pub const ENVIRONMENT: &str = "python";

/// The file that marks an installation as complete, and lists what was installed.
pub const STAMP: &str = "installed";

/// Returns the content of that file.
pub fn stamp(system: &System) -> String {
    let install = &system.install;
    let mut text = String::new();
    if !install.build.is_empty() || !system.carried.is_empty() {
        // A build has no version: the same command in another folder builds something
        // else.
        let _ = writeln!(text, "build-in {}", system.here);
    }
    let pinned = [("maven", &install.maven), ("pip", &install.pip), ("npm", &install.npm), ("cargo", &install.cargo)];
    for (from, pins) in pinned.into_iter().chain([("go", &install.go), ("build", &install.build)]) {
        for pin in pins {
            let _ = writeln!(text, "{from} {pin}");
        }
    }
    text
}

/// Returns the Debian packages that an installation needs: the system's own, and those of
/// the fetching tools that `has` does not find.
pub fn debian(install: &Install, has: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut packages = install.apt.clone();
    let tools = [
        (&install.maven, "mvn", "maven"),
        (&install.maven, "javac", "default-jdk-headless"),
        (&install.pip, PYTHON, "python3-venv"),
        (&install.npm, "npm", "npm"),
    ];
    for (pins, program, package) in tools {
        if !pins.is_empty() && !has(program) {
            packages.push(package.to_owned());
        }
    }
    packages
}

/// Installs Debian packages. It waits for another running apt-get.
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

/// Fetches what is pinned into a folder that already contains `pom.xml`.
pub fn fetch(system: &System, folder: &Path) -> Vec<InstallStep> {
    let folder = folder.display();
    let install = &system.install;
    let mut steps = Vec::new();
    let mut maven = |goal: &str, more: &[String]| {
        let pom = format!("{folder}/pom.xml");
        let goal = format!("{MAVEN_PLUGIN}:{goal}");
        // Strict checksums: damaged downloads are refused.
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
        let environment = format!("{folder}/{ENVIRONMENT}");
        steps.push(step(DOWNLOAD, &["python3", "-m", "venv", &environment]));
        let python = format!("{environment}/bin/python");
        let mut fetch = step(DOWNLOAD, &[&python, "-m", "pip", "install", "--disable-pip-version-check"]);
        fetch.command.extend_from_slice(&install.pip);
        steps.push(fetch);
    }
    if !install.npm.is_empty() {
        let prefix = folder.to_string();
        let words = ["npm", "install", "--prefix", &prefix, "--save-exact", "--no-audit", "--no-fund"];
        let mut fetch = step(DOWNLOAD, &words);
        fetch.command.extend_from_slice(&install.npm);
        steps.push(fetch);
    }
    for pin in &install.cargo {
        // Not --locked: the lock files of older programs name libraries that newer compilers refuse.
        steps.push(step(COMPILE, &["cargo", "install", "--root", &folder.to_string(), pin]));
    }
    for pin in &install.go {
        steps.push(step(COMPILE, &[&format!("GOBIN={folder}/bin"), "go", "install", pin]));
    }
    if !install.build.is_empty() {
        let cache = folder.to_string();
        let command = install.build.iter().map(|word| system.fill_for_agent(word, &cache)).collect();
        let folder = Some(PathBuf::from(&system.here)).filter(|folder| !folder.as_os_str().is_empty());
        steps.push(InstallStep { command, folder, limit: COMPILE });
    }
    steps
}

/// Returns the type of an artifact that is unpacked instead of being put on the class
/// path.
fn archive(pin: &str) -> Option<&str> {
    pin.split(':').nth(3).filter(|extension| *extension != "jar")
}

/// Returns the Maven project that depends on a system's artifacts.
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
        let install = system("apt = [\"a\"]\nmaven = [\"g:a:1\"]\npip = [\"p==2\"]").install;
        assert_eq!(debian(&install, &|_| false), ["a", "maven", "default-jdk-headless", "python3-venv"]);
        assert_eq!(debian(&install, &|program| program == "mvn"), ["a", "default-jdk-headless", "python3-venv"]);
        assert_eq!(debian(&system("apt = [\"a\"]").install, &|_| false), ["a"]);
        assert_eq!(debian(&system("npm = [\"a@1.0.0\"]").install, &|_| false), ["npm"]);
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
    fn what_is_built_is_built_where_its_file_is() {
        let mut system = system("build = [\"make\", \"PREFIX={cache}\", \"-C\", \"{here}/src\"]");
        system.here = "/home/me/mine".into();
        let steps = fetch(&system, Path::new("/c"));
        assert_eq!(lines(&steps), ["make PREFIX=/c -C /home/me/mine/src"]);
        assert_eq!(steps[0].folder.as_deref(), Some(Path::new("/home/me/mine")));
        assert!(system.install.cached() && stamp(&system).starts_with("build-in /home/me/mine\nbuild make\n"));
    }

    #[test]
    fn programs_of_python_node_rust_and_go_stay_in_the_folder() {
        let system = system("pip = [\"p==2\"]\nnpm = [\"@s/n@5.0.1\"]\ncargo = [\"r@3\"]\ngo = [\"g/h@v4\"]");
        let wanted = [
            "python3 -m venv /c/python",
            "/c/python/bin/python -m pip install --disable-pip-version-check p==2",
            "npm install --prefix /c --save-exact --no-audit --no-fund @s/n@5.0.1",
            "cargo install --root /c r@3",
            "GOBIN=/c/bin go install g/h@v4",
        ];
        assert_eq!(lines(&fetch(&system, Path::new("/c"))), wanted);
        assert_eq!(stamp(&system), "pip p==2\nnpm @s/n@5.0.1\ncargo r@3\ngo g/h@v4\n");
        assert!(fetch(&self::system("manual = \"ask\""), Path::new("/c")).is_empty());
    }
}
