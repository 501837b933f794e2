//! The smallest server that can stand in for an inference engine: what the entry point of vLLM's image is to its users, without a model.
//! It takes the arguments of `vllm serve`, and ends on others; it answers `/health`, `/v1/completions` and `/metrics` under vLLM's names;
//! it works on so many requests at a time and lets the others wait; asked to end, it finishes those under way. A word of an answer takes
//! as long as the environment says.

mod arguments;
mod completion;
mod metrics;
mod work;

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use arguments::{Arguments, Surroundings};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use clap::Parser;
use completion::{Completion, Refusal};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use work::Engine;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let surroundings = Surroundings::read()?;
    let engine = Arc::new(Engine::new(&arguments, &surroundings));
    // A real one listens once the model is loaded.
    tokio::time::sleep(surroundings.load).await;
    let address = (surroundings.address, arguments.port);
    let listener = TcpListener::bind(address).await.with_context(|| format!("no port {address:?}"))?;
    let router = Router::new()
        .route("/health", get(|| async { StatusCode::OK }))
        .route("/v1/completions", post(complete))
        .route("/metrics", get(exposition))
        .with_state(engine);
    let (mut first, mut second) = (signal(SignalKind::terminate())?, signal(SignalKind::terminate())?);
    let asked = async move {
        first.recv().await;
    };
    let late = async {
        second.recv().await;
        tokio::time::sleep(Duration::from_secs(arguments.shutdown_timeout)).await;
    };
    tokio::select! {
        served = axum::serve(listener, router).with_graceful_shutdown(asked).into_future() => Ok(served?),
        () = late => Ok(()),
    }
}

async fn complete(State(engine): State<Arc<Engine>>, body: Bytes) -> Response {
    let completion = match Completion::read(&body, engine.served_name()) {
        Ok(completion) => completion,
        Err(Refusal { status, message }) => {
            let error = serde_json::json!({"error": {"message": message, "code": status}});
            return json(StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST), &error);
        }
    };
    engine.work_on(completion.max_tokens).await;
    json(StatusCode::OK, &completion.answer())
}

async fn exposition(State(engine): State<Arc<Engine>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], engine.exposition()).into_response()
}

fn json(status: StatusCode, body: &serde_json::Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
