//! The contract as a page for people: Markdown of what the WIT says. Adds nothing of its own but the form.

use pilothouse_wit::{CONTRACT, CONTRACT_VERSION};
use wit_parser::{Docs, Function, Interface, PackageId, Resolve, Type, TypeDef, TypeDefKind, World, WorldItem};

use crate::{Error, contract};

/// The contract's newest version as Markdown.
///
/// # Errors
/// [`Error::Encode`] if the contract cannot be read.
pub fn contract_reference() -> Result<String, Error> {
    let (packages, package) = contract::parse(CONTRACT)?;
    Ok(Reference(packages).page(package))
}

struct Reference(Resolve);

impl Reference {
    fn page(&self, package: PackageId) -> String {
        let package = &self.0.packages[package];
        let series = CONTRACT_VERSION.rsplit_once('.').map_or(CONTRACT_VERSION, |(series, _)| series);
        let mut page = format!(
            "# The contract\n\nMade by `make reference` of [`plugin.wit`](../wit/{series}/plugin.wit), which is the contract. This is version \
             {CONTRACT_VERSION}.\n\n{}\n\nIn the SDKs, these types and functions have the names that are usual in each language.\n",
            text(&package.docs)
        );
        for (name, id) in &package.interfaces {
            page += &self.interface(name, &self.0.interfaces[*id]);
        }
        for (name, id) in &package.worlds {
            page += &self.world(name, &self.0.worlds[*id]);
        }
        page
    }

    fn world(&self, name: &str, world: &World) -> String {
        let names = |items: &mut dyn Iterator<Item = &WorldItem>| -> String {
            let named = items.filter_map(|item| match item {
                WorldItem::Interface { id, .. } => self.0.interfaces[*id].name.as_deref(),
                WorldItem::Function(_) | WorldItem::Type { .. } => None,
            });
            // They only have types that others use.
            let links: Vec<_> =
                named.filter(|name| *name != "types").map(|name| format!("[{name}](#interface-{name})")).collect();
            links.join(", ")
        };
        let (imports, exports) = (names(&mut world.imports.values()), names(&mut world.exports.values()));
        format!("\n## World {name}\n\n{}\n\nIt exports {exports}. It may import {imports}.\n", text(&world.docs))
    }

    fn interface(&self, name: &str, interface: &Interface) -> String {
        let mut page = format!("\n## Interface {name}\n\n{}\n", text(&interface.docs));
        for (name, id) in &interface.types {
            page += &self.definition(name, &self.0.types[*id]);
        }
        for function in interface.functions.values() {
            page += &self.function(name, function);
        }
        page
    }

    /// One type. What an interface only takes from another one is left out.
    fn definition(&self, name: &str, definition: &TypeDef) -> String {
        let (word, parts) = match &definition.kind {
            TypeDefKind::Type(Type::Id(_)) => return String::new(),
            TypeDefKind::Record(record) => {
                let rows = record
                    .fields
                    .iter()
                    .map(|field| row(&[&code(&field.name), &self.type_of(&field.ty), &line(&field.docs)]));
                ("Record", table(&["field", "type", "what it is"], &rows.collect::<String>()))
            }
            TypeDefKind::Variant(variant) => {
                let rows = variant.cases.iter().map(|case| {
                    let value = case.ty.as_ref().map(|ty| self.type_of(ty)).unwrap_or_default();
                    row(&[&code(&case.name), &value, &line(&case.docs)])
                });
                ("Variant", table(&["case", "type", "what it is"], &rows.collect::<String>()))
            }
            TypeDefKind::Enum(cases) => {
                let rows = cases.cases.iter().map(|case| row(&[&code(&case.name), &line(&case.docs)]));
                ("Enum", table(&["case", "what it is"], &rows.collect::<String>()))
            }
            TypeDefKind::Type(plain) => {
                return format!("\n### {name}\n\n{}. {}\n", self.type_of(plain), text(&definition.docs));
            }
            other => (other.as_str(), String::new()),
        };
        format!("\n### {name}\n\n{word}. {}\n{parts}", text(&definition.docs))
    }

    fn function(&self, interface: &str, function: &Function) -> String {
        let rows: String =
            function.params.iter().map(|param| row(&[&code(&param.name), &self.type_of(&param.ty)])).collect();
        let parameters = if rows.is_empty() { String::new() } else { table(&["parameter", "type"], &rows) };
        let result = function
            .result
            .as_ref()
            .map(|result| format!("\nIt returns {}.\n", self.type_of(result)))
            .unwrap_or_default();
        format!("\n### {interface}.{}\n\nFunction. {}\n{parameters}{result}", function.name, text(&function.docs))
    }

    /// A type in words, with links to those that have a place of their own.
    fn type_of(&self, ty: &Type) -> String {
        let Type::Id(id) = ty else { return code(plain(ty)) };
        let definition = &self.0.types[*id];
        if let Some(name) = &definition.name {
            return format!("[{name}](#{name})");
        }
        match &definition.kind {
            TypeDefKind::Option(inner) => format!("option of {}", self.type_of(inner)),
            TypeDefKind::List(inner) => format!("list of {}", self.type_of(inner)),
            TypeDefKind::Result(result) => {
                let part = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "nothing".to_owned(), |ty| self.type_of(ty));
                format!("result of {}, or the error {}", part(&result.ok), part(&result.err))
            }
            other => other.as_str().to_owned(),
        }
    }
}

fn plain(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "s8",
        Type::S16 => "s16",
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "string",
        Type::ErrorContext => "error-context",
        Type::Id(_) => "",
    }
}

fn table(columns: &[&str], rows: &str) -> String {
    format!("\n{}|{}\n{rows}", row(columns), "---|".repeat(columns.len()))
}

fn row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn code(name: &str) -> String {
    format!("`{name}`")
}

fn text(docs: &Docs) -> String {
    docs.contents.as_deref().unwrap_or_default().trim().to_owned()
}

/// The same in one line, for a cell of a table.
fn line(docs: &Docs) -> String {
    text(docs).split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
