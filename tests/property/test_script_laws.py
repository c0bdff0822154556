"""Laws of Eta prompts, of JavaScript's spelling, and of Zod texts, each against a naive oracle."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hankwatch.core.errors import TemplateFault
from hankwatch.sandbox import eta, schema, zod
from hankwatch.sandbox.jslex import blanked

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=60)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS.filter(lambda key: not key.isdigit()), inner, max_size=4)
    ),
    max_leaves=12,
)
MARKS = st.sampled_from(["", "-", "_"])


@given(text=TEXTS)
def test_a_text_without_tags_renders_to_itself(text: str) -> None:
    assert eta.render(text.replace("<%", "< %"), {}) == text.replace("<%", "< %")


@given(before=TEXTS, value=TEXTS, after=TEXTS)
def test_values_come_between_the_texts_and_one_newline_goes(before: str, value: str, after: str) -> None:
    before, after = before.replace("<%", "< %"), after.replace("<%", "< %")
    whole = eta.render(f"{before}<%= it.value %>{after}", {"value": value})
    assert whole == before + value + after.removeprefix("\n")


@given(value=VALUES)
def test_json_comes_out_as_it_went_in(value: Any) -> None:
    assert json.loads(eta.render("<%= JSON.stringify(it.value) %>", {"value": value})) == value


@given(value=VALUES)
@settings(max_examples=50)
def test_compact_json_is_the_same_text_as_pythons(value: Any) -> None:
    ours = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert eta.render("<%= JSON.stringify(it.value) %>", {"value": value}) == ours


@given(spaces=st.text("\n \t", max_size=6), left=MARKS, right=MARKS)
def test_marks_take_white_space_on_their_side_only(spaces: str, left: str, right: str) -> None:
    takes: dict[str, Callable[[str], str]] = {
        "-": lambda text: text.removesuffix("\n"),
        "_": lambda text: text.rstrip(),
        "": lambda text: text,
    }
    after = f"{spaces}b".lstrip() if right == "_" else f"{spaces}b".removeprefix("\n")
    assert eta.render(f"a{spaces}<%{left} it {right}%>{spaces}b", {}) == takes[left](f"a{spaces}") + after


@given(
    source=st.lists(
        st.sampled_from(["<%", "%>", "<%=", "-%>", "'", '"', "`", "${", "}", "/*", "*/", "\n", "it", "\\", " "])
    ).map("".join)
)
def test_any_template_renders_checks_or_faults_with_a_line_inside(source: str) -> None:
    assert 1 <= fault_line(source) <= source.count("\n") + 1


def fault_line(source: str) -> int:
    try:
        eta.check(source)
    except TemplateFault as fault:
        return fault.line or 0
    return 1


LITERALS = [r"'a\'`'", '"// /*"', "`'${`}` + '}'}\n`", "/* ' \n */", "/* // */", "// \"it's\n", "=/['/\\\\\"]/"]


@given(pieces=st.lists(st.sampled_from([*LITERALS, "(", " = ", "a", "1", ")", "\n", "{", "}"])))
def test_blanking_leaves_code_newlines_and_offsets(pieces: list[str]) -> None:
    source, blank = "".join(pieces), blanked("".join(pieces))
    at = 0
    for piece in pieces:
        seen = blank[at : at + len(piece)]
        at += len(piece)
        assert [c if c == "\n" else " " for c in seen] == [c if c == "\n" else " " for c in piece]
        assert seen.strip("='\"` \n") == ("" if piece in LITERALS else piece.strip("= \n")), source


@dataclass(frozen=True, slots=True)
class Shape:
    """A Zod text with an oracle that says which values it takes."""

    text: str
    takes: Callable[[Any], bool]
    optional: bool = False


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


LEAVES = [
    Shape("z.string()", lambda v: isinstance(v, str)),
    Shape("z.string().min(2)", lambda v: isinstance(v, str) and len(v) >= 2),
    Shape("z.string().regex(/^a+$/)", lambda v: isinstance(v, str) and re.fullmatch("a+", v) is not None),
    Shape("z.string().startsWith('a').max(2)", lambda v: isinstance(v, str) and v.startswith("a") and len(v) <= 2),
    Shape("z.number()", is_number),
    Shape("z.number().int().min(1)", lambda v: is_number(v) and v == int(v) and v >= 1),
    Shape("z.number().gt(0).lte(2)", lambda v: is_number(v) and 0 < v <= 2),
    Shape("z.boolean()", lambda v: isinstance(v, bool)),
    Shape("z.null()", lambda v: v is None),
    Shape("z.literal(1)", lambda v: is_number(v) and v == 1),
    Shape("z.enum(['a', 'b'])", lambda v: v in ("a", "b") and isinstance(v, str)),
    Shape("z.unknown()", lambda _: True),
    Shape("z.never()", lambda _: False),
]
ANSWERS = st.recursive(
    st.sampled_from([None, True, 0, 1, 1.0, 1.5, 2, 3, "", "a", "aa", "b", "ab", "éé"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


def objects(fields: dict[str, Shape], unknown: str) -> Shape:
    def takes(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and all(field.optional or name in value for name, field in fields.items())
            and all(name not in value or field.takes(value[name]) for name, field in fields.items())
            and (unknown != ".strict()" or value.keys() <= fields.keys())
        )

    return Shape(
        f"z.object({{ {', '.join(f'{name}: {field.text}' for name, field in fields.items())} }}){unknown}", takes
    )


def wrappers(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    return st.one_of(
        inner.map(lambda s: Shape(f"{s.text}.optional()", s.takes, optional=True)),
        inner.map(lambda s: Shape(f"{s.text}.nullable()", lambda v: v is None or s.takes(v), s.optional)),
        inner.map(lambda s: Shape(f"{s.text}.describe('…')", s.takes, s.optional)),
        inner.map(lambda s: Shape(f"z.array({s.text})", lambda v: isinstance(v, list) and all(map(s.takes, v)))),
        inner.map(
            lambda s: Shape(
                f"z.record(z.string(), {s.text})", lambda v: isinstance(v, dict) and all(map(s.takes, v.values()))
            )
        ),
        st.tuples(inner, inner).map(
            lambda p: Shape(f"z.union([{p[0].text}, {p[1].text}])", lambda v: p[0].takes(v) or p[1].takes(v))
        ),
        st.builds(
            objects,
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.sampled_from(["", ".strict()", ".passthrough()"]),
        ),
    )


SHAPES = st.recursive(st.sampled_from(LEAVES), wrappers, max_leaves=5)


@given(shape=SHAPES, answers=st.lists(ANSWERS, min_size=3, max_size=8))
def test_the_schema_of_a_zod_text_takes_what_the_text_takes(shape: Shape, answers: list[Any]) -> None:
    made = zod.json_schema(shape.text)
    for answer in answers:
        assert (schema.validate(made, answer) == []) is shape.takes(answer), (shape.text, answer)


@given(shape=SHAPES)
@settings(max_examples=50)
def test_a_module_means_what_its_expression_means(shape: Shape) -> None:
    module = f'import {{ z }} from "zod";\nconst answer = {shape.text};\nexport default answer;\n'
    assert zod.json_schema(module) == zod.json_schema(shape.text)
