//! One watch as the host sees it: lines that come a while after what they tell of, until the watch times out, is cut, or has another
//! trouble. Decides nothing about what is in the lines.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use pilothouse_controller::observable::Observable;
use tokio::{select, sync::mpsc, time::Instant};
use tower::BoxError;

use super::{
    Connection, Network,
    answer::{AnswerBody, whole},
};
use crate::{
    api_server::{Revision, Watch},
    fault::WatchTrouble,
};

/// How long a watch lasts that asks for no time-out, as in kube-apiserver at least.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// Starts a watch; its answer is the body that delivers the events, or a refusal.
pub(super) fn start(network: &Arc<Network>, connection: &Connection, request: &Request<Bytes>) -> Response<AnswerBody> {
    let plural = plural(request);
    let request = match network.replay(&plural) {
        Some(events) => &earlier(request, events),
        None => request,
    };
    let watch = match network.cluster.watch(connection.id, request) {
        Ok(watch) => watch,
        Err(refusal) => return refusal.map(whole),
    };
    let (number, troubles) = network.open_watch(connection.id.host, &plural);
    let asked = parameter(request, "timeoutSeconds").and_then(|seconds| seconds.parse().ok());
    let ends = Instant::now() + asked.map_or(TIMEOUT, Duration::from_secs);
    let open = OpenStream {
        network: network.clone(),
        connection: connection.clone(),
        signal: network.cluster.signal(&watch.kind().resource),
        watch,
        plural,
        number,
        troubles,
        ends,
        state: State::Open,
    };
    let frames = stream::unfold(open, |mut open| async move { open.next().await.map(|frame| (frame, open)) });
    Response::new(StreamBody::new(frames).boxed_unsync())
}

/// The watch as it is being delivered.
struct OpenStream {
    network: Arc<Network>,
    connection: Connection,
    /// The newest revision of what is watched.
    signal: Arc<Observable<Revision>>,
    watch: Watch,
    plural: String,
    number: u64,
    troubles: mpsc::UnboundedReceiver<WatchTrouble>,
    ends: Instant,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Stalled,
    Ended,
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.network.close_watch(self.number);
    }
}

impl OpenStream {
    /// Waits for the next lines; none when the watch has ended.
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        loop {
            if !self.connection.is_alive() || self.state == State::Stalled {
                return std::future::pending().await;
            }
            if self.state == State::Ended {
                return None;
            }
            let revision = self.signal.get();
            let known = self.known_revision();
            let lines = self.network.cluster.events(&mut self.watch, known);
            if !lines.is_empty() {
                if let Some(trouble) = self.pause().await {
                    return self.suffer(trouble);
                }
                if self.watch.is_over() {
                    self.state = State::Ended;
                }
                return Some(Ok(Frame::data(lines.concat().into())));
            }
            if !self.network.cluster.serves(&self.watch) {
                self.state = State::Ended;
                return None;
            }
            let wakes = known.and_then(|known| self.learns(known)).unwrap_or(self.ends);
            select! {
                biased;
                trouble = self.troubles.recv() => if let Some(trouble) = trouble {
                    return self.suffer(trouble);
                },
                () = self.signal.wait_for(|newest| *newest != revision) => {}
                () = tokio::time::sleep_until(wakes), if wakes < self.ends => {}
                () = tokio::time::sleep_until(self.ends) => {
                    self.state = State::Ended;
                    let bookmark = self.network.cluster.bookmark(&self.watch);
                    return bookmark.map(|line| Ok(Frame::data(line)));
                }
            }
        }
    }

    /// The newest revision that the API server's watches know; none if they know all.
    fn known_revision(&self) -> Option<Revision> {
        self.network.behind(self.connection.id.host).map(|behind| self.network.cluster.revision_before(behind))
    }

    /// When an API server that is behind knows more than this revision; none if there is no more.
    fn learns(&self, known: Revision) -> Option<Instant> {
        let behind = self.network.behind(self.connection.id.host)?;
        let age = self.network.cluster.age_after(known)?;
        Some(Instant::now() + behind.saturating_sub(age) + Duration::from_millis(1))
    }

    /// Waits until the events that are there now arrive. Returns what happens to the watch meanwhile.
    async fn pause(&mut self) -> Option<WatchTrouble> {
        let lag = self.network.lag(&self.plural);
        if !lag.is_zero() {
            let arrives = Instant::now() + lag;
            select! {
                biased;
                trouble = self.troubles.recv() => if trouble.is_some() {
                    return trouble;
                },
                () = tokio::time::sleep_until(arrives) => {}
            }
        }
        self.connection.until_connected().await;
        None
    }

    fn suffer(&mut self, trouble: WatchTrouble) -> Option<Result<Frame<Bytes>, BoxError>> {
        match trouble {
            WatchTrouble::Stall => {
                self.state = State::Stalled;
                Some(Ok(Frame::data(Bytes::new())))
            }
            WatchTrouble::Break => {
                self.state = State::Ended;
                Some(Ok(Frame::data(Bytes::from_static(b"{\"type\":\"MODIFIED\",\"obj"))))
            }
            WatchTrouble::Expire => {
                self.state = State::Ended;
                Some(Ok(Frame::data(Bytes::from_static(EXPIRED))))
            }
            WatchTrouble::Cut | WatchTrouble::Lag(_) | WatchTrouble::Replay(_) => {
                self.state = State::Ended;
                None
            }
        }
    }
}

/// What an API server says that no longer knows what came after a watch's resource version.
const EXPIRED: &[u8] =
    b"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\
\"Failure\",\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}}\n";

/// The plural of the kind that a request is about: the last part of its path.
fn plural(request: &Request<Bytes>) -> String {
    request.uri().path().rsplit('/').next().unwrap_or_default().to_owned()
}

fn parameter<'a>(request: &'a Request<Bytes>, name: &str) -> Option<&'a str> {
    let parameters = request.uri().query().unwrap_or_default().split('&');
    parameters
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

/// The same watch from an earlier resource version.
fn earlier(request: &Request<Bytes>, events: u16) -> Request<Bytes> {
    let Some(version) = parameter(request, "resourceVersion") else { return request.clone() };
    let before = version.parse::<u64>().unwrap_or_default().saturating_sub(events.into()).max(1);
    let (from, to) = (format!("resourceVersion={version}"), format!("resourceVersion={before}"));
    let uri = request.uri().to_string().replace(&from, &to);
    let mut request = request.clone();
    if let Ok(uri) = uri.parse() {
        *request.uri_mut() = uri;
    }
    request
}
