"""Does a prompt show the events? Through members, loops, variables and macros, in both template languages."""

import pytest

from hankwatch.hank.interpolation import shows_events
from hankwatch.sentinels.prompts import Engine, Template

SHOWS: list[tuple[Engine, str]] = [
    ("jinja", "{{ it.events }}"),
    ("jinja", "{{ events | jsonl }}"),
    ("jinja", "{{ it['events'] }}"),
    ("jinja", "{{ it | tojson }}"),
    ("jinja", "{% for e in events %}{{ e.data.toolName }}{% endfor %}"),
    ("jinja", "{% for e in it.events | selectattr('type', 'equalto', 'x') %}{{ loop.index }} {{ e }}{% endfor %}"),
    ("jinja", "{% set last = events | last %}{{ last.type }}"),
    ("jinja", "{% set one %}{{ events }}{% endset %}{{ one }}"),
    ("jinja", "{% for a, b in events | groupby('type') %}{% set n = b %}{{ n | length }}{% endfor %}"),
    ("jinja", "{% set ns = namespace(n=0) %}{% for e in events %}{% set ns.n = e.data.cost %}{% endfor %}{{ ns.n }}"),
    ("jinja", "{% with es = it.events %}{{ es }}{% endwith %}"),
    ("jinja", "{% macro line(e) %}- {{ e.type }}{% endmacro %}{% for e in events %}{{ line(e) }}{% endfor %}"),
    ("jinja", "{% if events | length > 3 %}{{ events[:3] }}{% endif %}"),
    ("jinja", "{% for e in events %}"),
    ("eta", "<%= JSON.stringify(it.events, null, 1) %>"),
    ("eta", "<%~ it.events.length %>"),
    ("eta", "<% it.events.forEach(e => { %>- <%= e.type %>\n<% }) %>"),
    ("eta", "<% for (const { data } of it.events) { %><%= data.toolName %><% } -%>"),
    ("eta", "<% const failed = it.events.filter((e) => e.data.isError); const n = failed.length %><%= n %>"),
    ("eta", "<%_ const { events } = it _%><%= events.map(x => x.id).join() %>"),
    ("eta", "<%= JSON.stringify(it) %>"),
    ("eta", "<%= it['events'][0].type %>"),
]
HIDES: list[tuple[Engine, str]] = [
    ("jinja", "What happened?"),
    ("jinja", "events"),
    ("jinja", "it events {{ it.codon.name }} {{ codon.name }}"),
    ("jinja", "{{ 'events' }}"),
    ("jinja", "{{ it.codon.events }}"),
    ("jinja", "{% for e in events %}x{% endfor %}"),
    ("jinja", "{% set n = events | length %}{% if n > 3 %}Many.{% endif %}"),
    ("jinja", "{# {{ it.events }} #}{{ trigger.number }}"),
    ("jinja", "{% raw %}{{ it.events }}{% endraw %}"),
    ("jinja", "<%= it.events %>"),
    ("eta", "{{ it.events }}"),
    ("eta", "<%= it.codon.name %>"),
    ("eta", "<% it.events.forEach(e => { %>- <% }) %>"),
    ("eta", '<%= "it.events" %>'),
    ("eta", "<%/* it.events */%><%= it.trigger.number // it.events\n %>"),
    ("eta", "<% const text = JSON.stringify(it.events) %><%= JSON.stringify(it.codon) %>"),
    ("eta", "<%= item.events %>"),
]


@pytest.mark.parametrize(("engine", "source"), SHOWS)
def test_this_prompt_shows_them(engine: Engine, source: str) -> None:
    assert shows_events(Template(engine, source))


@pytest.mark.parametrize(("engine", "source"), HIDES)
def test_this_prompt_hides_them(engine: Engine, source: str) -> None:
    assert not shows_events(Template(engine, source))


def test_a_prompt_that_is_nested_without_end_is_left_to_the_check_of_its_syntax() -> None:
    assert shows_events(Template("jinja", "{{ events " + "[" * 100_000))
