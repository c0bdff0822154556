"""Nothing a child started survives it, whatever it does to hide (design "How it runs" 8)."""

import os
import resource
import signal
from collections.abc import Iterator
from uuid import uuid4

import anyio
import pytest
from tests.support.children import first_line, flowing, python, start

from hankwatch.core.clock import SystemClock, VirtualClock
from hankwatch.processes import Exit, kill_marked, marked_pids
from hankwatch.processes.tag import tagged

# Two sessions away, parents gone, output closed: found by nothing but its environment.
HIDDEN_GRANDCHILD = """
    import os, time
    def away():
        if os.fork():
            os._exit(0)
        os.setsid()
    reading, writing = os.pipe()
    if not os.fork():
        away(), away()
        os.write(writing, b'.')
        os.closerange(0, 3)
        time.sleep(60)
    os.read(reading, 1)
    print('ready', flush=True)
    time.sleep(60)
"""
SLEEPER = "import time; print(flush=True); time.sleep(60)"
HIDDEN_SLEEPER = "import os, time; print(os.getpid(), flush=True); os.closerange(0, 3); time.sleep(60)"
DEAF = """
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print('ready', flush=True)
    time.sleep(60)
"""


@pytest.fixture
def marker() -> Iterator[str]:
    """A marker nobody else has; the test fails when something that bears it is left."""
    name = f"test-{uuid4().hex}"
    yield f"{name}/codon/1"
    left = marked_pids(name)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


async def test_leaving_the_block_ends_a_grandchild_two_sessions_away(marker: str) -> None:
    async with start(python(HIDDEN_GRANDCHILD), marker=marker) as child:
        await first_line(child)
        assert len(set(marked_pids(marker)) - {child.pid}) == 1
    assert marked_pids(marker) == []


async def test_cancelling_the_block_ends_the_tree_too(marker: str) -> None:
    with anyio.CancelScope() as scope:
        async with start(python(HIDDEN_GRANDCHILD), marker=marker) as child:
            await first_line(child)
            scope.cancel()
            await child.wait()
    assert marked_pids(marker) == []


async def test_a_child_that_ends_on_sigterm_needs_none_of_the_grace(marker: str) -> None:
    clock = VirtualClock()
    async with start(python(SLEEPER), marker=marker, clock=clock) as child:
        await first_line(child)
        assert await child.terminate_tree(30) == ()
        assert await child.wait() == Exit(signal=signal.SIGTERM)
    assert clock.monotonic() == 0


async def test_a_child_deaf_to_sigterm_is_killed_after_the_grace(marker: str) -> None:
    clock = VirtualClock()
    async with flowing(clock), start(python(DEAF), marker=marker, clock=clock) as child:
        await first_line(child)
        begun = clock.monotonic()
        assert await child.terminate_tree(5) == ()
        assert clock.monotonic() - begun >= 5
        assert await child.wait() == Exit(signal=signal.SIGKILL)


async def test_ending_a_tree_twice_is_harmless(marker: str) -> None:
    async with start(python(SLEEPER), marker=marker) as child:
        assert await child.terminate_tree(0) == ()
        assert await child.terminate_tree(0) == ()
    assert await child.terminate_tree(0) == ()


async def test_a_child_gets_sigterm_once() -> None:
    code = """
        import signal, sys, time
        terms = []
        signal.signal(signal.SIGTERM, lambda *_: terms.append(1))
        print('ready', flush=True)
        while not terms:
            time.sleep(0.01)
        time.sleep(0.1)
        sys.exit(len(terms))
    """
    async with start(python(code)) as child:
        await first_line(child)
        await child.terminate_tree(30)
        assert await child.wait() == Exit(code=1)


async def test_a_child_that_cleared_its_environment_still_gets_its_grace(marker: str) -> None:
    """Its marker is gone; it is signalled with its group, once."""
    code = """
        import os, signal, sys, time
        if len(sys.argv) == 1:
            os.execve(sys.executable, [sys.executable, '-I', '-S', '-c', sys.orig_argv[4], 'again'], {})
        def leave(*_):
            raise SystemExit(4)
        signal.signal(signal.SIGTERM, leave)
        print('ready', flush=True)
        time.sleep(60)
    """
    async with start(python(code), marker=marker) as child:
        await first_line(child)
        assert marked_pids(marker) == [child.pid]
        assert await child.terminate_tree(30) == ()
        assert await child.wait() == Exit(code=4)


@pytest.mark.parametrize("environment", [{}, {"HANKWATCH_PROCESS": "another-run/codon/1"}])
async def test_an_orphan_that_cleared_or_changed_its_environment_and_left_the_session_is_ended(
    marker: str, environment: dict[str, str]
) -> None:
    code = f"""
        import os, sys
        if not os.fork():
            os.setsid()
            if os.fork():
                os._exit(0)
            os.setsid()
            os.execve(sys.executable, [sys.executable, '-I', '-S', '-c', {HIDDEN_SLEEPER!r}], {environment!r})
    """
    async with start(python(code), marker=marker) as child:
        pid = int(await first_line(child))
        await child.wait()
        assert marked_pids(marker) == marked_pids(marker.partition("/")[0]) == [pid]
    assert marked_pids(marker) == []


async def test_an_ended_process_that_nobody_reaps_is_not_waited_for(marker: str) -> None:
    code = """
        import os, sys, time
        if not os.fork():
            os.execve(sys.executable, [sys.executable, '-I', '-S', '-c', 'pass'], {})
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        print('ended', flush=True)
        time.sleep(60)
    """
    async with start(python(code), marker=marker) as child:
        await first_line(child)
        assert marked_pids(marker) == [child.pid]


def test_a_limit_that_is_set_already_is_given_back() -> None:
    before = resource.getrlimit(10)
    with tagged("run/codon/1"):
        assert resource.getrlimit(10) != before
    assert resource.getrlimit(10) == before


async def test_children_that_keep_forking_are_all_ended(marker: str) -> None:
    code = """
        import os, time
        print('ready', flush=True)
        os.closerange(0, 3)
        for _ in range(8):
            os.fork()
            os.setsid() if os.getpid() != os.getsid(0) else None
            time.sleep(0.002)
        time.sleep(60)
    """
    async with start(python(code), marker=marker) as child:
        await first_line(child)
        assert await child.terminate_tree(0) == ()
        assert marked_pids(marker) == []


async def test_orphans_of_a_dead_run_are_found_by_its_name_and_no_other_run_is(marker: str) -> None:
    run = marker.partition("/")[0]
    clock = SystemClock()
    async with (
        start(python(SLEEPER), marker=marker) as first,
        start(python(SLEEPER), marker=f"{run}/other/2") as second,
        start(python(SLEEPER), marker=f"{run}9/codon/1") as of_another_run,
    ):
        for child in (first, second, of_another_run):
            await first_line(child)
        assert set(marked_pids(run)) == {first.pid, second.pid}
        assert await kill_marked(run, clock=clock) == ()
        assert marked_pids(run) == []
        assert marked_pids(f"{run}9") == [of_another_run.pid]


def test_no_process_is_marked_with_nothing() -> None:
    assert marked_pids("") == []  # without this rule it is all that bear no marker, our parent among them
