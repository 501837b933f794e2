//! Keeps parsed schemas for several hosts in one process, which read the same documents over and over, as in a simulation. A host of
//! its own reads each schema once, and its cache keeps nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Document, Schema};

/// The schemas of each kind, each with the text of the document that it is from.
type Parsed = HashMap<String, Vec<(String, Option<Schema>)>>;

/// Parsed schemas. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct SchemaCache(Option<Arc<Mutex<Parsed>>>);

impl SchemaCache {
    /// A cache that keeps what is parsed. The default one does not.
    pub fn shared() -> Self {
        Self(Some(Arc::default()))
    }

    /// As [`Schema::parse`].
    ///
    /// # Errors
    /// As [`Schema::parse`].
    pub fn parse(
        &self,
        document: &Document,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Schema>, serde_json::Error> {
        let Some(parsed) = &self.0 else { return document.schema(api_version, kind) };
        let mut parsed = parsed.lock().unwrap_or_else(PoisonError::into_inner);
        let known = parsed.entry(format!("{api_version} {kind}")).or_default();
        if let Some((_, schema)) = known.iter().find(|(text, _)| text == document.text()) {
            return Ok(schema.clone());
        }
        let schema = document.schema(api_version, kind)?;
        known.push((document.text().to_owned(), schema.clone()));
        Ok(schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::samples;

    #[test]
    fn a_shared_cache_parses_once_and_the_default_one_each_time() -> Result<(), serde_json::Error> {
        let document = Document::new(samples::DOCUMENT.to_owned());
        for (cache, is_kept) in [(SchemaCache::shared(), true), (SchemaCache::default(), false)] {
            let parse = || cache.clone().parse(&document, "apps/v1", "Deployment");
            let (first, second) = (parse()?, parse()?);
            assert_eq!(first, second);
            let is_clone = first.zip(second).map(|(first, second)| first.is_clone_of(&second));
            assert_eq!(is_clone, Some(is_kept));
        }
        Ok(())
    }
}
