"""What a prompt in Eta may say, and how data prints in it (spec sentinels 6)."""

import sys
from collections.abc import Mapping
from typing import Any

import pytest

from hankwatch.core.errors import RenderFault, TemplateFault
from hankwatch.sandbox import eta

EVENTS = [{"type": "a", "data": {"text": "<b> & 'q'"}}, {"type": "b", "data": {}}]
CONTEXT: Mapping[str, Any] = {
    "events": EVENTS,
    "codon": {"id": "c#1"},
    "world": {"currentTime": "2026-01-01T00:00:02.500Z"},
    "n": 1,
}


def render(source: str, context: Mapping[str, Any] = CONTEXT) -> str:
    return eta.render(source, context)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a\n<%= it.n %>\nb", "a\n1b"),
        ("a\n\n<%= 1 %>\n\nb", "a\n\n1\nb"),
        ("a \n  <%- it.n %> \n b", "a \n   \n b"),
        ("a\n<%- %>b", "ab"),
        ("a \n\n <%_ it.n _%> \n\n b", "ab"),
        ("a\n<%-= it.n -%>\n\nb", "a1\nb"),
        ("a\n<%- = it.n -%>\n\nb", "a1\nb"),
        ("a\n<%-~ it.n -%>\nb", "a1b"),
        ("a<%= 1 _%>\n\n b", "a1b"),
        ("\n\n<% %>\n\n", "\n\n\n"),
        ("a\r\n<%= 1 %>\r\nb\rc", "a\n1b\nc"),
        ("\ufeff\u00a0<%_= 1 _%>\u2028\u3000x", "1x"),
    ],
)
def test_newlines_go_where_the_marks_say_and_one_after_each_tag(source: str, text: str) -> None:
    assert render(source) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("x<% /* %> */ %>y", "xy"),
        ("x<%= it.n // a comment %>y", "x1y"),
        ("x<%= '%>' %>y", "x%>y"),
        ('x<%= "a\\"%>" %>y', 'xa"%>y'),
        ("x<%= `a${`%>${'}'}`}` %>y", "xa%>}y"),
        ("<%= /* ' */ 1 %>", "1"),
    ],
)
def test_a_tag_ends_neither_in_a_string_nor_in_a_comment(source: str, text: str) -> None:
    assert render(source) == text


@pytest.mark.parametrize("text", ["\\ ` ${it.n} ' \" \\n", "a % > b %> c", "{{ it }} {% if %}", "\u2028\0é☕🎉", ""])
def test_text_between_tags_is_no_code(text: str) -> None:
    assert render(text) == text
    assert render(f"<% %>{text}<% %>{text}") == text * 2


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<% for (const e of it.events) { %>- <%= e.type %>\n<% } %>", "- a- b"),
        ("<% it.events.filter(e => e.type == 'b').forEach((e) => { %>[<%= e.type %>]<% }) %>", "[b]"),
        ("<% if (it.n > 1) { %>many<% } else { %>one<% } %>", "one"),
        ("<% if (it.n) %>yes<% else %>no", "yes"),
        ("<% function twice(x) { %><%= x %><%= x %><% } twice('ab') %>", "abab"),
        ("<% x = 1 %><%= x %>", "1"),
        ("<%= it.n %><% [1, 2].forEach(x => { %>.<% }) %>", "1.."),
        ("text<% (() => { it.n = 2 })() %><%= it.n %>", "text2"),
        ("<%= 1, 2 %><%= it.n; %>", "11"),
        ("<% return 'early' %>never", "early"),
    ],
)
def test_code_spans_tags(source: str, text: str) -> None:
    assert render(source) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (1e21, "1e+21"),
        (-0.0, "0"),
        (1e-7, "1e-7"),
        (0.1, "0.1"),
        (None, "null"),
        (True, "true"),
        ([1, [2, None]], "1,2,"),
        ({}, "[object Object]"),
        ("<b> & 'q'", "<b> & 'q'"),
        ("nul \0 end", "nul \0 end"),
    ],
)
def test_values_print_as_in_javascript_and_unescaped(value: Any, text: str) -> None:
    assert render("<%= it.value %>", {"value": value}) == text
    assert render("<%~ it.value %>", {"value": value}) == text


def test_json_keeps_the_order_and_the_look_of_javascript() -> None:
    value = {"b": 1.0, "a": [], "e": {}, "10": "é\u2028\x7f\b", "2": [1, {"x": None}], "__proto__": 1, "z": -0.0}
    text = '{"2":[1,{"x":null}],"10":"é\u2028\x7f\\b","b":1,"a":[],"e":{},"__proto__":1,"z":0}'
    assert render("<%= JSON.stringify(it) %>", value) == text
    assert render("<%= JSON.stringify(it.v, null, 1) %>", {"v": [{"a": [1, 2]}, []]}) == (
        '[\n {\n  "a": [\n   1,\n   2\n  ]\n },\n []\n]'
    )


def test_a_missing_value_prints_as_undefined() -> None:
    assert render("<%= it.events[0].data.nope %>") == "undefined"


@pytest.mark.parametrize("number", [2**53, -(2**53) - 1, 1764547200123456789, 2**64 - 1])
def test_a_long_integer_keeps_its_digits(number: int) -> None:
    context = {"number": number, "list": [number]}
    assert render("<%= it.number %> <%= JSON.stringify(it.list) %>", context) == f"{number} [{number}]"
    with pytest.raises(RenderFault, match="BigInt"):
        render("<%= it.number / 1000 %>", context)


