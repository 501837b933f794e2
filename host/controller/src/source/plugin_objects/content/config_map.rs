//! Reads a component from ConfigMaps: finds the key, puts pieces together, and collects the signatures beside it.

use k8s_openapi::api::core::v1::ConfigMap;
use pilothouse_artifact::Evidence;

use super::{
    component::{BUNDLE, Fetched, Origin},
    error::ContentError,
    host_namespace::HostNamespace,
    packing::{unpacked, within_limit},
    turns::{Turn, Work},
};
use crate::api::ConfigMapSource;

/// The component of a source, not judged yet.
pub(super) async fn fetch(
    namespace: &HostNamespace,
    turn: &Turn,
    source: &ConfigMapSource,
) -> Result<Fetched, ContentError> {
    let (mut packed, mut evidence) = (Vec::new(), Vec::new());
    for name in names(source) {
        let map = namespace.config_map(&name).await?;
        let bundles = map.data.iter().flatten().filter(|(key, _)| key.ends_with(BUNDLE));
        evidence.extend(bundles.map(|(_, bundle)| Evidence::bundle(bundle.clone().into_bytes())));
        packed.extend(of_config_map(&name, map, source.key.as_deref())?);
        // Before the next piece is read: there may be a thousand.
        packed = within_limit(packed)?;
        turn.take_for(packed.len() as u64, Work::Slow).await;
    }
    Ok(Fetched { bytes: unpacked(packed, turn).await?, origin: Origin::Bytes, evidence })
}

/// The names of the ConfigMaps of a source.
pub fn names(source: &ConfigMapSource) -> Vec<String> {
    match source.pieces {
        None => vec![source.name.clone()],
        Some(pieces) => (0..pieces).map(|piece| format!("{}-{piece}", source.name)).collect(),
    }
}

fn of_config_map(name: &str, map: ConfigMap, key: Option<&str>) -> Result<Vec<u8>, ContentError> {
    let mut data = map.binary_data.unwrap_or_default();
    let found = match key {
        Some(key) => {
            data.remove(key).ok_or_else(|| ContentError::NoKey { name: name.to_owned(), key: key.to_owned() })?
        }
        None => match (data.len(), data.pop_first()) {
            (1, Some((_, only))) => only,
            (found, _) => return Err(ContentError::NotOneKey { name: name.to_owned(), found }),
        },
    };
    Ok(found.0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    #[test]
    fn the_component_is_the_only_key_or_the_one_that_is_named() {
        let map = |keys: &[&str]| {
            let data = keys.iter().map(|key| ((*key).to_owned(), ByteString(key.as_bytes().to_vec())));
            ConfigMap { binary_data: Some(data.collect()), ..ConfigMap::default() }
        };
        for (keys, named, expected) in [
            (&["a"][..], None, Ok("a")),
            (&["a", "b"], Some("b"), Ok("b")),
            (&["a", "b"], None, Err("KeyMissing")),
            (&[], None, Err("KeyMissing")),
            (&["a"], Some("c"), Err("KeyMissing")),
        ] {
            let found = of_config_map("map", map(keys), named).map_err(|error| error.reason());
            assert_eq!(found, expected.map(|text: &str| text.as_bytes().to_vec()), "{keys:?} {named:?}");
        }
    }

    #[test]
    fn pieces_are_numbered() {
        let source = |pieces| ConfigMapSource { name: "web".to_owned(), key: None, pieces };
        assert_eq!(names(&source(None)), ["web"]);
        assert_eq!(names(&source(Some(2))), ["web-0", "web-1"]);
    }
}
