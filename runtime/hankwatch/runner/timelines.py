"""Takes the run of an execution back: what can be gone back to, the rollback, and what a killed one left."""

from collections.abc import Callable

import anyio.from_thread
import anyio.to_thread

from hankwatch.core.errors import CheckpointFailed, RollbackRefused
from hankwatch.events.payload import Payload
from hankwatch.events.run import RollbackCompleted
from hankwatch.runner.checkpoints import Checkpoints
from hankwatch.runner.context import RunContext
from hankwatch.runner.control import GoBack
from hankwatch.runner.rigs import copied_places
from hankwatch.runner.rollback import Recovered, Rollback, recover
from hankwatch.runner.rollback_plan import ThreadCodon, choose
from hankwatch.runner.snapshots import snapshot
from hankwatch.runner.state import CodonRecord, RunState
from hankwatch.stream.reader import JournalReader


async def answer(asked: GoBack, context: RunContext, to_run: str, name_holder: Callable[[str], None]) -> bool:
    """Carry out the rollback that a waiting run was asked for, and say so; False when it is refused.

    ``to_run`` is the id of the run that goes on from there; ``name_holder`` is told once it is this process's run.

    Raises:
        InfrastructureError: the journal failed.
    """
    try:
        asked.answer = await _go_back(asked, context, to_run, name_holder)
    except (RollbackRefused, CheckpointFailed, OSError) as error:
        asked.refusal = error
    asked.answered.set()
    return asked.refusal is None


async def _go_back(asked: GoBack, context: RunContext, to_run: str, name_holder: Callable[[str], None]) -> str:
    ledger, keeper, stream = context.ledger, context.keeper, context.stream
    runs = ledger.state.runs
    async with keeper.repository() as checkpoints:
        thread = await _timeline(ledger.state, context, checkpoints)
        left = [await _timeline(RunState(runs[:n]), context, checkpoints) for n in range(1, len(runs))]
        choice = choose(thread, asked.to, left)

        async def continue_run() -> None:
            ledger.continue_as(to_run, "rollback", {**choice.starting_conditions, "leftRun": ledger.run_id})
            name_holder(to_run)
            await stream.sync()

        await Rollback(context.layout, checkpoints, context.archive, stream.emit).run(
            choice,
            from_run=ledger.run_id,
            to_run=to_run,
            globs=keeper.globs({codon.base_codon_id for codon in choice.kept}),
            continue_run=continue_run,
            codon_running=ledger.run.current is not None,
            auto_restart=asked.go_on,
        )
    stream.emit(snapshot(ledger))
    await keeper.begin()
    target = choice.target
    return f"Rolled back to checkpoint {target.sha[:12]} ({target.key.status}) of codon {target.key.codon_id}"


async def _timeline(state: RunState, context: RunContext, checkpoints: Checkpoints) -> list[ThreadCodon]:
    """What still counts for the latest run of ``state``, oldest first."""
    return [await _attempt(record, state, context, checkpoints) for record in state.thread]


async def _attempt(record: CodonRecord, state: RunState, context: RunContext, checkpoints: Checkpoints) -> ThreadCodon:
    run_id = next(run.run_id for run in state.runs if any(one is record for one in run.codons))
    base_id = record.base_codon_id or record.codon_id
    saved = await checkpoints.of_run(run_id)
    rig = next((codon.rig_setup for _, codon in context.hank.codons() if codon.id == base_id), ())
    return ThreadCodon(
        run_id,
        record.codon_id,
        base_id,
        record.name or "",
        record.status == "completed",
        tuple(one for one in saved if (one.key.codon_id, one.key.attempt) == (record.codon_id, record.attempt)),
        copied_places(rig, context.layout),
        (record.loop or {}).get("loopId"),
    )


async def settle(context: RunContext) -> None:
    """Finish or take back a rollback in which a process was killed; its children must have ended.

    Raises:
        CheckpointFailed: neither can be done.
        InfrastructureError: the journal failed.
    """
    ledger, stream, layout = context.ledger, context.stream, context.layout
    known = {run.run_id for run in ledger.state.runs}

    def tell(recovered: Recovered) -> None:
        last: tuple[Payload, ...] = ()
        if (finished := recovered.finished) is not None:
            told = JournalReader(layout.journal).read(types={RollbackCompleted.TYPE})
            if all(event.data["toRun"] != finished.to_run for event in told):
                last = (finished, snapshot(ledger))
        stream.emit(*recovered.infos(), *last)

    def from_thread(recovered: Recovered) -> None:
        anyio.from_thread.run_sync(tell, recovered)

    await anyio.to_thread.run_sync(recover, layout, context.archive, known.__contains__, from_thread)
