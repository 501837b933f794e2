//! The short form of a report, for the status of a `Plugin`: counts, and the first lines of what would change. Has no values of fields.

use pilothouse_controller::api::{PlanSummary, PlannedChildren, PlannedObjects};

use super::{Action, ChildCounts, ChildReport, Counts, ObjectReport, Report, State};

/// The most lines. With the longest of them the status of a `Plugin` stays below 32 KiB.
const LINES: usize = 120;

/// The most bytes of a line.
const LINE: usize = 240;

/// The summary of a report about some of the objects, of which so many more exist.
pub fn summary(report: &Report, not_asked: usize) -> PlanSummary {
    let Counts { changed, unchanged, left_alone, pinned, deleting, in_error, in_error_today, children, written: _ } =
        report.counts;
    let ChildCounts { created, changed: changed_children, recreated, deleted, held_back, refused: _ } = children;
    let is_new_error = |object: &&ObjectReport| object.state == State::InError && !object.is_in_error_today;
    let (errors, others): (Vec<_>, Vec<_>) = report.objects.iter().partition(is_new_error);
    let mut lines: Vec<_> = errors.into_iter().chain(others).flat_map(object_lines).collect();
    let more_lines = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    PlanSummary {
        // Who knows what is at work says it.
        left_behind: None,
        objects: PlannedObjects {
            changed,
            unchanged,
            in_error,
            in_error_today,
            left_alone,
            pinned,
            deleting,
            not_asked,
        },
        children: PlannedChildren { created, changed: changed_children, recreated, deleted, held_back },
        lines,
        more_lines,
    }
}

/// What would become of an object and of its children; nothing if that is nothing.
fn object_lines(object: &ObjectReport) -> Vec<String> {
    let name = object.full_name();
    let why = || {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        format!("{}: {}", text(&object.reason), text(&object.message))
    };
    let first = match object.state {
        State::Unchanged | State::LeftAlone | State::Pinned | State::Deleting => return Vec::new(),
        State::InError if object.is_in_error_today => format!("! {name}: {} (as today)", why()),
        State::InError => format!("! {name}: {}", why()),
        State::Changed => format!("~ {name}"),
    };
    let mut lines = vec![first];
    lines.extend(object.adds_finalizer.then(|| "  + a finalizer".to_owned()));
    lines.extend(object.fields.iter().map(|field| format!("  ~ {}", field.path)));
    for (number, step) in object.steps.iter().enumerate() {
        lines.extend((number > 0).then(|| "  then".to_owned()));
        lines.extend(step.iter().map(child_line));
    }
    lines.iter().map(|line| shortened(line)).collect()
}

fn child_line(child: &ChildReport) -> String {
    let ChildReport { kind, name, action, .. } = child;
    let fields: Vec<_> = child.fields.iter().map(|field| field.path.as_str()).collect();
    let more = match action {
        Action::Create => String::new(),
        Action::Update | Action::Recreate if fields.is_empty() => String::new(),
        Action::Update | Action::Recreate => format!(": {}", fields.join(", ")),
        Action::Delete => format!(": {}", child.cause.as_deref().unwrap_or_default()),
        Action::HoldBack => format!(": held back, for {}", child.cause.as_deref().unwrap_or_default()),
    };
    format!("  {} {kind} {name}{more}", action.sign())
}

fn shortened(line: &str) -> String {
    // One line, whatever a plugin says.
    let line = line.replace(char::is_control, " ");
    match line.len() > LINE {
        true => format!("{}…", &line[..line.floor_char_boundary(LINE)]),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::{Field, Version};

    fn object(name: &str, state: State, steps: Vec<Vec<ChildReport>>) -> ObjectReport {
        ObjectReport {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            state,
            reason: Some("Invalid".to_owned()),
            message: Some("no good\ncolour".to_owned()),
            is_in_error_today: false,
            adds_finalizer: false,
            fields: Vec::new(),
            steps,
        }
    }

    fn child(action: Action) -> ChildReport {
        ChildReport {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: "shop".to_owned(),
            name: "map".to_owned(),
            action,
            cause: Some("no longer returned".to_owned()),
            fields: vec![Field { path: "/data/a".to_owned(), from: json!("old"), to: json!("new") }],
            digest: None,
            body: Some(json!({"data": {"a": "new"}})),
            refused: None,
        }
    }

    fn of(objects: Vec<ObjectReport>) -> PlanSummary {
        let version = Version { name: "web".to_owned(), version: "2".to_owned(), digest: "sha256:2".to_owned() };
        let counts = Counts::of(&objects);
        summary(&Report { version, present: None, kind: "Web".to_owned(), counts, objects }, 3)
    }

    #[test]
    fn errors_come_first_and_no_values_are_told() {
        let steps = vec![vec![child(Action::Create), child(Action::Update)], vec![child(Action::Delete)]];
        let summary = of(vec![
            object("calm", State::Unchanged, Vec::new()),
            object("web", State::Changed, steps),
            object("bad", State::InError, Vec::new()),
        ]);
        assert_eq!(
            summary.lines,
            [
                "! shop/bad: Invalid: no good colour",
                "~ shop/web",
                "  + ConfigMap map",
                "  ~ ConfigMap map: /data/a",
                "  then",
                "  - ConfigMap map: no longer returned",
            ]
        );
        let PlannedObjects { changed, unchanged, in_error, not_asked, .. } = summary.objects;
        assert_eq!((changed, unchanged, in_error, not_asked), (1, 1, 1, 3));
        assert_eq!((summary.children.created, summary.children.changed, summary.children.deleted), (1, 1, 1));
    }

    #[test]
    fn the_status_stays_small_whatever_would_change() {
        let long = |number: usize| object(&format!("{number}{}", "ü".repeat(300)), State::Changed, Vec::new());
        let summary = of((0..1000).map(long).collect());
        assert_eq!((summary.lines.len(), summary.more_lines), (LINES, 1000 - LINES));
        assert!(summary.lines.iter().map(String::len).sum::<usize>() < 32 << 10);
    }
}
