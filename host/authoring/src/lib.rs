//! Projects of plugins: a new one from templates, and from its sources to a plugin file, in each language. It runs the tools of the
//! language, and never a plugin.

mod build;
mod composition;
mod definition;
mod foreign;
mod kind;
mod language;
mod project;
mod sample;
mod sources;
mod template;
mod tool;
mod typed;
mod yaml;

pub use build::{BuildError, Built, Purpose, build};
pub use composition::{ChartError, Composition, CompositionError, LeftOut, ManifestsError, Origin};
pub use definition::{Definition, DefinitionError};
pub use kind::{CustomKind, KindError};
pub use language::Language;
pub use project::{NewError, Project, Sdk};
pub use sources::is_source;
pub use template::COMPOSITION;
pub use yaml::{YamlError, list_items};
