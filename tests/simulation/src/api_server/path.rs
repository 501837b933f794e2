//! Where a value is while it is read. Becomes a text only where something is wrong, which is much quicker.

use std::fmt;

/// A path of fields and indices, from the inside out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Root,
    Field(&'p str),
    Index(usize),
}

impl<'p> Path<'p> {
    /// The whole object.
    pub(super) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    /// A field of what is here.
    pub(super) fn field(&'p self, name: &'p str) -> Self {
        Self { parent: Some(self), step: Step::Field(name) }
    }

    /// An element of what is here.
    pub(super) fn index(&'p self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    /// Whether this is the whole object.
    pub(super) fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    /// The field of the whole object that this is in.
    pub(super) fn first(&self) -> &str {
        match (self.parent, self.step) {
            (Some(parent), Step::Field(name)) if parent.is_root() => name,
            (Some(parent), _) => parent.first(),
            (None, _) => "",
        }
    }
}

impl fmt::Display for Path<'_> {
    /// `spec.ports[0].name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(parent) = self.parent else { return Ok(()) };
        parent.fmt(f)?;
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if parent.is_root() => f.write_str(name),
            Step::Field(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}
