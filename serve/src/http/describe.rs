//! The description of all paths for programs (OpenAPI 3.1), made from the tables that the server itself reads: the
//! routes, their parameters, the types of their answers, and the reasons of refusals.
//!
//! The examples of answers are in `describe/examples.json`, by path and type. A test asks each question and compares
//! them; `WEBSTRATA_REGENERATE=1 cargo test -p webstrata-tests --test description` writes the file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use tonic::Code;
use webstrata_layers::answers::lines::Answered;
use webstrata_layers::read::question::Question;

use super::question::parameter::Parameter;
use super::{ROUTES, Route};
use crate::protocol::refusal::http_status;
use crate::protocol::status::Reason;

const ABOUT: &str = "\
    Which page linked to which, and when. Every answer names its epoch. Every parameter is checked: an unknown, \
    repeated or invalid parameter is refused by name. In a parameter, + is a space and %2B a plus. A time is a year, \
    month, day or second in ISO 8601 or as 4 to 14 digits (YYYYMMDDhhmmss), UTC without an offset; or June 2008; \
    yesterday; now; 30d ago. The example of a parameter is valid together with the examples of the required \
    parameters and of the parameters in x-with.";

const EXAMPLES: &str = include_str!("describe/examples.json");

const QUESTIONS: &str = r#"{"id":1,"op":"links","url":"http://a.example/","at":"2006"}
{"id":2,"op":"captures","url":"http://b.example/x"}
"#;

/// The description of one path: its parameters and its answer.
pub(in crate::http) struct Call {
    /// The name of the operation in generated clients.
    pub(in crate::http) id: &'static str,
    pub(in crate::http) summary: &'static str,
    /// More words, if the summary is not enough.
    pub(in crate::http) about: Option<&'static str>,
    pub(in crate::http) parameters: &'static [Parameter],
    pub(in crate::http) answer: Answer,
}

/// A call that answers in JSON.
pub(in crate::http) const fn call<T: JsonSchema>(
    id: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
) -> Call {
    Call { id, summary, about: None, parameters, answer: Answer::Json(schema_of::<T>) }
}

/// A call that answers in text of one of these types.
pub(in crate::http) const fn text_call(
    id: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    kinds: &'static [&'static str],
) -> Call {
    Call { id, summary, about: None, parameters, answer: Answer::Text(kinds) }
}

/// The form of an answer.
#[derive(Clone, Copy)]
pub(in crate::http) enum Answer {
    /// An object of a type.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// Text in one of these types, with an example unless the text is long.
    Text(&'static [&'static str]),
    /// Lines of questions come in, and lines of answers go out.
    Lines,
    /// A redirect.
    Elsewhere,
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The description, without the address of a server.
pub(in crate::http) static DOCUMENT: LazyLock<Map<String, Value>> = LazyLock::new(document);

fn document() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let examples: Value = serde_json::from_str(EXAMPLES).unwrap_or_default();
    let error = generator.subschema_for::<RefusedAnswer>();
    let mut paths = Map::new();
    for route in ROUTES {
        let path = route.path.replace("{*", "{");
        let method = if matches!(route.call.answer, Answer::Lines) { "post" } else { "get" };
        let operation = operation(route, &examples[&path], &mut generator);
        paths.insert(path, json!({method: operation}));
    }
    let mut schemas = generator.take_definitions(true);
    schemas.values_mut().for_each(without_null);
    let responses: Map<String, Value> =
        refusals().into_iter().map(|(status, reasons)| (name_of(status), refused(&reasons, &error))).collect();
    let document = json!({
        "openapi": "3.1.0",
        "info": {"title": "Webstrata", "version": "1", "description": ABOUT},
        "paths": paths,
        "security": [{}, {"token": []}],
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
            "responses": responses,
        },
    });
    let Value::Object(document) = document else { unreachable!("an object was made") };
    document
}

fn operation(route: &Route, examples: &Value, generator: &mut SchemaGenerator) -> Value {
    let call = route.call;
    let mut shown = json!({"operationId": call.id, "summary": call.summary});
    if let Some(about) = call.about {
        shown["description"] = json!(about);
    }
    if !call.parameters.is_empty() {
        shown["parameters"] = call.parameters.iter().map(Parameter::description).collect();
    }
    let content = |kind: &str, schema: Value| {
        let mut content = json!({"schema": schema});
        if let Some(example) = examples.get(kind) {
            content["example"] = example.clone();
        }
        (kind.to_owned(), content)
    };
    let text = json!({"type": "string"});
    let (status, about, contents): (&str, &str, Map<String, Value>) = match call.answer {
        Answer::Json(schema) => {
            ("200", "The answer.", [content("application/json", schema(generator).into())].into_iter().collect())
        }
        Answer::Text(kinds) => {
            let schema = |kind: &str| if kind == "application/json" { json!({}) } else { text.clone() };
            ("200", "The text.", kinds.iter().map(|kind| content(kind, schema(kind))).collect())
        }
        Answer::Lines => {
            let question = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
            let mut question = question.into_generator().into_root_schema_for::<Question>();
            question.remove("$schema");
            shown["requestBody"] = json!({"required": true, "content": {
                "application/x-ndjson": {"schema": question, "example": QUESTIONS}}});
            let answered = generator.subschema_for::<Answered>().into();
            let about = "The answers. An invalid line or a question that fails is answered with an error, and reading \
                continues with the next line.";
            ("200", about, [content("application/x-ndjson", answered)].into_iter().collect())
        }
        Answer::Elsewhere => ("302", "The capture is at the URL of Location.", Map::new()),
    };
    let mut responses = Map::new();
    responses.insert(status.to_owned(), json!({"description": about}));
    if !contents.is_empty() {
        responses[status]["content"] = contents.into();
    }
    if route.method.open {
        shown["security"] = json!([]);
    } else {
        let refusals = refusals().into_keys();
        let place = |status| json!({"$ref": format!("#/components/responses/{}", name_of(status))});
        responses.extend(refusals.map(|status| (status.to_string(), place(status))));
    }
    shown["responses"] = responses.into();
    shown
}

