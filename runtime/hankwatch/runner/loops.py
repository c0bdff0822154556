"""What a pass over a loop's codons came to (reference 3.7)."""

from collections.abc import Sequence

from hankwatch.events.codec import parse_stamp
from hankwatch.events.run import LoopIterationCompleted
from hankwatch.runner.plan import IterationEnd
from hankwatch.runner.state import CodonRecord, total_cost


def iteration_completed(end: IterationEnd, thread: Sequence[CodonRecord], now_ms: int) -> LoopIterationCompleted:
    """The event of an iteration that ends at ``now_ms``; cost and tokens are those of its agents, every attempt's."""
    loop_id, iteration = end.place.loop.id, end.place.iteration
    records = [r for r in thread if r.loop and (r.loop.get("loopId"), r.loop.get("iteration")) == (loop_id, iteration)]
    began_ms = parse_stamp(records[0].started_at) if records else None
    return LoopIterationCompleted(
        loop_id=loop_id,
        iteration=iteration,
        duration_ms=max(0, now_ms - (now_ms if began_ms is None else began_ms)),
        cost_usd=total_cost(record.cost_usd for record in records),
        tokens_used=sum(record.tokens.input + record.tokens.output for record in records),
        is_final=end.is_final,
        termination_reason=end.reason,
    )
