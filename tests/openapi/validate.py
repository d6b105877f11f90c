"""Holds requests to GitHub, and answers in its name, to GitHub's own OpenAPI description (github.json, cut by ./cut).

    problems(request)                        a request as `crcr-sim github` records it: a list of sentences, [] when right
    response_problems(request, status, headers, body)      the same for what was answered to it

Stricter than GitHub where a mistake would go unnoticed: fields and parameters that it does not document are problems.
"""

import datetime
import functools
import json
import pathlib
import re

import jsonschema

HERE = pathlib.Path(__file__).resolve().parent
METHODS = ("get", "post", "patch", "put", "delete")
# What the simulator serves besides GitHub's REST API.
ELSEWHERE = ("/.well-known/", "/crcr/", "/_sim/")
# The one parameter that holds slashes: a file's path.
WHOLE = {"/repos/{owner}/{repo}/contents/{path}": "path"}
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")

formats = jsonschema.FormatChecker(formats=())


@formats.checks("date-time", raises=ValueError)
def is_date_time(value):
    if not isinstance(value, str):
        return True
    if not DATE_TIME.fullmatch(value):
        return False
    datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
    return True


@formats.checks("uri")
def is_uri(value):
    return not isinstance(value, str) or bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"]*", value))


def as_json_schema(node, strict, composed=False):
    """OpenAPI 3.0 says `nullable` where JSON Schema says null. strict: objects hold only what is described; parts of a
    composition (allOf and the like) stay open, as each sees the whole object."""
    if isinstance(node, list):
        return [as_json_schema(item, strict, composed) for item in node]
    if not isinstance(node, dict):
        return node
    made = {}
    for key, value in node.items():
        inside = composed or key in ("allOf", "anyOf", "oneOf")
        if key == "properties":
            made[key] = {name: as_json_schema(schema, strict) for name, schema in value.items()}
        elif key not in ("nullable", "enum", "default", "discriminator"):
            made[key] = as_json_schema(value, strict, inside)
        elif key == "enum":
            made[key] = value
    if strict and not composed and "properties" in made and not {"allOf", "anyOf", "oneOf"} & set(made):
        made.setdefault("additionalProperties", False)
    return {"anyOf": [made, {"type": "null"}]} if node.get("nullable") else made


@functools.lru_cache(maxsize=None)
def document(strict):
    text = json.loads((HERE / "github.json").read_text(encoding="utf-8"))
    text["components"]["schemas"] = {
        name: as_json_schema(schema, strict) for name, schema in text["components"]["schemas"].items()
    }
    return text


def resolved(node):
    while "$ref" in node:
        target = document(False)
        for step in node["$ref"].split("/")[1:]:
            target = target[step]
        node = target
    return node


def shortened(message):
    return message if len(message) < 320 else f"{message[:150]} … {message[-150:]}"


def schema_faults(schema, value, strict, what):
    resolver = jsonschema.RefResolver.from_schema(document(strict))
    validator = jsonschema.Draft7Validator(as_json_schema(schema, strict), resolver=resolver, format_checker=formats)
    found = []
    for error in sorted(validator.iter_errors(value), key=str):
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
        found.append(f"{what}{where}: {shortened(error.message)}")
    return found


@functools.lru_cache(maxsize=None)
def patterns():
    made = []
    for template, item in document(False)["paths"].items():
        pattern = ""
        for piece in re.split(r"({\w+})", template):
            if not piece.startswith("{"):
                pattern += re.escape(piece)
            elif WHOLE.get(template) == piece[1:-1]:
                pattern += f"(?P<{piece[1:-1]}>.+)"
            else:
                pattern += f"(?P<{piece[1:-1]}>[^/]+)"
        made.append((re.compile(pattern), template, item))
    return made


