# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""openapi.yaml as tests need it: its operations, and what is wrong with an answer by them."""
import functools
import json
import re
from pathlib import Path

import yaml

from schema import Schemas

TREE = Path(__file__).resolve().parents[2]
FILE = TREE / "src/program/api/openapi.yaml"
CODES = set(re.findall(r"^DET_ERROR\((\w+),", (TREE / "include/detent/errors.def").read_text(),
                       re.MULTILINE))
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Operation:
    """One operation of the file, with the parameters of its path."""

    def __init__(self, schemas, path, method, item):
        self.schemas, self.path, self.method = schemas, path, method.upper()
        self.node = item[method]
        self.name = self.node["operationId"]
        given = item.get("parameters", []) + self.node.get("parameters", [])
        self.parameters = [schemas.follow(parameter) for parameter in given]

    def of(self, place):
        return {p["name"]: self.schemas.follow(p["schema"]) for p in self.parameters
                if p["in"] == place}

    @property
    def body(self):
        """The schema of the body, or None."""
        content = self.node.get("requestBody", {}).get("content", {})
        return self.schemas.follow(content["application/json"]["schema"]) if content else None

    def problems(self, answer, closed=False):
        """What of an answer is not as the file says."""
        responses = self.node["responses"]
        listed = responses.get(str(answer.status))
        if not listed:
            if answer.status < 400:
                return [f"{answer.status} is not listed"]
            if "default" not in responses and answer.status not in (400, 405):
                return [f"{answer.status}, and no error is listed"]
            return failure_problems(self.schemas, answer)
        content = self.schemas.follow(listed)["content"]
        if answer.type not in content:
            return [f"{answer.type!r} is not listed, only {list(content)}"]
        value = strict(answer) if answer.type == "application/json" else answer.body.decode()
        return self.schemas.problems(value, content[answer.type]["schema"], closed=closed)


@functools.lru_cache
def operations():
    document = yaml.safe_load(FILE.read_text())
    schemas = Schemas(document)
    return [Operation(schemas, path, method, item) for path, item in document["paths"].items()
            for method in item if method.upper() in METHODS]


def strict(answer):
    """The JSON of an answer, in which no member stands twice."""
    def pairs(found):
        names = [name for name, _ in found]
        if len(set(names)) != len(names):
            raise ValueError(f"a member stands twice: {names}")
        return dict(found)
    return json.loads(answer.body.decode(), object_pairs_hook=pairs)


def failure_problems(schemas, answer):
    if answer.type != "application/json":
        return [f"an error of the type {answer.type!r}"]
    value = strict(answer)
    found = schemas.problems(value, {"$ref": "#/components/schemas/failure"})
    if found:
        return found
    error = value["error"]
    if error["code"] not in CODES:
        found.append(f"{error['code']} is not in errors.def")
    if len(error["text"]) < 8 or " " not in error["text"]:
        found.append(f"this is no sentence: {error['text']!r}")
    return found
