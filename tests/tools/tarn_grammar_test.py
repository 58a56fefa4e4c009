"""tarn run: --grammar and --json-schema."""

import json
import os
import pathlib
import sys
import tempfile
import unittest

from tarn_testing import MODEL, tarn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "grammar"))
import json_schemas

RUN = ["run", "-m", MODEL, "-p", "ROMEO:", "-q", "--no-echo"]
PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
                                           "sex": {"enum": ["f", "m"]}}, "required": ["name", "age"], "additionalProperties": False}

LARGE = {"type": "object", "properties": {f"p{i}": {"anyOf": [{"const": i}, {"const": -1 - i}]} for i in range(9001)}, "additionalProperties": False}


NODE = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"], "additionalProperties": False}


class GrammarTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def stats(self, *arguments):
        path = os.path.join(self.folder, "stats.json")
        status, out, err = tarn(*RUN, *arguments, "--json-stats", path)
        self.assertEqual(status, 0, err)
        with open(path, encoding="utf-8") as file:
            return out.decode(), json.load(file)

    def test_text_follows_the_rules(self):
        rules = self.file("rules.gbnf", 'root ::= ("Yes" | "No") ", " [a-z]{3,5} "."\n')
        text, stats = self.stats("--grammar", rules)
        self.assertRegex(text, r"^(Yes|No), [a-z]{3,5}\.\n?$")
        self.assertEqual(stats["stop_reason"], "grammar")
        self.assertIn(stats["allocations_after_creation"], (0, None))
        greedy, _ = self.stats("--grammar", rules, "--temp", 0)
        self.assertRegex(greedy, r"^(Yes|No), [a-z]{3,5}\.\n?$")

    def test_text_is_valid_by_the_schema(self):
        schema = self.file("person.json", json.dumps(PERSON))
        for seed in range(5):
            text, stats = self.stats("--json-schema", schema, "-s", seed, "-n", 1000, "--temp", 1.5)
            person = json.loads(text)
            self.assertEqual(list(person)[:2], ["name", "age"])
            self.assertLessEqual(len(person["name"]), 12)
            self.assertIn(person["age"], range(151))
            self.assertIn(stats["stop_reason"], ("grammar", "n"))

    def test_rules_of_a_schema_are_a_grammar(self):
        schema = self.file("person.json", json.dumps(PERSON))
        status, rules, err = tarn(*RUN, "--json-schema", schema, "--print-grammar")
        self.assertEqual(status, 0, err)
        text, _ = self.stats("--grammar", self.file("person.gbnf", rules.decode()), "-n", 1000)
        self.assertIn("age", json.loads(text))
        for others in [], ["--grammar", schema]:
            status, out, err = tarn(*RUN, "--print-grammar", *others)
            self.assertEqual((status, out), (2, b""))
            self.assertIn("--print-grammar is there without --json-schema", err)

    def test_rules_grow_with_the_schema(self):
        def size(schema):
            status, rules, err = tarn(*RUN, "--json-schema", self.file("large.json", json.dumps(schema)), "--print-grammar")
            self.assertEqual(status, 0, err)
            return len(rules)

        self.assertLess(size(json_schemas.deep(40)), 2.5 * size(json_schemas.deep(20)))
        self.assertLess(size(json_schemas.chain(20000)), 1000)

    def test_limits_have_options(self):
        rules = self.file("long.gbnf", 'root ::= "x"{70000}')
        text, stats = self.stats("--grammar", rules, "--grammar-states", 80000, "-n", 5)
        self.assertEqual((text.strip(), stats["stop_reason"]), ("xxxxx", "n"))
        for options, code, message in ((["--grammar-states", 100], 1, "more than max_states 100 states: "),
                                       (["--grammar-states", 80000, "--grammar-work", 1000], 1, "more than max_work 1000 steps: "),
                                       (["--grammar-states", 80000, "--grammar-work", 1000], 1, "or raise max_work (--grammar-work)"),
                                       (["--grammar-states", 0], 2, "--grammar-states: is '0', expected an integer from 1 to 4194304")):
            status, out, err = tarn(*RUN, "--grammar", rules, *options)
            self.assertEqual((status, out), (code, b""), options)
            self.assertIn(message, err)

    def refused(self, option, text, message):
        path = self.file("wrong", text)
        status, out, err = tarn(*RUN, option, path)
        self.assertEqual((status, out), (1, b""), text)
        self.assertIn(message, err)
        return err

    def test_endless_schema_gets_no_hint_about_its_size(self):
        err = self.refused("--json-schema", json.dumps(NODE), "never comes to an end")
        self.assertNotIn("maxLength", err)

    def test_files_are_read_to_their_limit(self):
        for option in "--grammar", "--json-schema":
            status, out, err = tarn(*RUN, option, "/dev/zero")
            self.assertEqual((status, out), (1, b""), option)
            self.assertEqual(err, "tarn: error: /dev/zero: more than 16777216 bytes, at most so many expected\n")

    def test_byte_order_marks_are_no_text(self):
        text, _ = self.stats("--grammar", self.file("mark.gbnf", '\ufeffroot ::= "Yes"'))
        self.assertEqual(text.strip(), "Yes")
        text, _ = self.stats("--json-schema", self.file("mark.json", '\ufeff{"const": 7}'))
        self.assertEqual(text.strip(), "7")

    def test_limits_say_what_helps(self):
        rules = "root ::= r0 r0\n" + "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(1300)) + 'r1300 ::= "x"'
        self.refused("--grammar", rules, "more than 256 rules (4 times max_stacks 64) begin or end at one place: make the grammar simpler")

    def test_errors_of_schemas_name_the_field(self):
        cases = (({"$defs": {"a": {"$id": "http://x/a", "$defs": {"b": {"const": 1}}, "$ref": "#/$defs/b"}, "b": {"const": "x"}}, "$ref": "#/$defs/a"},
                  "#/$defs/a/$id: not supported but at the root"),
                 ({"$defs": {"a": {"$id": "y", "$defs": {"b": {"const": 1}}}}, "$ref": "#/$defs/a/$defs/b"}, "#/$defs/a/$id: not supported but at the root"),
                 ({"items": {"$id": "y"}}, "#/items/$id: not supported but at the root"),
                 ({"items": {"$anchor": "y"}}, "#/items/$anchor: this keyword is not supported"),
                 ({"type": "string", "pattern": 5}, "#/pattern: is 5, expected a string"),
                 ({"type": "string", "format": 3}, "#/format: is 3, expected a string"),
                 ({"$ref": 3}, "#/$ref: is 3, expected a string"),
                 ({"allOf": [{"required": 3}, {"required": ["a"]}]}, "#/allOf/0/required: is 3, expected a list of names"),
                 ({"allOf": [{"enum": {}}, {"enum": ["a"]}]}, "#/allOf/0/enum: is an object, expected a list of values"),
                 ({"properties": []}, "#/properties: is a list, expected an object"),
                 ({"items": 5}, "#/items: is 5, expected a schema: an object, true or false"),
                 ({"type": "object", "required": ["zz"], "additionalProperties": False}, '#/required: has "zz", which "additionalProperties": false forbids'),
                 ({"type": "object", "required": ["zz"], "additionalProperties": {"not": {}}}, "#/additionalProperties/not: this keyword"),
                 ({"properties": {"a/b~c": {"not": {}}}}, "#/properties/a~1b~0c/not: this keyword is not supported"),
                 ({"x/y": 1}, "#/x~1y: this keyword is not supported"),
                 ({"type": "integer", "minimum": 2**62}, "#/minimum: is 4611686018427387904, expected a whole number from -2^62 to 2^62 - 1"),
                 ({"type": "integer", "minimum": 0.5}, "#/minimum: is 0.5, expected a whole number"),
                 ({"type": "string", "maxLength": 2.5}, "#/maxLength: is 2.5, expected a whole number from 0"),
                 ({"type": "string", "maxLength": 2**20 + 1}, "#/maxLength: is 1048577, expected at most 1048576"),
                 ({"items": {}, "maxItems": 2**20 + 1}, "#/maxItems: is 1048577, expected at most 1048576"))
        for schema, message in cases:
            self.refused("--json-schema", json.dumps(schema), "wrong: " + message)
        self.refused("--json-schema", '{"type": "integer", "minimum": 1000000000000000000.1}', "wrong: #/minimum: is 1000000000000000000.1, expected a whole number")

    def test_errors_of_patterns_name_the_character(self):
        for pattern, message in (("^a{2,1}$", "3 of the pattern: {2,1} with the second number below the first"), ("^\u00e9{,3}$", "3 of the pattern: '{' without {m}"),
                                 ("^a{99999999999999999999}$", "3 of the pattern: a quantifier above 1048576"), ("^a{1,2,3}$", "3 of the pattern: '{' without"),
                                 ("a{", "2 of the pattern: '{' without"), ("\u00e9a\\q", "3 of the pattern: '\\q'"), ("a\\", "2 of the pattern: '\\' at the end")):
            self.refused("--json-schema", json.dumps({"type": "string", "pattern": pattern}), f"wrong: #/pattern: at character {message}")

    def rules_of(self, schema):
        status, rules, err = tarn(*RUN, "--json-schema", self.file("schema.json", schema), "--print-grammar")
        self.assertEqual(status, 0, err)
        return rules.decode()

    def test_constants_are_exact(self):
        for number, text in (("18446744073709551615", "18446744073709551615"), ("18446744073709551617", "18446744073709551617"), ("-0.0", "0"),
                             ("9223372036854775808", "9223372036854775808"), ("-9223372036854775809", "-9223372036854775809"), ("1.0e5", "100000"),
                             ("0.10000000000000000001", "0.10000000000000000001"), ("-1.00000000000000000002E-30", "-1.00000000000000000002e-30"), ("0.1", "0.1"),
                             ("12345678901234567890e50", "1.234567890123456789e69"), ("1234567890123456789.5", "1234567890123456789.5")):
            self.assertIn(f'::= "{text}"\n', self.rules_of('{"const": %s}' % number), number)
        self.assertIn('::= "18446744073709551617"\n', self.rules_of('{"type": "integer", "enum": [18446744073709551617, 18446744073709551617.5]}'))
        self.refused("--json-schema", '{"const": 1e-99999999999999999999}', "wrong: not a JSON schema: the exponent of 1e-99999999999999999999 is beyond")
        self.refused("--json-schema", '{"const": 9223372036854775807, "enum": [9.223372036854776e18]}', "wrong: #: no value is left")
        # The same number twice, and two that the nearest doubles would make one.
        same, other = '{"oneOf": [{"const": 18446744073709551617}, {"const": %s}]}', "18446744073709551618"
        self.assertIn('"18446744073709551618"', self.rules_of(same % other))
        self.refused("--json-schema", same % "1.8446744073709551617E19", "wrong: #/oneOf/1: a value could be valid by alternative 0")

    def test_whole_numbers_have_any_spelling(self):
        for one, other in (('"minimum": 1e3', '"minimum": 1000'), ('"maximum": 100.0', '"maximum": 100'), ('"exclusiveMinimum": -0.0', '"exclusiveMinimum": 0')):
            self.assertEqual(self.rules_of('{"type": "integer", %s}' % one), self.rules_of('{"type": "integer", %s}' % other))
        self.assertEqual(self.rules_of('{"type": "number", "minimum": 0.0}'), self.rules_of('{"type": "number", "minimum": 0}'))
        self.assertEqual(self.rules_of('{"type": "string", "minLength": 1.0, "maxLength": 20E-1}'), self.rules_of('{"type": "string", "minLength": 1, "maxLength": 2}'))

    def test_errors_name_the_place(self):
        cases = (("--grammar", 'root ::= "x"\nroot ::= y', "wrong: line 2, column 1: rule 'root' is defined twice"),
                 ("--grammar", "root ::= y", "wrong: line 1, column 10: rule 'y' is not defined"),
                 ("--json-schema", "{", "wrong: not a JSON schema: parse error at line 1"),
                 ("--json-schema", '{"properties": {"a": {"multipleOf": 2}}}', "wrong: #/properties/a/multipleOf: this keyword is not supported"),
                 ("--json-schema", '{"type": "strin"}', "wrong: #/type: 'strin' is no type"),
                 ("--json-schema", '{"$ref": "#/$defs/x"}', "wrong: #/$ref: '#/$defs/x' leads nowhere"),
                 *(("--json-schema", json.dumps({"prefixItems": [{"$ref": reference}, {}]}), f"wrong: #/prefixItems/0/$ref: '{reference}' leads nowhere")
                   for reference in ("#/prefixItems/2", "#/prefixItems/01", "#/prefixItems/-1", "#/prefixItems/ 1", "#/prefixItems/", "#/prefixItems/1x",
                                     "#/prefixItems/99999999999999999999", "#/prefixItems~1", "#prefixItems", "#/prefixItems/1/a")),
                 ("--json-schema", '{"$ref": "#"}', "wrong: #: '$ref' leads back to itself"),
                 ("--json-schema", '{"allOf": [{"$ref": "#"}]}', "wrong: #/allOf/0: a value is valid here where it is valid here"),
                 ("--json-schema", '{"type": "object", "anyOf": [{"$ref": "#"}, {"required": ["a"]}]}', "wrong: #: a value is valid here where"),
                 ("--json-schema", '{"properties": {"%s": {}}}' % ("a" * 30000), "wrong: #/properties: a name of 30000 bytes is not supported"),
                 ("--json-schema", json.dumps(LARGE), "up to here the schema makes more than the 8192 rules"),
                 ("--json-schema", '{"oneOf": [{"type": "integer"}, {"type": "number"}]}', "wrong: #/oneOf/1: a value could be valid by alternative 0"),
                 ("--json-schema", '{"type": "number", "maximum": 3}', "wrong: #/maximum: not supported for type number"),
                 ("--json-schema", '{"type": "string", "format": "email"}', "'email' is not supported, expected one of date, time"),
                 ("--json-schema", '{"type": "string", "pattern": "a(?=b)"}', "#/pattern: at character 4 of the pattern: a group other than"),
                 ("--json-schema", '{"type": "string", "maxLength": 100000}', "wrong: in its rules, which --print-grammar writes: line "),
                 ("--json-schema", '{"type": "string", "maxLength": 100000}', "in a schema, lower maxLength, maxItems or the number"),
                 ("--grammar", 'root ::= "x"{70000}', "more than max_states 65536 states: shorten repetitions {m,n}, or raise max_states (--grammar-states)"),
                 ("--json-schema", "[" * 1000, "more than 128 levels of nesting"))
        for option, text, message in cases:
            self.refused(option, text, message)
        path = self.file("wrong", "root ::=")
        status, _, err = tarn(*RUN, "--grammar", path, "--json-schema", path)
        self.assertEqual(status, 2, err)
        status, _, err = tarn(*RUN, "--grammar", path, "-i")
        self.assertEqual(status, 2, err)


if __name__ == "__main__":
    unittest.main()