/// The reasons for which a path refuses a call, by HTTP status; none for a call that took too long.
fn refusals() -> BTreeMap<u16, Vec<Reason>> {
    let mut refusals: BTreeMap<u16, Vec<Reason>> = BTreeMap::new();
    // No path answers these: no path matches, or the server is not the one that was meant.
    let of_no_path = [Reason::NoSuchPath, Reason::WrongMethod, Reason::OtherStore];
    for reason in Reason::ALL.into_iter().filter(|reason| !of_no_path.contains(reason)) {
        refusals.entry(http_status(reason.code()).as_u16()).or_default().push(reason);
    }
    refusals.insert(http_status(Code::DeadlineExceeded).as_u16(), Vec::new());
    refusals
}

fn name_of(status: u16) -> String {
    format!("Refused{status}")
}

fn refused(reasons: &[Reason], error: &Schema) -> Value {
    let of = |reason: &Reason| format!("{}: {}", reason.name(), reason.about());
    let about: Vec<String> = reasons.iter().map(of).collect();
    let about = if about.is_empty() { "The answer took too long.".to_owned() } else { about.join(" ") };
    json!({"description": about, "content": {"application/json": {"schema": error}}})
}

/// A field that may be missing has no null: it is left out.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let required: Vec<Value> = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                for (name, property) in properties.iter_mut() {
                    if !required.iter().any(|required| required == name) {
                        drop_null(property);
                    }
                }
            }
            fields.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}

fn drop_null(property: &mut Value) {
    if let Some(Value::Array(kinds)) = property.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = &kinds[..] {
            property["type"] = kind.clone();
        }
    }
    if let Some(Value::Array(choices)) = property.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// The answer to a refused call.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the form of an answer that `refusal` writes")]
struct RefusedAnswer {
    error: RefusedCall,
}

/// Why a call failed.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the form of an answer that `refusal` writes")]
struct RefusedCall {
    /// The name of a gRPC code.
    code: String,
    /// The reason, for programs.
    reason: Reason,
    /// For people. The message about a wrong parameter begins with the name of the parameter.
    message: String,
    /// More for programs, such as the largest number of items that is allowed.
    metadata: Option<BTreeMap<String, String>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_description_refers_to_what_it_has() {
        fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("$ref").and_then(Value::as_str));
                    fields.values().for_each(|value| references(value, found));
                }
                Value::Array(items) => items.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        let document = Value::Object(DOCUMENT.clone());
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 100);
        for place in found {
            assert!(document.pointer(&place[1..]).is_some(), "{place}");
        }
        let text = document.to_string();
        for word in ["\"null\",\"null\"", "\"anyOf\":[]", "camelCase"] {
            assert!(!text.contains(word), "{word}");
        }
    }

    #[test]
    fn every_path_parameter_and_field_is_described() {
        let document = Value::Object(DOCUMENT.clone());
        let mut ids = BTreeSet::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for operation in operations.as_object().unwrap().values() {
                assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{path}");
                let mut names = BTreeSet::new();
                for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    assert!(names.insert(parameter["name"].as_str().unwrap()), "{path}: {parameter}");
                    assert!(!parameter["description"].as_str().unwrap().is_empty(), "{path}: {parameter}");
                }
            }
        }
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            for (field, property) in schema["properties"].as_object().into_iter().flatten() {
                let is_said = property["description"].is_string() || property["$ref"].is_string();
                assert!(is_said || name == "RefusedAnswer", "{name}.{field} has no description");
            }
        }
    }

    #[test]
    fn the_page_for_browsers_reads_fields_that_are_described() {
        const TYPES: &str = include_str!("../explorer/data/answers.d.ts");
        let schemas = &DOCUMENT["components"]["schemas"];
        let mut fields = 0;
        for (name, rest) in TYPES.split("export interface ").skip(1).filter_map(|text| text.split_once(" {\n")) {
            // The answers of paths, by path.
            if name == "Answers" {
                continue;
            }
            let described = &schemas[name]["properties"];
            assert!(described.is_object(), "{name} is not described");
            // Fields are indented once. Fields of fields are indented twice.
            let lines = rest.lines().take_while(|line| *line != "}").filter_map(|line| line.strip_prefix("  "));
            for (field, _) in
                lines.filter(|line| !line.starts_with([' ', '/', '}'])).filter_map(|line| line.split_once(':'))
            {
                let field = field.trim_end_matches('?');
                assert!(described[field].is_object(), "{name}.{field} is not described");
                fields += 1;
            }
        }
        assert!(fields > 80, "{fields} fields");
    }
}
