"""What a prompt in Jinja may say, and how data prints in it (spec sentinels 6; case A17)."""

from collections.abc import Mapping
from typing import Any

import pytest
from jinja2.exceptions import SecurityError, UndefinedError

from hankwatch.core.errors import RenderFault, TemplateFault
from hankwatch.sandbox import jinja

EVENT = {"type": "tool.result", "data": {"items": [1, "é <b> & 'q'"], "keys": "a field", "text": "10 < 20"}}
CONTEXT: Mapping[str, Any] = {"events": [EVENT], "codon": {"id": "c#1"}, "world": {"currentTime": "now"}}


def render(source: str, context: Mapping[str, Any] = CONTEXT) -> str:
    return jinja.render(source, context)


def test_members_of_it_are_names_of_their_own() -> None:
    assert render("{{ it.codon.id }} {{ codon.id }} {{ it.events|length }}") == "c#1 c#1 1"


def test_lists_and_objects_print_as_plain_json() -> None:
    assert render("{{ events[0].data['items'] }} {{ codon }}") == """[1,"é <b> & 'q'"] {"id":"c#1"}"""


@pytest.mark.parametrize("source", ["{{ events|map(attribute='type') }}", "{{ ('tool.result',) }}"])
def test_what_filters_and_expressions_collect_prints_as_a_list(source: str) -> None:
    assert render(source) == '["tool.result"]'


def test_views_of_an_object_print_as_lists() -> None:
    assert render("{{ codon.keys() }}{{ codon.values() }}{{ codon.items()|list }}") == '["id"]["c#1"][["id","c#1"]]'


@pytest.mark.parametrize(
    "source",
    [
        "'' ~ V",
        "V ~ ''",
        "V|string",
        "V|trim",
        "V|replace('nothing', '')",
        "V|indent",
        "'%s'|format(V)",
        "'%s' % V",
        "'%s' % (V,)",
        "'%(a)s' % {'a': V}",
        "'{}'.format(V)",
        "'{a}'.format(a=V)",
        "'{0[0]}'.format([V])",
        "'x'|replace('x', V)",
        "[V]|join(',')",
        "[{'a': V}]|join(',', attribute='a')",
        "['', '']|join(V)",
        "([V]|map('string')|list)[0]",
        "V|safe",
    ],
)
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("events[0].data['items'][1:] + [none, true]", """["é <b> & 'q'",null,true]"""),
        ("codon", '{"id":"c#1"}'),
        ("[{'a': [codon]}]", '[{"a":[{"id":"c#1"}]}]'),
    ],
)
def test_lists_and_objects_are_json_in_every_text_that_is_made_of_them(source: str, value: str, text: str) -> None:
    assert render(f"{{% set V = {value} %}}{{{{ {source} }}}}") == text


def test_of_what_is_no_list_a_text_is_made_as_ever() -> None:
    assert render("{{ 1 ~ 'a' ~ 1.5 }} {{ '%03d' % 7 }} {{ '{:>3}'.format('a') }} {{ ['a', 1]|join('-') }}") == (
        "1a1.5 007   a a-1"
    )
    assert render("{{ 'a'|upper }} {{ 'abc def'|truncate(3, true, '', 0) }} {{ 7 % 4 }}") == "A abc 3"
    assert render("{{ codon|pprint }}") == '{\n  "id": "c#1"\n}'


def test_a_concatenation_of_an_undefined_name_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("{{ 'a' ~ nope }}")


def test_a_field_comes_before_the_method_of_its_name() -> None:
    assert render("{{ events[0].data.items[0] }} {{ events[0].data.keys }}") == "1 a field"
    assert render("{% for name, value in codon.items() %}{{ name }}={{ value }}{% endfor %}") == "id=c#1"


def test_a_method_that_was_not_called_is_an_error_not_an_address() -> None:
    with pytest.raises(RenderFault, match="values is a method"):
        render("{{ events[0].data.values }}")


