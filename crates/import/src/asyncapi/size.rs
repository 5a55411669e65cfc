//! Size of a message as JSON, estimated from its schema.

use crate::yaml::{YamlNode, YamlValue};

/// The most parts of a schema that are looked at: references can repeat.
const PARTS_MAX: usize = 10_000;

/// Deepest nesting of a schema.
const DEPTH_MAX: usize = 32;

/// Bytes of a text of unknown length, without quotes.
const TEXT_BYTES: u64 = 16;

/// Bytes of a number of unknown size.
const NUMBER_BYTES: u64 = 6;

/// Bytes of texts by their format, without quotes.
const FORMATS: [(&str, u64); 5] = [("date-time", 20), ("date", 10), ("time", 9), ("uuid", 36), ("ipv4", 12)];

/// Follows references.
type Resolve<'a, 'r> = &'r dyn Fn(&'a YamlNode) -> Option<&'a YamlNode>;

/// Estimates a size.
pub(super) struct Estimate<'a, 'r> {
    resolve: Resolve<'a, 'r>,
    parts: usize,
}

impl<'a, 'r> Estimate<'a, 'r> {
    /// Returns the size of a message; `None` if its schema does not tell it.
    pub fn of(message: &'a YamlNode, resolve: Resolve<'a, 'r>) -> Option<u64> {
        let mut payload = resolve(message.get("payload")?)?;
        let format = payload.get("schemaFormat").or_else(|| message.get("schemaFormat"));
        if let Some(YamlValue::Text(format)) = format.map(|format| &format.value)
            && !["json", "aai.asyncapi"].iter().any(|known| format.contains(known))
        {
            return None;
        }
        if payload.get("schemaFormat").is_some() {
            payload = resolve(payload.get("schema")?)?;
        }
        Estimate { resolve, parts: 0 }.schema(payload, 0)
    }

    fn schema(&mut self, node: &'a YamlNode, depth: usize) -> Option<u64> {
        self.parts += 1;
        if depth > DEPTH_MAX || self.parts > PARTS_MAX {
            return None;
        }
        let node = (self.resolve)(node)?;
        if let Some(value) = node.get("const") {
            return Some(json_bytes(&value.value));
        }
        if let Some(YamlValue::List(values)) = node.get("enum").map(|values| &values.value) {
            return values.iter().map(|value| json_bytes(&value.value)).max();
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(YamlValue::List(several)) = node.get(key).map(|several| &several.value) {
                let sizes: Option<Vec<u64>> = several.iter().map(|one| self.schema(one, depth + 1)).collect();
                return sizes?.into_iter().max();
            }
        }
        if let Some(YamlValue::List(several)) = node.get("allOf").map(|several| &several.value) {
            let mut sizes = several.iter().map(|one| self.schema(one, depth + 1));
            return sizes.try_fold(0_u64, |sum, bytes| Some(sum.saturating_add(bytes?)));
        }
        let kind = match node.get("type").map(|kind| &kind.value) {
            Some(YamlValue::Text(kind)) => kind.as_str(),
            Some(YamlValue::List(kinds)) => match kinds.first().map(|kind| &kind.value) {
                Some(YamlValue::Text(kind)) => kind.as_str(),
                _ => return None,
            },
            None if node.get("properties").is_some() => "object",
            _ => return None,
        };
        match kind {
            "object" => self.object(node, depth),
            "array" => {
                let item = self.schema(node.get("items")?, depth + 1)?;
                let count = whole(node, "minItems").unwrap_or(1).max(1);
                Some(item.saturating_add(1).saturating_mul(count).saturating_add(1))
            }
            "string" => Some(text_bytes(node).saturating_add(2)),
            "integer" | "number" => {
                Some(whole(node, "maximum").map_or(NUMBER_BYTES, |most| most.to_string().len() as u64))
            }
            "boolean" => Some(5),
            "null" => Some(4),
            _ => None,
        }
    }

    fn object(&mut self, node: &'a YamlNode, depth: usize) -> Option<u64> {
        let Some(YamlValue::Table(properties)) = node.get("properties").map(|all| &all.value) else { return Some(2) };
        let mut bytes = 1_u64;
        for property in properties {
            // Quotes, colon and comma.
            let own = property.key.len() as u64 + 4;
            bytes = bytes.saturating_add(own).saturating_add(self.schema(&property.node, depth + 1)?);
        }
        Some(bytes.max(2))
    }
}

/// Returns a number of a schema, 0 or more.
fn whole(node: &YamlNode, key: &str) -> Option<u64> {
    match node.get(key)?.value {
        YamlValue::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

fn text_bytes(node: &YamlNode) -> u64 {
    let format = match node.get("format").map(|format| &format.value) {
        Some(YamlValue::Text(format)) => FORMATS.iter().find(|(known, _)| known == format).map(|(_, bytes)| *bytes),
        _ => None,
    };
    let least = whole(node, "minLength").unwrap_or(0);
    let most = whole(node, "maxLength").unwrap_or(u64::MAX);
    format.unwrap_or(TEXT_BYTES).max(least).min(most)
}

fn json_bytes(value: &YamlValue) -> u64 {
    match value {
        YamlValue::Null => 4,
        YamlValue::Flag(flag) => 5 - u64::from(*flag),
        YamlValue::Integer(number) => number.to_string().len() as u64,
        YamlValue::Float(number) => number.to_string().len() as u64,
        YamlValue::Text(text) => text.len() as u64 + 2,
        YamlValue::List(_) | YamlValue::Table(_) => TEXT_BYTES,
    }
}
