#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""openapi.yaml is YAML that every reader reads the same, and OpenAPI 3.1.

    openapi_valid.py

Rules of our own hold always: no key twice, no value left empty by a comma, no word that OpenAPI
does not know where it stands, references that lead somewhere. openapi-spec-validator, which is no
package of Debian, is asked too where it is installed (scripts/setup-outside).
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

TREE = Path(__file__).resolve().parents[2]
FILE = TREE / "src/program/api/openapi.yaml"
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
# The words of OpenAPI 3.1 that we use, by the object that they stand in.
WORDS = {
    "document": {"openapi", "info", "servers", "security", "tags", "paths", "components"},
    "info": {"title", "version", "summary", "description", "license"},
    "tag": {"name", "description"},
    "path": METHODS | {"parameters", "summary", "description"},
    "operation": {"tags", "operationId", "summary", "description", "security", "parameters",
                  "requestBody", "responses", "x-scope"},
    "parameter": {"name", "in", "required", "description", "schema", "$ref"},
    "body": {"required", "content", "description"},
    "response": {"description", "content", "$ref"},
    "content": {"schema"},
    "components": {"securitySchemes", "parameters", "responses", "schemas"},
    "schema": {"$ref", "allOf", "anyOf", "oneOf", "not", "type", "required", "enum", "const",
               "default", "pattern", "properties", "propertyNames", "additionalProperties", "items",
               "prefixItems", "minimum", "maximum", "minLength", "maxLength", "minItems",
               "maxItems", "format", "description", "deprecated"},
}
NEEDED = {"operation": {"operationId", "responses", "summary", "tags"}, "parameter": {"name", "in"},
          "response": {"description"}, "info": {"title", "version"}, "tag": {"name", "description"}}


class Strict(yaml.SafeLoader):
    """YAML in which no key stands twice."""


def mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        raise yaml.constructor.ConstructorError(None, None, f"duplicate keys {twice}",
                                                node.start_mark)
    return loader.construct_mapping(node, deep=True)


Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)


