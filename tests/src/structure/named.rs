//! Which files of a folder a page names.

/// The files that no line of the page names, by their paths inside the folder.
///
/// A file is named by its path inside the folder (`check/child.rs`), or by its name alone on a line that names its folder
/// (`check/`, `child.rs`). The name of a folder is that of its `mod.rs`.
pub fn unnamed<'a>(files: &[&'a str], page: &str) -> Vec<&'a str> {
    let lines: Vec<Vec<&str>> = page.lines().map(words).collect();
    files.iter().filter(|file| !lines.iter().any(|line| names(line, file))).copied().collect()
}

fn names(line: &[&str], file: &str) -> bool {
    let has = |path: &str| line.iter().any(|word| *word == path || word.ends_with(&format!("pipeline/{path}")));
    if has(file) {
        return true;
    }
    match file.rsplit_once('/') {
        Some((folder, "mod.rs")) => has(&format!("{folder}/")),
        Some((folder, name)) => has(&format!("{folder}/")) && line.contains(&name),
        None => false,
    }
}

fn words(line: &str) -> Vec<&str> {
    let words = line.split(|letter: char| !(letter.is_alphanumeric() || "_-./".contains(letter)));
    words.map(|word| word.trim_end_matches('.')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_its_path_or_beside_its_folder() {
        let page = "Start in `pipeline/mod.rs`.\n\
                    - `observe.rs`: what is there.\n\
                    | `check/` | `child.rs` completes a child, `json.rs`. |\n\
                    `call/answer.rs` and report/status.rs.";
        let files = ["mod.rs", "observe.rs", "check/mod.rs", "check/child.rs", "check/json.rs", "call/answer.rs"];
        assert_eq!(unnamed(&files, page), [""; 0]);
        let missing = ["status.rs", "call/mod.rs", "report/child.rs", "serve.rs"];
        assert_eq!(unnamed(&missing, page), missing);
    }
}
