//! What `kubectl get` prints: the API server makes the table, and kubectl only lays it out.

use anyhow::{Context, Result};
use http::Request;
use serde_json::Value;

use crate::cluster::Namespace;

/// The spaces between columns.
const GAP: usize = 3;

/// The lines of `kubectl get PLURAL`, of this API path below the namespace: `apis/apps/v1` and `deployments`. Columns of `-o wide` are
/// left out, and only these columns are kept if any are named.
///
/// # Errors
/// If there is no such kind.
pub async fn printed(namespace: &Namespace, path: &str, plural: &str, only: &[&str]) -> Result<Vec<String>> {
    let uri = format!("/{path}/namespaces/{}/{plural}", namespace.name);
    let request = Request::get(uri).header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").body(Vec::new())?;
    let table: Value = namespace.client().request(request).await?;
    let columns = table["columnDefinitions"].as_array().context("no columns")?;
    let heading = |column: &Value| column["name"].as_str().unwrap_or_default().to_uppercase();
    let shown: Vec<usize> = (0..columns.len())
        .filter(|index| columns[*index]["priority"] == 0)
        .filter(|index| only.is_empty() || only.contains(&heading(&columns[*index]).as_str()))
        .collect();
    let rows = table["rows"].as_array().into_iter().flatten();
    let cells = rows.map(|row| shown.iter().map(|index| cell(&row["cells"][*index])).collect::<Vec<_>>());
    let headings = shown.iter().map(|index| heading(&columns[*index])).collect();
    Ok(laid_out(&std::iter::once(headings).chain(cells).collect::<Vec<_>>()))
}

fn cell(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn laid_out(rows: &[Vec<String>]) -> Vec<String> {
    // kubectl prints nothing but a hint where there is no row.
    if rows.len() < 2 {
        return Vec::new();
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default() + GAP;
    let line = |row: &Vec<String>| {
        let padded = row.iter().enumerate().map(|(column, cell)| format!("{cell:width$}", width = width(column)));
        padded.collect::<String>().trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
