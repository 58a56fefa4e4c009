"""Random JSON schemas, values that they call valid, and texts of values, for the tests of --json-schema."""

import json
import string

NAMES = ["a", "b", "ab", "abc", "name", "x-1", "é", "id", "a b", "[0]"]
PATTERNS = [("^[a-c]{2,4}$", ["ab", "abca"]), ("^(foo|ba[rz])\\d*$", ["foo", "baz12"]), ("^[^x\"]+\\.[a-z]{2}$", ["é.de", "a\\.io"]),
            ("b+", ["abba", "b", "x\nb"])]
FORMATS = {"date": ["2024-02-29", "1999-12-31"], "time": ["23:59:59Z", "01:02:03.5+01:30"], "date-time": ["2000-02-29T00:00:00Z"],
           "uuid": ["123e4567-e89b-12d3-a456-426614174000"], "ipv4": ["127.0.0.1", "255.249.99.0"]}


def deep(levels):
    """Every level stands beside two alternatives: compiled once for each, it would double."""
    made = {"type": "object"}
    for _ in range(levels):
        made = {"type": "object", "properties": {"a": made}, "additionalProperties": False, "anyOf": [{"required": ["a"]}, {"required": []}]}
    return made


def chain(length):
    links = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": {**links, f"d{length}": {"type": "null"}}}


NODE = {"type": "object", "properties": {"name": {"type": "string"}, "child": {"title": "Child", "allOf": [{"$ref": "#/$defs/Node"}]}},
        "required": ["name"]}
BOTH = {"$defs": {"a": {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}, "n": {"type": "integer"}}},
                  "b": {"type": "object", "properties": {"x": {"$ref": "#/$defs/b"}}, "required": ["n"]}},
        "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}
MANY = {"type": "object", "properties": {f"property_with_number_{i * 7919 % 1000:03}": {"type": "integer"} for i in range(600)}}
# References by every way to write a JSON pointer: items of lists, escapes of the pointer and of the URI, both at once.
POINTERS = {"#/prefixItems/0": [1], "#/prefixItems/1/anyOf/1": ["x"], "#/$defs/a~1b": [2], "#/$defs/a~0b": [3], "#/$defs/a%20b": [4], "#/$defs/a b": [4],
            "#/$defs/%C3%A9": [5], "#/$defs/a%7E1b": [2], "#/$defs/~01": [6], "#/$defs/100%": [7], "#/%24defs/a~1b": [2], "#/$defs%2Fa~1b": [2],
            "#/$defs/": [8], "#/$defs/list/oneOf/10": [10], "#/$defs/%7b%7D": [9]}


def pointer(reference):
    """The third item is what `reference` leads to."""
    names = {"a/b": 2, "a~b": 3, "a b": 4, "é": 5, "~1": 6, "100%": 7, "": 8, "{}": 9}
    return {"type": "array", "prefixItems": [{"const": 1}, {"anyOf": [{"type": "null"}, {"enum": ["x", "y"]}]}, {"$ref": reference}], "minItems": 3, "items": False,
            "$defs": {**{name: {"const": value} for name, value in names.items()}, "list": {"oneOf": [{"const": i} for i in range(12)]}}}


# Schemas, and values that they call valid.
CASES = [*((pointer(reference), [[1, None, *value]]) for reference, value in POINTERS.items()),
         ({"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/anyOf/1"}, "maxItems": 3}]}, [None, [], [[], [[]]]]),
         ({**NODE, "$defs": {"Node": NODE}}, [{"name": "a"}, {"name": "a", "child": {"name": "b", "child": {"name": "c"}}}]),
         (BOTH, [{"n": 1}, {"x": {"x": {"n": 3}, "n": 2}, "n": 1}]),
         (deep(4), [{}, {"a": {}}, {"a": {"a": {"a": {}}}}]),
         (chain(20), [None]),
         (MANY, [{}, {"property_with_number_007": 1}, {"property_with_number_0078": None, "property_": "", "p\u00e9": 1, "\"": 2}]),
         ({"type": "array", "items": {"type": "boolean"}, "anyOf": [{"prefixItems": [{"enum": [True]}]}, {"minItems": 1}]}, [[], [True], [False, True]]),
         ({"allOf": [{"type": "array", "prefixItems": [{"type": ["string", "null"]}, True]}, {"items": {"type": ["integer", "null"]}}]},
          [[], [None], [None, 2, 3]]),
         ({"allOf": [{"type": "array", "prefixItems": [True]}, {"prefixItems": [{"type": "null"}, {"type": "null"}], "items": False}]},
          [[], [None], [None, None]]),
         ({"type": "array", "prefixItems": [{"type": "null"}, False]}, [[], [None]]),
         ({"type": "integer", "enum": [1e300, 0.5, 7]}, [1e300, 7]),
         ({"enum": [2**64 + 1, -2**63, 2.5]}, [2**64 + 1, -2**63, 2.5])]


