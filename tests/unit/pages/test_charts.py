"""What a run costs over time and by codon, as a chart has it; codons as a tree."""

import re

from tests.support.stories import Story, eventful_story

from hankwatch.pages.charts import CHART_HEIGHT, cost_chart, token_rows
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.fold import RunFold
from hankwatch.pages.render import html
from hankwatch.pages.tree import CodonNode, LoopNode, codon_tree


def facts_of(story: Story) -> RunFacts:
    fold = RunFold()
    for event in story.events:
        fold.take(event)
    return fold.facts(live=False)


def usage(story: Story, codon: str, cost: float | None, **more: object) -> None:
    tokens = {"inputTokens": 1, "outputTokens": 2, "cacheCreationTokens": 0, "cacheReadTokens": 0}
    story.add("token.usage", codonId=codon, totalCost=cost, **tokens, **more)


def test_the_lines_end_at_what_was_spent_and_never_fall() -> None:
    facts = facts_of(eventful_story()[0])
    chart = cost_chart(facts)
    assert chart is not None
    assert chart.incomplete
    agents, sentinels = chart.lines
    assert agents.quarters[-1] == "$0.1912"
    assert sentinels.quarters[-1] == "$0.0010"
    heights = [float(y) for y in re.findall(r"V([\d.]+)", agents.path)]
    assert heights == sorted(heights, reverse=True)
    assert heights[-1] == 0 <= CHART_HEIGHT


def test_what_messages_told_is_not_counted_again_at_the_end_of_their_codon() -> None:
    story = Story()
    story.begin()
    for attempt in range(2):
        story.at(1_000 * attempt).start_codon("build")
        usage(story, "build", 0.25)
        usage(story, "build", None)
        usage(story, "build", 0.75, isFinal=True)
        story.at(1_000 * attempt + 500).end_codon("build", cost=1.0)
    chart = cost_chart(facts_of(story))
    assert chart is not None
    assert chart.lines[0].quarters[-1] == "$2.0000"


def test_without_any_price_there_is_no_chart_and_no_false_zero() -> None:
    story = Story()
    story.begin()
    story.start_codon("build")
    usage(story, "build", None)
    story.end_codon("build", cost=None)
    facts = facts_of(story)
    assert cost_chart(facts) is None
    assert [str(row.cost) for row in token_rows(facts)] == ["unknown"]
    assert "Cost over time" not in html(facts)


def test_tokens_are_told_by_authored_codon() -> None:
    rows = token_rows(facts_of(eventful_story()[0]))
    assert sum(row.tokens.output for row in rows) == 4 * 340
    assert rows[0].codon_id == "plan"
    assert all(0 <= x <= x + width <= 1_002 for row in rows for _, x, width in row.bars)


def test_codons_are_nested_by_loop_iteration_and_attempt() -> None:
    story = Story()
    story.begin()
    story.start_codon("plan")
    story.end_codon("plan", "failed")
    story.start_codon("plan")
    story.end_codon("plan")
    for n in range(5):
        for index, name in enumerate(("write", "read")):
            place = {"loopId": "refine", "iteration": n, "codonIndexInLoop": index}
            story.start_codon(f"{name}#{n}", baseCodonId=name, loopContext=place)
            if (n, name) != (4, "read"):
                story.end_codon(f"{name}#{n}", "failed" if n == 1 else "completed")
    tree = codon_tree(facts_of(story).codons)
    plan, refine = tree.nodes
    assert isinstance(plan, CodonNode)
    assert [attempt.status for attempt in plan.attempts] == ["failed", "completed"]
    assert isinstance(refine, LoopNode)
    assert [(one.number, one.status, one.unfolded, len(one.codons)) for one in refine.iterations] == [
        (0, "completed", False, 2),
        (1, "failed", False, 2),
        (2, "completed", True, 2),
        (3, "completed", True, 2),
        (4, "running", True, 2),
    ]