def test_shorter_integers_stay_numbers_beside_a_long_one() -> None:
    assert render("<%= it.short + 1 %> <%= it.real %>", {"short": 2**53 - 2, "real": 1e300, "long": 2**53}) == (
        "9007199254740991 1e+300"
    )


def test_half_of_a_character_becomes_the_replacement_mark() -> None:
    assert render("<%= it.text.slice(0, 1) %>!", {"text": "🎉"}) == "\ufffd!"


def test_now_is_the_instant_of_the_trigger() -> None:
    now = "2026-01-01T00:00:02.500Z"
    assert render("<%= new Date().toISOString() %> <%= new Date(Date.now()).toJSON() %>") == f"{now} {now}"
    assert render("<%= Date().slice(0, 24) %>") == "Thu Jan 01 2026 00:00:02"
    assert render("<%= new Date(5).getTime() + Date.UTC(1970) %> <%= new Date() instanceof Date %>") == "5 true"


def test_nothing_random_is_offered() -> None:
    with pytest.raises(RenderFault, match="not a function"):
        render("<%= Math.random() %>")


@pytest.mark.parametrize(
    "way", ["require", "process", "fetch", "std", "os", "setTimeout", "console", "include", "layout"]
)
def test_a_prompt_has_no_way_out(way: str) -> None:
    with pytest.raises(RenderFault, match=f"{way} is not defined") as caught:
        render(f"one\n<% {way}('x') %>")
    assert caught.value.line == 2


def test_a_render_leaves_nothing_for_the_next_one() -> None:
    render("<% JSON.stringify = () => 'mine'; Array.prototype.map = null; leak = 1 %>")
    assert render("<%= JSON.stringify([1].map(x => x)) %> <%= typeof leak %>") == "[1] undefined"


def test_what_a_prompt_does_to_the_language_does_not_change_its_text() -> None:
    assert render("<% JSON.stringify = JSON.parse = null; String.prototype.toJSON = () => 7 %>a") == "a"


@pytest.mark.parametrize(
    "change",
    [
        "String.prototype.toString = String.prototype.valueOf = () => 'b'",
        "String.prototype.toWellFormed = () => 'b'",
        "String.prototype.includes = () => { throw 1 }",
        "Array.prototype.join = () => 'b'",
        "Object.prototype.toJSON = () => 'b'",
        "Function.prototype.call = Function.prototype.bind = () => 'b'",
        "Array.prototype[Symbol.iterator] = null",
    ],
)
@pytest.mark.parametrize("text", ["a", "a\0"])
def test_no_method_that_a_prompt_replaces_comes_between_its_text_and_the_model(change: str, text: str) -> None:
    assert render(f"<% {change} %>{text}") == text


def test_a_text_that_cannot_be_read_is_a_fault_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eta, "call", lambda *_: "not what was written")
    with pytest.raises(RenderFault, match="the prompt changed JavaScript itself"):
        render("a")


@pytest.mark.parametrize(
    ("source", "reason", "line"),
    [
        ("a\nb <% it", "unclosed tag", 2),
        ("a\n<%= 'b\n %>", "unclosed string", 2),
        ("a\n<%= `b %>", "unclosed string", 2),
        ("a\n<%= `${ 'b' %>", "unclosed string", 2),
        ("a\n<%\n/* b %>", "unclosed comment", 3),
        ("a\n<% if ( %>\nb", "SyntaxError", 2),
        ("a\n<%= %>", "SyntaxError", 2),
        ("a\n<% for (;;) { %>\nb\n", "SyntaxError", 4),
        ("a\n\n<%= 1 +\n * 2 %>", "SyntaxError", 4),
        ("<%# old comment %>", "SyntaxError", 1),
        ("<%= await 1 %>", "SyntaxError", 1),
    ],
)
def test_a_syntax_error_is_found_by_the_check_with_its_line(source: str, reason: str, line: int) -> None:
    with pytest.raises(TemplateFault, match=reason) as caught:
        eta.check(source)
    assert caught.value.line == line


def test_a_check_runs_no_code() -> None:
    eta.check("<% throw new Error('ran') %><%= it.a.b.c %>")


@pytest.mark.parametrize(
    ("source", "reason", "line"),
    [
        ("a\n<%= it.nope.member %>", "TypeError: cannot read property 'member' of undefined", 2),
        ("'\\\n`\n<% if (it.n) {\n  nope()\n} %>", "ReferenceError: nope is not defined", 4),
        ("<% const f = () => {\n  throw new Error('two\\nlines')\n} %>\n<% f() %>", "Error: two\nlines", 2),
        ("<% throw 'text' %>", "text", None),
        ("<% throw { code: 1 } %>", "[object Object]", None),
        ("<% throw '' %>", "JavaScript threw something without a text", None),
        ("<% throw { toString() { throw 1 } } %>", "JavaScript threw something without a text", None),
        ("a<% return %>b", "the prompt returned before its end, without a text", None),
    ],
)
def test_what_the_code_throws_is_told_with_its_line(source: str, reason: str, line: int | None) -> None:
    with pytest.raises(RenderFault) as caught:
        render(source)
    assert caught.value.reason == reason
    assert caught.value.line == line


def test_a_prompt_over_its_size_is_refused() -> None:
    with pytest.raises(RenderFault, match="longer than 32 MiB"):
        render("<%= 'é'.repeat(17 * 1024 * 1024) %>")


def test_without_the_engine_the_fault_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "quickjs", None)
    with pytest.raises(ImportError) as caught:
        eta.check("<%= it %>")
    assert eta.explain(caught.value) == ("needs a JavaScript engine: pip install 'hankwatch[eta]'", None)