def find(method, path):
    """The operation and the path's parameters, or (None, why)."""
    for pattern, template, item in patterns():
        match = pattern.fullmatch(path)
        if match and method.lower() in item:
            return item[method.lower()], match.groupdict()
        if match and not any(other.fullmatch(path) for other, t, _ in patterns() if t != template):
            return None, f"{template} does not take {method}"
    return None, "no path of GitHub's that we call"


def typed(text, schema):
    """The text of a parameter as the type that its schema wants, if it is one."""
    kind = schema.get("type")
    if kind == "integer" and re.fullmatch(r"-?\d+", text):
        return int(text)
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    return text


def parameter_faults(operation, place, given):
    described = {p["name"]: p for p in map(resolved, operation.get("parameters", [])) if p["in"] == place}
    found = []
    for name, parameter in described.items():
        if name in given:
            value = typed(given[name], parameter["schema"])
            found += schema_faults(parameter["schema"], value, False, f"{place} parameter {name}")
        elif parameter.get("required"):
            found.append(f"{place} parameter {name} is missing")
    found += [f"{place} parameter {name} is not GitHub's" for name in given if name not in described]
    return found


def body_faults(operation, request):
    body, described = request.get("body"), operation.get("requestBody")
    if described is None:
        return [] if body in (None, "", {}) else ["a body where GitHub takes none"]
    if body is None:
        return ["the body is missing"] if described.get("required") else []
    if isinstance(body, str):
        return ["the body is not JSON"]
    kind = header(request.get("headers", {}), "content-type") or ""
    found = [] if kind.split(";")[0].strip() == "application/json" else [f"Content-Type is {kind!r}"]
    return found + schema_faults(described["content"]["application/json"]["schema"], body, True, "body")


def header(headers, name):
    return next((value for key, value in headers.items() if key.lower() == name), None)


def header_faults(request):
    headers = request.get("headers", {})
    found = []
    if not header(headers, "user-agent"):
        found.append("User-Agent is missing: GitHub answers 403")
    if not header(headers, "authorization") and not request["path"].startswith("/app-manifests/"):  # its code is the proof
        found.append("Authorization is missing")
    if not (header(headers, "accept") or "").startswith("application/vnd.github"):
        found.append("Accept names no application/vnd.github… type")
    return found


def problems(request):
    """What is wrong with a recorded request {method, path, query, headers, body}."""
    if request["path"].startswith(ELSEWHERE):
        return []
    operation, parts = find(request["method"], request["path"])
    if operation is None:
        return [parts]
    found = parameter_faults(operation, "path", parts)
    found += parameter_faults(operation, "query", request.get("query", {}))
    return found + header_faults(request) + body_faults(operation, request)


def response_problems(request, status, headers, body):
    """What is wrong with an answer; body is the document, or None when there was none."""
    if request["path"].startswith(ELSEWHERE):
        return []
    operation, why = find(request["method"], request["path"])
    if operation is None:
        return [] if status == 404 else [why]
    described = resolved(operation["responses"].get(str(status), {}))
    content = described.get("content", {})
    if "application/json" in content:
        found = schema_faults(content["application/json"]["schema"], body, False, "body")
    elif status >= 400:  # most operations do not list what every one of them may answer
        found = schema_faults({"$ref": "#/components/schemas/basic-error"}, body, False, "body")
        if not isinstance(body, dict) or "message" not in body:
            found.append("an error without a message")
    elif str(status) not in operation["responses"]:
        found = ["a status that GitHub does not document"]
    else:
        found = [] if body is None else ["a body where there is none"]
    if "Link" in described.get("headers", {}) and header(headers, "link"):
        found += [] if 'rel="' in header(headers, "link") else ["Link without rel"]
    return found


def assert_conforms(folder):
    """Every request that we sent to GitHub is one that GitHub describes."""
    record = folder / "github-requests.jsonl"
    if not record.exists():
        return
    wrong = []
    for line in record.read_text().splitlines():
        request = json.loads(line)
        wrong += [f"{request['method']} {request['path']}: {problem}" for problem in problems(request)]
    assert not wrong, "\n".join(wrong[:20])
