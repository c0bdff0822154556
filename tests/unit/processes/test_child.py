"""One child: what it is given, what is read from it, how its end is told."""

import json
import os
import signal
from pathlib import Path

import anyio
import pytest
from tests.support.children import first_line, flowing, python, read_all, start

from hankwatch.core.clock import SystemClock, VirtualClock
from hankwatch.core.errors import ProcessNotStarted
from hankwatch.processes import MARKER, Exit, spawn


async def test_a_child_gets_exactly_its_environment_and_the_marker(tmp_path: Path) -> None:
    code = "import json, os; print(json.dumps([dict(os.environ), os.getcwd(), os.getsid(0) == os.getpid()]))"
    env = {"ONLY": "this", "LC_ALL": "C.UTF-8"}
    async with spawn(python(code), cwd=tmp_path, env=env, marker="run/codon/1", clock=SystemClock()) as child:
        seen, cwd, own_session = json.loads(await first_line(child))
    assert seen == {**env, MARKER: "run/codon/1"}
    assert cwd == str(tmp_path)
    assert own_session


async def test_a_child_inherits_no_descriptor_of_ours() -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        async with start(
            python("import os, sys; print(os.path.exists(sys.argv[1]))", f"/proc/self/fd/{writing}")
        ) as child:
            assert await first_line(child) == b"False"
    finally:
        os.close(reading)
        os.close(writing)


async def test_a_child_without_stdin_reads_end_of_file() -> None:
    async with start(python("import sys; print(repr(sys.stdin.read()))")) as child:
        assert await first_line(child) == b"''"


async def test_what_is_sent_arrives_whole_and_closing_is_end_of_file() -> None:
    async with start(python("import sys; print(len(sys.stdin.buffer.read()))"), stdin=True) as child:
        assert await child.send(b"x" * 1_000_000)
        child.close_stdin()
        child.close_stdin()
        assert await first_line(child) == b"1000000"


async def test_sending_to_a_child_that_reads_no_more_says_so() -> None:
    async with start(python("pass"), stdin=True) as child:
        await child.wait()
        assert not await child.send(b"x" * 1_000_000)
        assert not await child.send(b"more")


async def test_the_exit_code_is_told() -> None:
    async with start(python("raise SystemExit(7)")) as child:
        assert await child.wait() == Exit(code=7)


async def test_the_signal_that_ended_it_is_told() -> None:
    async with start(python("import os; os.kill(os.getpid(), 9)")) as child:
        assert await child.wait() == Exit(signal=signal.SIGKILL)


async def test_a_ten_megabyte_line_and_the_small_one_after_it_arrive_in_order() -> None:
    async with start(python("print('x' * 10_000_000); print('small')")) as child:
        lines = await read_all(child)
    assert [len(line) for line in lines] == [10_000_000, 5]


async def test_a_line_over_the_cap_is_a_stub_and_the_next_event_arrives() -> None:
    async with start(python("print('x' * 300_000); print('small')"), cap_bytes=200_000) as child:
        lines = [line async for line in child.lines()]
    assert lines[0].stub is not None
    assert lines[0].stub.size_bytes == 300_000
    assert lines[1].data == b"small"


async def test_characters_written_byte_by_byte_arrive_whole() -> None:
    code = """
        import os
        for byte in '합 🎉 é\\n'.encode():
            os.write(1, bytes([byte]))
    """
    async with start(python(code)) as child:
        assert await read_all(child) == ["합 🎉 é".encode()]


async def test_five_megabytes_of_stderr_between_two_events_block_neither() -> None:
    code = """
        import sys
        print('one', flush=True)
        sys.stderr.write('e' * 5_000_000 + 'the end')
        print('two')
    """
    async with start(python(code)) as child:
        assert await read_all(child) == [b"one", b"two"]
        tail = child.stderr_tail()
    assert len(tail) == 64 * 1024
    assert tail.endswith("the end")


async def test_stderr_is_complete_once_the_exit_is_known_and_after_the_block() -> None:
    async with start(python("import sys; sys.exit('the reason')")) as child:
        await child.wait()
        assert child.stderr_tail() == "the reason\n"
    assert child.stderr_tail() == "the reason\n"


async def test_stderr_is_heard_while_it_is_written() -> None:
    heard: list[bytes] = []
    code = "import sys; sys.stderr.write('one'); sys.stderr.flush(); print(input())"
    async with spawn(
        python(code),
        cwd=Path("/"),
        env={},
        marker="test-heard/codon/1",
        clock=SystemClock(),
        stdin=True,
        on_stderr=heard.append,
    ) as child:
        while not heard:
            await anyio.lowlevel.checkpoint()
        await child.send(b"go on\n")
        assert await first_line(child) == b"go on"
    assert b"".join(heard) == b"one"


async def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(ProcessNotStarted, match="no-such-agent"):
        async with start(["no-such-agent"]):
            pass


async def test_an_error_of_the_block_comes_out_as_it_was() -> None:
    with pytest.raises(KeyError) as caught:
        async with start(python("import time; time.sleep(60)")) as child:
            raise KeyError("mine")
    assert caught.value.args == ("mine",)
    assert await child.wait() == Exit(signal=signal.SIGKILL)


async def test_output_ends_though_a_grandchild_keeps_the_pipe_open() -> None:
    code = """
        import subprocess
        print('before', flush=True)
        subprocess.Popen(['sleep', '60'], start_new_session=True)
    """
    clock = VirtualClock()
    async with flowing(clock), start(python(code), clock=clock) as child:
        assert await read_all(child) == [b"before"]
        assert await child.wait() == Exit(code=0)


async def test_output_ends_though_a_grandchild_without_marker_keeps_the_pipe_open() -> None:
    code = """
        import subprocess
        print(subprocess.Popen(['sleep', '60'], start_new_session=True, env={}).pid, flush=True)
        print('last')
    """
    clock = VirtualClock()
    async with flowing(clock), start(python(code), clock=clock) as child:
        pid, last = await read_all(child)
    os.kill(int(pid), signal.SIGKILL)
    assert last == b"last"
