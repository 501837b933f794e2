//! The blocks of a page in Markdown: what is between two lines of backquotes. Reads no file.

/// Each block with the language that its first line names, which may be none.
pub fn blocks(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'))
}

#[cfg(test)]
mod tests {
    use super::blocks;

    #[test]
    fn blocks_have_their_language_and_their_text() {
        let page = "# A\n\n```\nls\n```\n\nand\n\n```yaml\na: 1\nb: 2\n```\nend";
        assert_eq!(blocks(page).collect::<Vec<_>>(), [("", "ls"), ("yaml", "a: 1\nb: 2")]);
    }
}
