"""What a Zod text may say, and the JSON Schema it stands for (spec sentinels 7)."""

import json
from typing import Any

import pytest

from hankwatch.core.errors import SchemaFault
from hankwatch.sandbox import schema, zod

JSON = dict[str, Any]
OBJECT_A: JSON = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def schema_of(text: str) -> JSON:
    made = zod.json_schema(text)
    schema.check(made)
    return made


def accepts(text: str, value: Any) -> bool:
    return schema.validate(zod.json_schema(text), value) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("z.string()", {"type": "string"}),
        ("z.string().min(1).max(5)", {"type": "string", "minLength": 1, "maxLength": 5}),
        ("z.string().length(3)", {"type": "string", "minLength": 3, "maxLength": 3}),
        ("z.string().email().describe('who')", {"type": "string", "format": "email", "description": "who"}),
        ("z.url()", {"type": "string", "format": "uri"}),
        ("z.string().uuid()", {"type": "string", "format": "uuid"}),
        ("z.string().regex(/^a'b\\/\\d$/)", {"type": "string", "pattern": "^a'b\\/\\d$"}),
        ("z.string().startsWith('a.b')", {"type": "string", "pattern": "^a\\.b"}),
        ("z.string().includes('x').endsWith('$')", {"type": "string", "pattern": "x", "allOf": [{"pattern": "\\$$"}]}),
        ("z.number().int().positive()", {"type": "integer", "exclusiveMinimum": 0}),
        (
            "z.number().gte(0).lt(1).multipleOf(0.1)",
            {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.1},
        ),
        ("z.boolean()", {"type": "boolean"}),
        ("z.null()", {"type": "null"}),
        ("z.any()", {}),
        ("z.never()", {"not": {}}),
        ("z.literal('x')", {"const": "x"}),
        ("z.enum(['a', 'b'])", {"enum": ["a", "b"]}),
        ("z.nativeEnum({ A: 'a', B: 0, 0: 'B' })", {"enum": ["a", 0]}),
        ("z.union([z.string(), z.null()])", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ("z.string().nullable()", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ("z.string().or(z.number())", {"anyOf": [{"type": "string"}, {"type": "number"}]}),
        ("z.array(z.string()).nonempty()", {"type": "array", "items": {"type": "string"}, "minItems": 1}),
        ("z.record(z.string(), z.number())", {"type": "object", "additionalProperties": {"type": "number"}}),
        ("z.record(z.number())", {"type": "object", "additionalProperties": {"type": "number"}}),
        (
            "z.record(z.enum(['a']), z.null())",
            {"type": "object", "propertyNames": {"enum": ["a"]}, "additionalProperties": {"type": "null"}},
        ),
        (
            "z.tuple([z.string(), z.number().optional()])",
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "minItems": 1, "items": False},
        ),
        ("z.number().default(3)", {"type": "number", "default": 3}),
    ],
)
def test_each_type_has_its_counterpart(text: str, expected: JSON) -> None:
    assert schema_of(text) == expected


def test_fields_are_required_in_their_order_unless_they_may_be_absent() -> None:
    made = schema_of(
        "z.object({ z: z.any(), o: z.string().optional(), a: z.null(), d: z.number().default(1), n: z.null().nullish() })"
    )
    assert list(made["properties"]) == ["z", "o", "a", "d", "n"]
    assert made["required"] == ["z", "a"]


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("z.object({})", True),
        ("z.object({}).strict()", False),
        ("z.strictObject({})", False),
        ("z.object({}).strict().passthrough()", True),
        ("z.object({}).strict().extend({ a: z.any().optional() })", False),
        ("z.object({}).strict().merge(z.object({}))", True),
        ("z.object({}).catchall(z.string())", False),
    ],
)
def test_unknown_keys_pass_unless_the_object_is_strict(text: str, unknown: bool) -> None:
    assert accepts(text, {"other": 1}) is unknown
    assert accepts(text, {})


@pytest.mark.parametrize(
    "text",
    [
        "z.object({ a: z.string(), b: z.null() }).pick({ a: true })",
        "z.object({ a: z.string(), b: z.null() }).omit({ b: true })",
        "z.object({ a: z.string() }).partial().required()",
        "z.object({ a: z.string().optional() }).required({ a: true })",
        "z.object({ a: z.object({ x: z.string() }).shape.x })",
        "z.object({}).extend({ a: z.array(z.string()).element })",
        "z.object({ a: z.string().brand().readonly() })",
        "z.object({ a: z.string().optional().unwrap() })",
    ],
)
def test_schemas_are_built_from_others(text: str) -> None:
    assert schema_of(text) == OBJECT_A


def test_intersections_and_tagged_unions_hold_all_and_one() -> None:
    both = "z.object({ a: z.string() }).and(z.object({ b: z.number() }))"
    assert accepts(both, {"a": "x", "b": 1})
    assert not accepts(both, {"a": "x"})
    tagged = (
        "z.discriminatedUnion('k', [z.object({ k: z.literal('a') }), z.object({ k: z.literal('b'), v: z.number() })])"
    )
    assert accepts(tagged, {"k": "a"})
    assert not accepts(tagged, {"k": "b"})


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("z.string().datetime()", "2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05+01:00"),
        ("z.string().datetime({ offset: true })", "2026-01-02T03:04:05+01:00", "2026-01-02T03:04:05"),
        ("z.string().datetime({ local: true })", "2026-01-02T03:04:05", "2026-01-02"),
        ("z.iso.datetime({ precision: 0 })", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.6Z"),
        ("z.string().date()", "2026-02-28", "2026-02-30"),
        ("z.string().time()", "03:04:05.1", "3 o'clock"),
        ("z.string().base64()", "YWI=", "YWI"),
        ("z.number().safe()", 2**53 - 1, 2**53),
        ("z.number().min(2).nonnegative()", 2, 1),
    ],
)
def test_texts_and_numbers_are_held_to_their_form(text: str, good: Any, bad: Any) -> None:
    assert accepts(text, good)
    assert not accepts(text, bad)