class Walk:
    """Goes over a document and notes what is wrong with it, and where."""

    def __init__(self, document):
        self.document, self.found = document, []
        self.names = []

    def words(self, kind, node, where):
        """Whether it is an object of this kind, with the words of that."""
        if not isinstance(node, dict):
            self.found.append(f"{where}: this is no {kind}: {node!r}")
            return False
        for word in node:
            if word not in WORDS[kind]:
                self.found.append(f"{where}: a {kind} has no {word!r}")
        for word in NEEDED.get(kind, set()) - set(node):
            if "$ref" not in node:
                self.found.append(f"{where}: a {kind} without {word!r}")
        for word, value in node.items():
            if value is None:
                self.found.append(f"{where}.{word}: there is no value")
        return True

    def reference(self, node, where):
        place = self.document
        for part in node["$ref"].removeprefix("#/").split("/"):
            place = place.get(part) if isinstance(place, dict) else None
        if place is None or set(node) != {"$ref"}:
            self.found.append(f"{where}: {node} leads nowhere, or is not alone")

    def schema(self, node, where):
        if not self.words("schema", node, where):
            return
        if "$ref" in node:
            self.reference({"$ref": node["$ref"]}, where)
        if "pattern" in node:
            re.compile(node["pattern"])
        for word in ("allOf", "anyOf", "oneOf", "prefixItems"):
            for index, part in enumerate(node.get(word, [])):
                self.schema(part, f"{where}.{word}[{index}]")
        for name, part in node.get("properties", {}).items():
            self.schema(part, f"{where}.{name}")
        for word in ("items", "additionalProperties", "propertyNames", "not"):
            if not isinstance(node.get(word, False), bool):
                self.schema(node[word], f"{where}.{word}")
        for name in node.get("required", []):
            if "properties" in node and name not in node["properties"] and \
                    "additionalProperties" not in node:
                self.found.append(f"{where}: {name} is required, and no property")

    def contents(self, node, where):
        for kind, content in node.items():
            if not re.fullmatch(r"[a-z]+/[a-z.+-]+", kind):
                self.found.append(f"{where}: {kind!r} is no media type")
            if self.words("content", content, f"{where}.{kind}"):
                self.schema(content["schema"], f"{where}.{kind}")

    def parameter(self, node, where):
        if not self.words("parameter", node, where):
            return None
        if "$ref" in node:
            self.reference(node, where)
            node = self.document["components"]["parameters"].get(node["$ref"].split("/")[-1], {})
        elif node.get("in") not in ("path", "query", "header"):
            self.found.append(f"{where}: 'in' is {node.get('in')!r}")
        if node.get("in") == "path" and node.get("required") is not True:
            self.found.append(f"{where}: a parameter of the path is required")
        self.schema(node.get("schema"), where)
        return node.get("name") if node.get("in") == "path" else None

    def response(self, node, where):
        if not self.words("response", node, where):
            return
        if "$ref" in node:
            self.reference(node, where)
        self.contents(node.get("content", {}), where)

    def operation(self, node, names, where):
        if not self.words("operation", node, where):
            return
        self.names.append(node.get("operationId"))
        for index, parameter in enumerate(node.get("parameters", [])):
            names.append(self.parameter(parameter, f"{where}.parameters[{index}]"))
        if "requestBody" in node and self.words("body", node["requestBody"], f"{where}.body"):
            self.contents(node["requestBody"]["content"], f"{where}.body")
        for status, response in node.get("responses", {}).items():
            if not re.fullmatch(r"[1-5]\d\d|default", str(status)) or not isinstance(status, str):
                self.found.append(f"{where}: {status!r} is no status")
            self.response(response, f"{where}.{status}")
        tags = {tag["name"] for tag in self.document["tags"]}
        if not set(node.get("tags", [])) <= tags:
            self.found.append(f"{where}: a tag that is not listed")

    def path(self, path, item):
        if not self.words("path", item, path):
            return
        shared = [self.parameter(parameter, f"{path}.parameters[{index}]")
                  for index, parameter in enumerate(item.get("parameters", []))]
        for method in METHODS & set(item):
            names = list(shared)
            self.operation(item[method], names, f"{method.upper()} {path}")
            given = {name for name in names if name}
            if given != set(re.findall(r"{(\w+)}", path)):
                self.found.append(f"{method.upper()} {path}: its parameters are {given}")

    def run(self):
        document = self.document
        if not self.words("document", document, "document"):
            return self.found
        if not re.fullmatch(r"3\.1\.\d", str(document["openapi"])):
            self.found.append(f"openapi is {document['openapi']!r}")
        self.words("info", document["info"], "info")
        for index, tag in enumerate(document["tags"]):
            self.words("tag", tag, f"tags[{index}]")
        for path, item in document["paths"].items():
            self.path(path, item)
        components = document["components"]
        self.words("components", components, "components")
        for name, node in components["parameters"].items():
            self.parameter(node, f"parameters.{name}")
        for name, node in components["responses"].items():
            self.response(node, f"responses.{name}")
        for name, node in components["schemas"].items():
            self.schema(node, f"schemas.{name}")
        for name in {name for name in self.names if self.names.count(name) > 1}:
            self.found.append(f"operationId {name} twice")
        return self.found


def problems(text):
    try:
        return Walk(yaml.load(text, Strict)).run()
    except yaml.YAMLError as problem:
        return [str(problem)]


def faults(text):
    """The same text with one fault each: the rules must find them."""
    yield "a comma", text.replace('description: "It is not ready, and why"',
                                  "description: It is not ready, and why")
    line = "      operationId: livez\n"
    yield "a key twice", text.replace(line, line * 2)
    yield "a reference", text.replace("#/components/schemas/sent", "#/components/schemas/send", 1)
    yield "an operationId", text.replace("operationId: livez", "operationId: readyz")
    yield "a status", text.replace('"200": {description: The process is alive,',
                                   "200: {description: The process is alive,")
    yield "a parameter", text.replace("name: machine, in: path", "name: machin, in: path")
    yield "a word", text.replace("minItems: 1", "minItem: 1", 1)


def validator():
    beside = TREE / "build/venv/bin/openapi-spec-validator"
    return str(beside) if beside.exists() else shutil.which("openapi-spec-validator")


def main():
    text = FILE.read_text()
    found = problems(text)
    for what, wrong in faults(text):
        if wrong == text or not problems(wrong):
            found.append(f"the rules do not find {what} that is wrong")
    program = validator()
    if program:
        done = subprocess.run([program, str(FILE)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            found.append(done.stdout)
    else:
        print("openapi-spec-validator is not installed, and was not asked; "
              "scripts/setup-outside installs it")
    print("\n".join(found) or "openapi.yaml is valid")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
