//! Finds the kinds of watches that begin. A plugin has several kinds of one group and version, and all its watches begin at once: the list
//! of that group and version is requested once for all that wait for it. Keeps no list that nobody waits for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use pilothouse_engine::contract::KindRef;
use tokio::sync::OnceCell;

use crate::kinds::{self, InstalledKind};

/// A list of kinds that is being read; none inside if the API server does not serve the group and version.
type Reading = OnceCell<Option<APIResourceList>>;

/// Finds kinds.
pub(super) struct Discovery {
    client: Client,
    /// The lists that are being read, by group and version. They are gone once nobody waits for them.
    readings: Mutex<HashMap<String, Weak<Reading>>>,
}

impl Discovery {
    /// Finds with this client.
    pub(super) fn new(client: Client) -> Self {
        Self { client, readings: Mutex::default() }
    }

    /// Finds a kind; none if it is not installed. The answer may be to a request that began a moment earlier, so this is not for
    /// whoever asks whether something has changed.
    ///
    /// # Errors
    /// The error of the request. Others that wait for the same list make a request of their own then.
    pub(super) async fn find(&self, kind: &KindRef) -> Result<Option<InstalledKind>, kube::Error> {
        let reading = self.reading(&kind.api_version);
        let list = reading.get_or_try_init(|| kinds::list(&self.client, kind)).await?;
        Ok(list.as_ref().and_then(|list| kinds::pick(list, kind)))
    }

    fn reading(&self, api_version: &str) -> Arc<Reading> {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        readings.retain(|_, reading| reading.strong_count() > 0);
        if let Some(reading) = readings.get(api_version).and_then(Weak::upgrade) {
            return reading;
        }
        let reading = Arc::new(Reading::new());
        readings.insert(api_version.to_owned(), Arc::downgrade(&reading));
        reading
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use tokio::sync::mpsc;

    use super::*;

    const LIST: &str = r#"{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
        {"name": "secrets", "singularName": "", "namespaced": true, "kind": "Secret", "verbs": []},
        {"name": "namespaces", "singularName": "", "namespaced": false, "kind": "Namespace", "verbs": []}]}"#;

    /// Answers one request after another with these codes, and tells of each.
    fn answering(codes: Vec<u16>) -> (Discovery, mpsc::UnboundedReceiver<String>) {
        let (asked, requests) = mpsc::unbounded_channel();
        let codes = Arc::new(Mutex::new(codes.into_iter()));
        let service = tower::service_fn(move |request: Request<Body>| {
            let code = codes.lock().ok().and_then(|mut codes| codes.next()).unwrap_or(500);
            drop(asked.send(request.uri().path().to_owned()));
            async move {
                tokio::task::yield_now().await;
                let body = if code == 200 { LIST.to_owned() } else { format!(r#"{{"code": {code}}}"#) };
                let mut answer = Response::new(Body::from(body.into_bytes()));
                *answer.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
                Ok::<_, Infallible>(answer)
            }
        });
        (Discovery::new(Client::new(service, "default")), requests)
    }

    fn kind(name: &str) -> KindRef {
        KindRef { api_version: "v1".to_owned(), kind: name.to_owned() }
    }

    fn count(requests: &mut mpsc::UnboundedReceiver<String>) -> usize {
        std::iter::from_fn(|| requests.try_recv().ok()).count()
    }

    #[tokio::test]
    async fn kinds_that_are_asked_for_at_once_are_found_by_one_request() {
        let (discovery, mut requests) = answering(vec![200, 200]);
        let (secret, namespace, absent) = (kind("Secret"), kind("Namespace"), kind("Absent"));
        let found = tokio::join!(discovery.find(&secret), discovery.find(&namespace), discovery.find(&absent));
        let scope = |found: Result<Option<InstalledKind>, _>| found.ok().flatten().map(|found| found.namespaced);
        assert_eq!((scope(found.0), scope(found.1), scope(found.2)), (Some(true), Some(false), None));
        assert_eq!(count(&mut requests), 1);
        assert_eq!(scope(discovery.find(&secret).await), Some(true));
        assert_eq!(count(&mut requests), 1, "nobody waited for the first list any more");
    }

    #[tokio::test]
    async fn each_asks_again_after_a_request_that_failed() {
        let (discovery, mut requests) = answering(vec![500, 404]);
        let (secret, namespace) = (kind("Secret"), kind("Namespace"));
        let (first, second) = tokio::join!(discovery.find(&secret), discovery.find(&namespace));
        assert!(first.is_err());
        assert!(second.is_ok_and(|found| found.is_none()), "404: the group and version is not served");
        assert_eq!(count(&mut requests), 2);
    }
}
