//! How much of the language there is, and how much an expression may be and cost. Values only.

/// What of the language there is for an expression, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The most bytes of an expression.
    pub(crate) longest: usize,
    /// How deeply parts of an expression are nested at most. Each level takes stack, when it is parsed, compiled and evaluated.
    pub(crate) deepest: u16,
    /// The steps that an evaluation may take. A condition of a status costs about ten.
    pub(crate) steps: usize,
    pub(crate) extent: Extent,
}

/// How much of the language there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What it takes to judge a value.
    Judge,
    /// What it takes to make values, too: maps, optional values, functions of texts.
    Make,
}

/// How far a child is, as a manifest says it. The host evaluates it on a thread that reconciles for all plugins.
pub const READINESS: Dialect = Dialect { longest: 1024, deepest: 32, steps: 50_000, extent: Extent::Judge };

/// A value in a composition. A plugin evaluates it, within the limits of its call.
pub const COMPOSITION: Dialect = Dialect { longest: 4096, deepest: 32, steps: 200_000, extent: Extent::Make };
