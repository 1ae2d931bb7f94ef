# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""JSON Schema, as much of it as openapi.yaml uses; a word that is not known here is an error.

`problems` says what is wrong with a value. With `closed` it also says which members of an object
the schema does not list, though nothing forbids them: what is not listed cannot be relied on.
"""
import re

TIME = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
                  r"T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d{1,9})?Z")
TYPES = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}
WORDS = {"$ref", "allOf", "anyOf", "oneOf", "not", "type", "required", "enum", "const",
         "pattern", "properties", "propertyNames", "additionalProperties", "items", "minimum",
         "maximum", "minLength", "maxLength", "minItems", "maxItems", "prefixItems", "format",
         "description", "deprecated"}


class Schemas:
    """The schemas of a document."""

    def __init__(self, document):
        self.document = document

    def follow(self, node):
        """What a reference means; references lead to references."""
        while isinstance(node, dict) and "$ref" in node:
            place = self.document
            for word in node["$ref"].removeprefix("#/").split("/"):
                place = place[word]
            node = place
        return node

    def listed(self, schema):
        """The members that are listed; None: any may be there."""
        schema = self.follow(schema)
        parts = schema.get("allOf", []) + schema.get("oneOf", [])
        names = [self.listed(part) for part in parts]
        if "properties" in schema:
            names.append(set(schema["properties"]))
        elif schema.get("type") == "object" or "additionalProperties" in schema:
            return None
        return None if not names or None in names else set().union(*names)

    def problems(self, value, schema, where="", closed=False):
        found = list(self.broken(value, schema, where or "it", closed))
        return found

    def broken(self, value, schema, where, closed):
        schema = self.follow(schema)
        if unknown := set(schema) - WORDS:
            raise ValueError(f"this is no schema that is read here: {unknown}")
        for part in schema.get("allOf", []):
            yield from self.broken(value, part, where, False)
        if "oneOf" in schema:
            yield from self.alternatives(value, schema["oneOf"], where)
        if "anyOf" in schema and all(self.problems(value, part) for part in schema["anyOf"]):
            yield f"{where} is {value!r}, none of {schema['anyOf']}"
        if "not" in schema and not self.problems(value, schema["not"]):
            yield f"{where} is {value!r}, which fits {schema['not']}"
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(TYPES[kind](value) for kind in kinds):
            yield f"{where} is {value!r}, not {' or '.join(kinds)}"
            return
        if "const" in schema and value != schema["const"]:
            yield f"{where} is {value!r}, not {schema['const']!r}"
        if "enum" in schema and value not in schema["enum"]:
            yield f"{where} is {value!r}, none of {schema['enum']}"
        if isinstance(value, str):
            yield from self.text(value, schema, where)
        elif TYPES["number"](value):
            yield from self.bounds(value, schema, where, "minimum", "maximum")
        elif isinstance(value, list):
            yield from self.bounds(len(value), schema, where, "minItems", "maxItems")
            for index, item in enumerate(value):
                first = schema.get("prefixItems", [])
                inner = first[index] if index < len(first) else schema.get("items", {})
                yield from self.broken(item, inner, f"{where}[{index}]", closed)
        elif isinstance(value, dict):
            yield from self.members(value, schema, where, closed)

    def alternatives(self, value, schemas, where):
        tried = [list(self.broken(value, schema, where, False)) for schema in schemas]
        if sum(not found for found in tried) != 1:
            yield f"{where} is not exactly one of its kinds: {tried}"

    @staticmethod
    def text(value, schema, where):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{where} is {value!r}, not {schema['pattern']}"
        if schema.get("format") == "date-time" and not TIME.fullmatch(value):
            yield f"{where} is {value!r}, which is no time"
        yield from Schemas.bounds(len(value), schema, where, "minLength", "maxLength")

    @staticmethod
    def bounds(number, schema, where, least, most):
        if number < schema.get(least, number):
            yield f"{where}: {number} is less than {least} {schema[least]}"
        if number > schema.get(most, number):
            yield f"{where}: {number} is more than {most} {schema[most]}"

    def members(self, value, schema, where, closed):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where} has no {name}"
        properties = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        for name, member in value.items():
            place = f"{where}.{name}"
            yield from self.broken(name, schema.get("propertyNames", {}), f"{place}, a name", False)
            if name in properties:
                yield from self.broken(member, properties[name], place, closed)
            elif more is False:
                yield f"{place} may not be there"
            elif isinstance(more, dict):
                yield from self.broken(member, more, place, closed)
        if closed and (names := self.listed(schema)) is not None:
            for name in sorted(set(value) - names):
                yield f"{where}.{name} is not listed"