@pytest.mark.parametrize(
    "text",
    [
        "z.object({ a: z.string() })",
        "z.object({ a: z.string() });",
        "// what we ask\nz.object({ a: z.string() }) // it's all",
        'import { z } from "zod";\n\nexport default z.object({ a: z.string() });\n',
        "import { z } from 'zod'; export default z.object({ a: z.string() })",
        "import {\n  z,\n} from 'zod/v4'\nexport const answer = z.object({ a: z.string() })",
        "import zod from 'zod';\nexport default zod.object({ a: zod.string() })",
        "const A = z.string();\nexport const schema = z.object({ a: A });\nexport const other = z.null();",
        "export const schema: z.ZodType<Answer> = z.object({ a: z.string() });\nexport type Answer = z.infer<typeof schema>;",
        "type T = { a: string }\ntype U = T | null;\nexport default z.object({ a: z.string() })",
        "const keys = ['a'] as const;\nconst A = z.string()\nexport default z.object({ [keys[0]]: A })",
    ],
)
def test_an_expression_or_a_module_of_typescript_is_accepted(text: str) -> None:
    assert schema_of(text) == OBJECT_A


def test_text_in_strings_and_comments_stays() -> None:
    text = "z.string().describe(`as const\nexport default\nimport { z } from 'x'`) /*\nexport default */"
    assert schema_of(text)["description"] == "as const\nexport default\nimport { z } from 'x'"


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("z.lazy(() => z.string())", "z.lazy is not supported", 1),
        ("z.object({\n  a: z.date(),\n})", "z.date is not supported: JSON has no dates", 2),
        ("z.object({\n  a: z.string().transform(x => x) })", "z.string().transform is not supported", 2),
        ("z.coerce.number()", "z.coerce is not supported", 1),
        ("z.number().refine(x => x > 1)", "z.number().refine is not supported", 1),
        ("z.string().valueOf()", "z.string().valueOf is not supported", 1),
        ("z.string().regex(/a/i)", "z.string().regex with a flag is not supported", 1),
        (r"z.string().regex(/\p{L}/u)", r"z.string().regex with \p{…} or \u{…} is not supported", 1),
        ("z.string().min('1')", "z.string().min needs a count", 1),
        ("z.number().max(NaN)", "z.number().max needs a number", 1),
        ("z.array(\n  z.object({ a: 'string' }))", "z.object() field a needs a schema", 2),
        ("z.object({}).pick({ a: true })", "z.object().pick names a, which the object has not", 1),
        ("z.enum([])", "z.enum needs a list that is not empty", 1),
        ("z.literal(1n)", "z.literal needs a string, number, boolean or null", 1),
        ("z.object({", "SyntaxError", 1),
        ("z.string('", "unclosed string", 1),
        ("", "SyntaxError", 1),
        (
            "interface Answer {\n  a: string\n}\nexport default z.null()",
            "interface is not supported in a schema text",
            1,
        ),
        ("const a = z.null()\ntype Answer = {\n  a: string\n}", "type is not supported in a schema text", 2),
        ("export enum Level { Low }\nexport default z.nativeEnum(Level)", "enum is not supported", 1),
        ("42", "gives no Zod schema", None),
        ("export const a = z.null()\nexport const b = z.null()", "exports several schemas", None),
        ("import { s } from './other'\nexport default s", "an import of './other' is not supported", 1),
        ("import fs from 'fs'\nexport default z.null()", "an import of 'fs' is not supported", 1),
    ],
)
def test_what_has_no_counterpart_is_named_with_its_line(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(SchemaFault) as caught:
        zod.json_schema(text)
    assert reason in caught.value.reason
    assert caught.value.line == line


@pytest.mark.parametrize("name", ["process", "require", "globalThis", "fetch", "module", "eval", "Function", "console"])
@pytest.mark.parametrize("text", ["{}.env", "typeof {} && z.string()", "z.string().describe(String({}))"])
def test_a_text_that_touches_the_world_is_refused(name: str, text: str) -> None:
    with pytest.raises(SchemaFault, match="is not available in a schema"):
        zod.json_schema(text.replace("{}", name))


@pytest.mark.parametrize(
    "text",
    [
        "(() => 0).constructor('return globalThis')() && z.string()",
        "(async () => 0).constructor('return globalThis')()",
        "(function* () {}).constructor('yield globalThis')().next()",
        "import('fs')",
        "(function () { return this })().x",
    ],
)
def test_there_is_no_way_round(text: str) -> None:
    with pytest.raises(SchemaFault):
        zod.json_schema(text)


def test_tampering_with_the_engine_gives_data_or_a_fault() -> None:
    text = "(''.__proto__.replace = Object, [].__proto__.map = () => 'x', z.object({ a: z.string() }))"
    with pytest.raises(SchemaFault):
        zod.json_schema(text)


def test_the_schema_of_the_cost_analyst_is_understood() -> None:
    text = "z.object({ total: z.number(), most: z.object({ codonId: z.string(), cost: z.number() }) })"
    assert json.dumps(schema_of(text)["properties"]["most"]["required"]) == '["codonId", "cost"]'
