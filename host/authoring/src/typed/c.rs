//! A spec in C. Its SDK reads JSON by pointers, and has no types of its own: so each field of the spec gets a name for its pointer, and its
//! type is said beside it. It writes no file.

use super::{
    Source, comment,
    names::{screaming, unique},
    quoted,
    shown::Form,
    types::{Type, Types},
};

/// The names of the fields.
pub(super) fn spec(source: &Source) -> String {
    let mut text = comment("//", &source.origin);
    text += "//\n// The SDK reads JSON by its pointers, such as ph_string(request->object, SPEC_NAME, \"\"): here they have names. Those of\n\
             // elements of a list begin where the element does: ph_string(element, ..., \"\").\n\
             #ifndef SPEC_H\n#define SPEC_H\n";
    let mut names = Names::default();
    if let Some(of) = source.root_struct() {
        text += "\n// The spec, from the object on.\n";
        text += &names.define(&source.types, of.fields.as_slice(), ("SPEC", "/spec"));
    }
    // Elements of lists and values of maps are read from where they begin.
    let mut place = 0;
    while let Some((name, of)) = names.later.get(place).cloned() {
        let fields = source.types.fields(&Type::Struct(of));
        let defined = names.define(&source.types, fields, (&name, ""));
        text += &format!("\n// One of {name}.\n{defined}");
        place += 1;
    }
    text + "\n#endif\n"
}

#[derive(Default)]
struct Names {
    taken: Vec<String>,
    /// Structs that are elements, with the beginning of the names of their fields.
    later: Vec<(String, usize)>,
}

impl Names {
    fn define(&mut self, types: &Types, fields: &[super::types::Field], (prefix, pointer): (&str, &str)) -> String {
        let mut text = String::new();
        for field in fields {
            let name = unique(&format!("{prefix}_{}", screaming(&field.name).trim_start_matches('_')), |name| {
                self.taken.iter().any(|taken| taken == name)
            });
            self.taken.push(name.clone());
            let pointer = format!("{pointer}/{}", field.name.replace('~', "~0").replace('/', "~1"));
            let needed = if field.is_required { "" } else { ", optional" };
            let default = field.default.as_ref().map(|default| format!(", default {default}")).unwrap_or_default();
            let default = default.replace("*/", "* /");
            text +=
                &format!("#define {name} {} // {}{needed}{default}\n", quoted(&pointer), in_words(types, &field.of));
            match &field.of {
                Type::Struct(_) => text += &self.define(types, types.fields(&field.of), (&name, &pointer)),
                Type::List(of) | Type::Map(of) => self.element(name, of),
                _ => {}
            }
        }
        text
    }

    fn element(&mut self, name: String, of: &Type) {
        match of {
            Type::Struct(place) => self.later.push((name, *place)),
            Type::List(of) | Type::Map(of) => self.element(name, of),
            _ => {}
        }
    }
}

fn in_words(types: &Types, of: &Type) -> String {
    match of {
        Type::Text => "text".to_owned(),
        Type::Whole { .. } => "whole number".to_owned(),
        Type::Number => "number".to_owned(),
        Type::Boolean => "true or false".to_owned(),
        Type::IntOrText => "whole number or text".to_owned(),
        Type::Free => "any JSON".to_owned(),
        Type::List(of) => format!("list: {}", in_words(types, of)),
        Type::Map(of) => format!("map: {}", in_words(types, of)),
        Type::Struct(_) => "object".to_owned(),
        Type::Choice(place) => {
            let values = types.choices.get(*place).map_or(&[][..], |of| &of.values);
            // A backslash at the end of a comment would take the next line in.
            format!("one of {}", values.join(", ").replace(['\n', '\r'], " ").trim_end_matches('\\'))
        }
    }
}

/// The statements that put the fields into `data`, with the object in scope.
pub(super) fn shown(source: &Source) -> String {
    if source.root_struct().is_none() {
        return "  show_presence(data, \"spec\", ph_at(request->object, \"/spec\"));\n".to_owned();
    }
    let mut text = String::new();
    let mut names = Names::default();
    let fields = source.types.fields(&source.root);
    let defined = names.define(&source.types, fields, ("SPEC", "/spec"));
    for (field, form) in source.shown() {
        let pointer = quoted(&format!("/spec/{}", field.name));
        let named = defined.lines().find_map(|line| {
            let mut words = line.strip_prefix("#define ")?.splitn(3, ' ');
            let name = words.next()?;
            (words.next()? == pointer).then(|| name.to_owned())
        });
        let Some(name) = named else { continue };
        let function = match form {
            Form::Value => "show_value",
            Form::Count => "show_count",
            Form::Presence => "show_presence",
        };
        let key = quoted(&field.name);
        text += &format!("  {function}(data, {key}, ph_at(request->object, {name}));\n");
    }
    text
}