class Maker:
    """`schema()` makes one; `value(schema)` makes a value that is valid by it, for the schemas that `schema()` makes."""

    def __init__(self, random):
        self.random = random
        self.root = {}

    def schema(self, depth=0):
        kinds = [self.text, self.integer, self.plain, self.constant, self.number]
        if depth < 3:
            kinds += [self.thing, self.thing, self.array, self.choice, self.both]
        made = self.random.choice(kinds)(depth)
        if self.random.random() < 0.1:
            made["description"] = "words"
        return made

    def document(self):
        """A schema with a definition that refers to itself, at times."""
        made = self.schema()
        if self.random.random() < 0.3:
            tree = {"type": "object", "properties": {"value": self.schema(2), "next": {"anyOf": [{"type": "null"}, self.random.choice([{"$ref": "#/$defs/tree"}, {"title": "T", "allOf": [{"$ref": "#/$defs/tree"}]}])]}},
                    "required": ["value", "next"], "additionalProperties": False}
            made = {"type": "object", "properties": {"tree": {"$ref": "#/$defs/tree"}, "more": made}, "required": ["tree"],
                    "additionalProperties": False, "$defs": {"tree": tree}}
        self.root = made
        return made

    def text(self, _):
        kind = self.random.randrange(5)
        if kind == 0:
            return {"type": "string", "pattern": self.random.choice(PATTERNS)[0]}
        if kind == 1:
            return {"type": "string", "format": self.random.choice(list(FORMATS))}
        if kind == 2:
            low = self.random.randrange(4)
            return {"type": "string", "minLength": low, "maxLength": low + self.random.randrange(6)}
        return {"type": "string"}

    def integer(self, _):
        made = {"type": "integer"}
        low = self.random.randint(-1200, 1200)
        if self.random.random() < 0.6:
            made[self.random.choice(["minimum", "exclusiveMinimum"])] = low
        if self.random.random() < 0.6:
            made[self.random.choice(["maximum", "exclusiveMaximum"])] = low + 2 + self.random.randrange(self.random.choice([3, 30, 3000]))
        return made

    def number(self, _):
        return {"type": "number", "minimum": 0} if self.random.random() < 0.3 else {"type": "number"}

    def plain(self, _):
        return self.random.choice([{"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}, {"type": ["integer", "boolean"]},
                                   {"type": "string", "nullable": True, "enum": ["x"]}])

    def constant(self, _):
        values = ["x", "a\"b", "é\n", 0, -17, 2.5, True, None, ["x", 1], {"k": [1, {}]}, []]
        return {"const": self.random.choice(values)} if self.random.random() < 0.4 else {"enum": self.random.sample(values, 3)}

    def thing(self, depth):
        names = self.random.sample(NAMES, self.random.randrange(1, 5))
        made = {"type": "object", "properties": {name: self.schema(depth + 1) for name in names}}
        made["required"] = [name for name in names if self.random.random() < 0.5]
        kind = self.random.random()
        if kind < 0.5:
            made["additionalProperties"] = False
        elif kind < 0.8:
            made["additionalProperties"] = self.random.choice([{"type": "integer"}, {"type": "boolean"}])
        return made

    def array(self, depth):
        made = {"type": "array", "items": self.schema(depth + 1)}
        low = self.random.randrange(3)
        if self.random.random() < 0.5:
            made["minItems"] = low
        if self.random.random() < 0.8:
            made["maxItems"] = low + 1 + self.random.randrange(3)
        if self.random.random() < 0.3:
            made["prefixItems"] = [self.schema(depth + 1) for _ in range(self.random.randrange(1, 3))]
        return made

    def choice(self, depth):
        if self.random.random() < 0.5:
            return {"anyOf": [self.schema(depth + 1) for _ in range(self.random.randrange(1, 4))]}
        kinds = [{"type": "object", "properties": {"kind": {"const": name}, "data": self.schema(depth + 1)}, "required": ["kind"],
                  "additionalProperties": False} for name in "uv"]
        return {"oneOf": kinds + [{"type": "integer"}]}

    def both(self, depth):
        kind = self.random.randrange(3)
        if kind == 0:
            return {"type": "array", "allOf": [{"prefixItems": [{"type": ["string", "null", "integer"]}, True][: self.random.randint(1, 2)]},
                                               {"items": self.text(depth)}, {"minItems": 1, "maxItems": self.random.randint(1, 4)}]}
        if kind == 1:
            return {"type": "object", "properties": {"a": self.schema(depth + 1)}, "additionalProperties": False,
                    "anyOf": [{"required": ["a"]}, {"properties": {"a": True}}]}
        return {"type": "object", "allOf": [{"properties": {"a": self.schema(depth + 1)}, "required": ["a"]},
                                            {"properties": {"b": self.schema(depth + 1)}}]}

    # ---- values -------------------------------------------------------------------------------------------------

    def value(self, schema):
        pick, chance = self.random.choice, self.random.random()
        if "$ref" in schema:
            return self.value(self.root["$defs"]["tree"])
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return pick(schema["enum"])
        if "anyOf" in schema and "properties" in schema:
            return {"a": self.value(schema["properties"]["a"])}
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self.value(pick(schema[key]))
        if "allOf" in schema:
            if len(schema["allOf"]) == 1:
                return self.value(schema["allOf"][0])
            if schema["type"] == "array":
                return [self.value(schema["allOf"][1]["items"]) for _ in range(self.random.randint(1, schema["allOf"][2]["maxItems"]))]
            merged = {"type": "object", "properties": {}, "required": ["a"]}
            for part in schema["allOf"]:
                merged["properties"].update(part["properties"])
            return self.value(merged)
        kind = schema["type"]
        kind = pick(kind) if isinstance(kind, list) else kind
        if kind == "object":
            made = {name: self.value(part) for name, part in schema["properties"].items()
                    if name in schema.get("required", []) or chance < 0.5}
            more = schema.get("additionalProperties", True)
            if more is not False and chance < 0.7:
                made[pick(["other", "ac", "é2", "[0", "naming"])] = [1, {"x": "y"}] if more is True else self.value(more)
            return made
        if kind == "array":
            first = schema.get("prefixItems", [])
            most = schema.get("maxItems", 5)
            count = self.random.randint(min(schema.get("minItems", 0), most), most)
            return [self.value(first[i] if i < len(first) else schema["items"]) for i in range(count)]
        if kind == "string":
            return self.string(schema)
        if kind == "integer":
            low = schema.get("minimum", schema.get("exclusiveMinimum", schema.get("maximum", schema.get("exclusiveMaximum", 5)) - 40 - 1) + 1)
            high = schema.get("maximum", schema.get("exclusiveMaximum", low + 50) - 1)
            return pick([low, high, self.random.randint(low, high)])
        if kind == "number":
            return pick([0, 1.5, 12e30, 7, 0.001] + ([] if "minimum" in schema else [-2.25, -1e-9]))
        return {"boolean": chance < 0.5, "null": None}[kind]

    def string(self, schema):
        if "pattern" in schema:
            return self.random.choice(dict(PATTERNS)[schema["pattern"]])
        if "format" in schema:
            return self.random.choice(FORMATS[schema["format"]])
        low = schema.get("minLength", 0)
        count = self.random.randint(low, schema.get("maxLength", low + 6))
        return "".join(self.random.choice(string.printable + "é€😀\u2028\"\\") for _ in range(count))


MOST_INDENTATION = 64  # spaces behind a line break that a grammar of a schema takes (docs/grammars.md)


def spelled(random, value):
    """A text of the value, in one of the ways that programs write JSON; names and patterns have no needless escapes."""
    compact = random.choice([(",", ":"), (", ", ": ")])
    indent = random.choice([None, 2, 4])
    if indent is not None:
        text = json.dumps(value, ensure_ascii=False, indent=indent, separators=(",", ": "))
        if "\n" + " " * (MOST_INDENTATION + 1) not in text:
            return text
    return json.dumps(value, ensure_ascii=False, separators=compact)