def test_tojson_is_json_for_people_not_for_html() -> None:
    assert render("{{ codon|tojson(indent=2) }}") == '{\n  "id": "c#1"\n}'
    assert render("{{ (codon|tojson) + '<b>&' }} {{ 'é <'|tojson }}") == '{"id":"c#1"}<b>& "é <"'


def test_jsonl_is_one_value_per_line() -> None:
    assert render("{{ [codon, 1, none]|jsonl }}") == '{"id":"c#1"}\n1\nnull'


@pytest.mark.parametrize(
    ("source", "text"),
    [("'abcdef'|truncate_text(6)", "abcdef"), ("'abcdef'|truncate_text(3)", "ab…"), ("'ab'|truncate_text(0)", "")],
)
def test_truncate_text_keeps_to_its_limit_and_shows_the_cut(source: str, text: str) -> None:
    assert render("{{ " + source + " }}") == text


def test_a_text_without_tags_is_sent_as_it_is() -> None:
    text = "  Watch <this> & that.\n\nLast line\n"
    assert render(text) == text


def test_a_line_that_holds_only_a_tag_leaves_no_line() -> None:
    assert render("a\n  {% if true %}\nb\n  {% endif %}\nc\n") == "a\nb\nc\n"


@pytest.mark.parametrize(
    "hostile", ["{{ ''.__class__.__mro__ }}", "{% endraw %}{{ 7*7 }}", "{% include '/etc/passwd' %}"]
)
def test_event_text_is_never_a_template(hostile: str) -> None:
    context = {"events": [{"data": {"text": hostile}}]}
    assert render("{% raw %}{{ {% endraw %}{{ events[0].data.text }}", context) == "{{ " + hostile


@pytest.mark.parametrize(
    "source",
    ["{{ ''.__class__ }}", "{{ ''|attr('__class__') }}", "{{ '{0.__class__}'.format(1) }}", "{{ codon.update(a=1) }}"],
)
def test_what_the_sandbox_refuses_fails_loudly(source: str) -> None:
    with pytest.raises(SecurityError):
        render(source)


@pytest.mark.parametrize(
    "source", ["a\n{{ nope }}", "a\n{% if nope %}{% endif %}", "a\n{{ codon.nope }}", "a\n{{ [codon.nope] }}"]
)
def test_an_undefined_name_is_named_with_its_line(source: str) -> None:
    with pytest.raises(UndefinedError) as caught:
        render(source)
    reason, line = jinja.explain(caught.value)
    assert "'nope'" in reason
    assert line == 2


@pytest.mark.parametrize("tag", ["include 'x'", "import 'x' as x", "from 'x' import y", "extends 'x'"])
def test_other_templates_are_out_of_reach_and_the_check_says_so(tag: str) -> None:
    with pytest.raises(TemplateFault, match="not possible in a prompt") as caught:
        jinja.check("first\n{% " + tag + " %}")
    assert caught.value.line == 2


@pytest.mark.parametrize("source", ["a\n{% if %}", "a\n{{ 1", "a\n{{ 'x'|no_such_filter }}", "a\n{% for x in [] %}"])
def test_a_syntax_error_is_found_by_the_check_with_its_line(source: str) -> None:
    with pytest.raises(TemplateFault) as caught:
        jinja.check(source)
    assert caught.value.line == 2


@pytest.mark.parametrize("source", ["{{ lipsum() }}", "{{ events|random }}"])
def test_nothing_random_is_offered(source: str) -> None:
    with pytest.raises((UndefinedError, TemplateFault)):
        render(source)


def test_a_prompt_over_its_size_is_refused() -> None:
    with pytest.raises(RenderFault, match="longer than 32 MiB"):
        render("{% for i in range(40) %}{{ 'x' * 1000000 }}{% endfor %}")


@pytest.mark.parametrize("source", ["{{ 'x'|spy }}", "{% set x = 'x'|spy %}", "{% if 'x'|spy %}{% endif %}"])
def test_a_check_evaluates_no_constant(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setitem(jinja._ENVIRONMENT.filters, "spy", calls.append)
    jinja.check(source)
    assert calls == []
