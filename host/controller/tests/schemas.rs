//! Schemas as a real API server tells them, and the table of core kinds that stands in for them.

use anyhow::{Context, Result, bail, ensure};
use kube::Client;
use pilothouse_control_plane::{Assets, ControlPlane, Options, Parts, silent};
use pilothouse_controller::{
    kinds::{self, DocumentAnswer},
    schema::{Cursor, ListType, Schema},
};
use pilothouse_engine::contract::KindRef;

#[tokio::test]
async fn schemas_are_those_of_the_api_server() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = Options::new(folder.path(), Parts::Api).report(silent);
    let plane = ControlPlane::start(Assets::ensure_for(Parts::Api, silent).await?, options).await?;
    let client = plane.client().await?;

    the_table_of_core_kinds_agrees(&client).await?;
    what_is_not_served_has_no_schema(&client).await?;
    a_document_is_not_sent_again_while_it_is_the_same(&client).await?;

    plane.stop().await
}

async fn the_table_of_core_kinds_agrees(client: &Client) -> Result<()> {
    let mut wrong = Vec::new();
    for (api_version, kind) in Schema::built_in_kinds() {
        let served = kinds::schema(client, &KindRef::new(api_version, kind)).await?;
        let served = served.with_context(|| format!("{kind} has no schema"))?;
        ensure!(served.goes_through_types(), "{kind} is a Go type");
        ensure!(served.bytes() < 64 << 10, "the schema of {kind} takes {} bytes", served.bytes());
        let table = Schema::built_in(api_version, kind);
        wrong.extend(misnamed(kind, table.root(), served.root()));
        wrong.extend(missing(kind, table.root(), served.root()));
    }
    ensure!(wrong.is_empty(), "the table of core kinds is not what the API server says:\n{}", wrong.join("\n"));
    Ok(())
}

async fn what_is_not_served_has_no_schema(client: &Client) -> Result<()> {
    for (api_version, kind) in [("none.example.com/v1", "Web"), ("apps/v1", "Web"), ("v2", "Pod")] {
        ensure!(kinds::schema(client, &KindRef::new(api_version, kind)).await?.is_none(), "{api_version} {kind}");
    }
    Ok(())
}

async fn a_document_is_not_sent_again_while_it_is_the_same(client: &Client) -> Result<()> {
    let (apps, batch) = (KindRef::new("apps/v1", "Deployment"), KindRef::new("batch/v1", "Job"));
    let DocumentAnswer::Document(document) = kinds::schema_document(client, &apps, None).await? else {
        bail!("apps/v1 has no document");
    };
    let etag = document.etag.context("the document has no ETag")?;
    for (kind, unchanged) in [(&apps, true), (&batch, false)] {
        let answer = kinds::schema_document(client, kind, Some(&etag)).await?;
        ensure!(matches!(answer, DocumentAnswer::Unchanged) == unchanged, "{kind}");
    }
    Ok(())
}

/// Where the table says something else than the API server.
fn misnamed(path: &str, table: Cursor<'_>, served: Cursor<'_>) -> Vec<String> {
    if !table.is_known() {
        return Vec::new();
    }
    if says(table) != says(served) {
        return vec![format!("{path}: {}, but served as {}", says(table), says(served))];
    }
    let fields = table.fields().flat_map(|(name, at)| misnamed(&format!("{path}/{name}"), at, served.field(name)));
    fields.chain(misnamed_items(path, table, served)).collect()
}

fn misnamed_items(path: &str, table: Cursor<'_>, served: Cursor<'_>) -> Vec<String> {
    if table.items().is_known() { misnamed(&format!("{path}/*"), table.items(), served.items()) } else { Vec::new() }
}

/// Sets and maps of the API server, outside of atomic lists and of the status, that the table lacks.
fn missing(path: &str, table: Cursor<'_>, served: Cursor<'_>) -> Vec<String> {
    match served.list_type() {
        ListType::Atomic => {
            let fields = served.fields().filter(|(name, _)| *name != "status");
            fields.flat_map(|(name, at)| missing(&format!("{path}/{name}"), table.field(name), at)).collect()
        }
        _ if !table.is_known() => vec![format!("{path}: not in the table, but served as {}", says(served))],
        _ => missing(&format!("{path}/*"), table.items(), served.items()),
    }
}

/// What a schema says about merging at one place.
fn says(at: Cursor<'_>) -> String {
    let whole = if at.is_atomic() { "atomic " } else { "" };
    match at.list_type() {
        ListType::Map(keys) => format!("a list by {}", keys.names().collect::<Vec<_>>().join(" and ")),
        ListType::Set => "a set".to_owned(),
        ListType::Atomic if at.is_map() => format!("{whole}map"),
        ListType::Atomic => format!("{whole}value"),
    }
}
