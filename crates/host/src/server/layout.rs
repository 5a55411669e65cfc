//! The server's part of a system file, with placeholders filled in for one run.

use super::ports;
use crate::error::HostError;
use pubmark_model::cluster::ClusterSpec;
use pubmark_model::server::{ContainerSpec, Places, ServerSpec};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Returns all texts of a server that may contain a port.
fn texts(spec: &ServerSpec) -> Vec<&String> {
    let mut texts = vec![&spec.endpoint, &spec.subscriber_endpoint, &spec.ready_log];
    texts.extend(&spec.command);
    texts.extend(spec.prepare.iter().flatten());
    let container = spec.container.iter();
    let pairs = spec.environment.iter().chain(&spec.files);
    let pairs =
        pairs.chain(container.clone().flat_map(|container| container.environment.iter().chain(&container.files)));
    texts.extend(pairs.flat_map(|(name, value)| [name, value]));
    texts.extend(container.flat_map(|container| &container.command));
    texts.extend(spec.cluster.iter().flat_map(ClusterSpec::texts));
    texts
}

/// Fills in the folder, and free ports for all names that have none yet.
pub fn settle(spec: &ServerSpec, places: &mut Places, dir: &Path) -> Result<(), HostError> {
    places.dir = dir.display().to_string();
    let mut names: Vec<String> = texts(spec).into_iter().flat_map(|text| Places::ports_in(text)).collect();
    names.sort();
    names.dedup();
    names.retain(|name| !places.ports.iter().any(|(known, _)| known == name));
    let found = ports::free(names.len())?;
    places.ports.extend(names.into_iter().zip(found));
    Ok(())
}

/// Fills in each of some texts.
pub fn fill(places: &Places, texts: &[String]) -> Result<Vec<String>, HostError> {
    texts.iter().map(|text| Ok(places.fill(text)?)).collect()
}

/// Fills in the values of variables.
pub fn fill_values(places: &Places, pairs: &[(String, String)]) -> Result<Vec<(String, String)>, HostError> {
    pairs.iter().map(|(name, value)| Ok((name.clone(), places.fill(value)?))).collect()
}

/// Writes the server's files below its folder.
pub fn write_files(spec: &ServerSpec, places: &Places, dir: &Path) -> Result<(), HostError> {
    for (path, text) in &spec.files {
        let path = PathBuf::from(places.fill(path)?);
        let inside = path.strip_prefix(dir).unwrap_or(&path);
        if !inside.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(format!("the file {} is not below the server's folder", path.display()).into());
        }
        write(&dir.join(inside), &places.fill(text)?)?;
    }
    Ok(())
}

/// Writes the files of a container, and returns where each is mounted.
pub fn write_mounts(
    container: &ContainerSpec,
    places: &Places,
    dir: &Path,
) -> Result<Vec<(PathBuf, String)>, HostError> {
    let mut mounts = Vec::new();
    for (index, (within, text)) in container.files.iter().enumerate() {
        let here = dir.join("mounts").join(index.to_string());
        write(&here, &places.fill(text)?)?;
        mounts.push((here, within.clone()));
    }
    Ok(mounts)
}

/// Makes folders that a container writes to: below the server's own folder if they can be
/// removed whatever user it runs as; otherwise as volumes of the engine, which removes
/// them.
pub fn make_volumes(
    container: &ContainerSpec,
    dir: &Path,
    removable: bool,
) -> Result<Vec<(Option<PathBuf>, String)>, HostError> {
    let folder = |(index, within): (usize, &String)| {
        if !removable {
            return Ok((None, within.clone()));
        }
        let here = dir.join("volumes").join(index.to_string());
        // For whatever user the server runs as.
        let open = fs::Permissions::from_mode(0o777);
        let made = fs::create_dir_all(&here).and_then(|()| fs::set_permissions(&here, open));
        made.map_err(HostError::io(here.display().to_string()))?;
        Ok((Some(here), within.clone()))
    };
    container.volumes.iter().enumerate().map(folder).collect()
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), HostError> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, text)).map_err(HostError::io(path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_port_that_is_named_anywhere_gets_a_number() {
        let spec = ServerSpec {
            endpoint: "mqtt://127.0.0.1:{port}".into(),
            command: vec!["x".into(), "{port.admin}".into()],
            files: vec![("etc/x.conf".into(), "port {port}\ncluster {port.cluster}\ndir {dir}\n".into())],
            ..ServerSpec::default()
        };
        let place = tempfile::tempdir().unwrap();
        let mut places = Places { ports: vec![("admin".into(), 9)], ..Places::default() };
        settle(&spec, &mut places, place.path()).unwrap();
        assert_eq!(fill(&places, &spec.command).unwrap(), ["x", "9"], "a given port stays");
        write_files(&spec, &places, place.path()).unwrap();
        let port = |name: &str| places.ports.iter().find(|(known, _)| known == name).unwrap().1;
        let expected = format!("port {}\ncluster {}\ndir {}\n", port(""), port("cluster"), place.path().display());
        assert_eq!(fs::read_to_string(place.path().join("etc/x.conf")).unwrap(), expected);
    }

    #[test]
    fn no_file_is_written_elsewhere() {
        let place = tempfile::tempdir().unwrap();
        for path in ["../x", "/etc/pubmark-x", "a/../../x"] {
            let spec = ServerSpec { files: vec![(path.into(), String::new())], ..ServerSpec::default() };
            let error = write_files(&spec, &Places::default(), place.path()).unwrap_err();
            assert!(error.to_string().contains("not below"), "{error}");
        }
    }
}
