"""A stand-in for the program ``claude``: plays a score, and remembers how it was called. Run by path.

The score is a JSON list of steps in the file ``$CLAUDE_SCORE``; each is ``[verb, argument…]``:

``line OBJ`` · ``raw TEXT`` (no newline) · ``bytes TEXT`` (flushed byte by byte, then a newline) ·
``play FILE`` (every line of a recorded stream) · ``stderr N`` (N bytes) · ``stderr_text TEXT`` · ``sleep S`` · ``hang`` · ``ignore SIGTERM`` ·
``on_term OBJ`` (a last line when it is ended, and exit code 0) ·
``children FILE`` (a grandchild two sessions away that holds our pipes, its pid into FILE) ·
``quiet_children FILE`` (it holds none) · ``say_env NAME`` · ``file PATH TEXT`` · ``remove PATH`` ·
``close_stdout`` · ``until_eof`` · ``until_told STEPS…`` (again and again, ``{n}`` in them counts, until a line comes
in; a request to interrupt is answered with ``INTERRUPTED`` as a result, and the line after it waited for) ·
``until_word STEPS…`` (once a line has come in, which is left unread) · ``exit CODE`` · ``kill SIGNAL`` · ``calls STEPS…`` (a list of steps for each call; the last one for all further ones).

The call goes to ``$CLAUDE_SEEN``: argv, first line of stdin, working directory, environment; one more line per call
to ``$CLAUDE_SEEN.calls``, and one per line that came in later to ``$CLAUDE_SEEN.told``.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROUND_S = 0.02
"""What a round takes at least, so that a word can arrive in it."""
MAX_ROUNDS = 500
INTERRUPTED = {
    "type": "result",
    "subtype": "error_during_execution",
    "is_error": True,
    "terminal_reason": "aborted_streaming",
    "errors": ["[ede_diagnostic] interrupted"],
}
INPUT = os.fdopen(0, "rb", closefd=False)
REQUIRED = ["-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json"]
GRANDCHILD = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(600)
"""


def out(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def message(text: str) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": "msg_env", "content": [{"type": "text", "text": text}]}}


def calls() -> int:
    """How often the program was called so far, this time included."""
    return len(Path(os.environ["CLAUDE_SEEN"] + ".calls").read_text().splitlines())


def is_told() -> bool:
    """Whether a line comes in within a round."""
    if not select.select([0], [], [], ROUND_S)[0]:
        return False
    if INPUT.peek(1):
        return True
    time.sleep(ROUND_S)  # closed: nobody will ever say anything
    return False


def hear() -> dict[str, Any]:
    """The next line of stdin; it is noted."""
    line = INPUT.readline()
    with Path(os.environ["CLAUDE_SEEN"] + ".told").open("ab") as file:
        file.write(line)
    told: dict[str, Any] = json.loads(line)
    return told


def until_told(steps: list[Any]) -> None:
    for number in range(1, MAX_ROUNDS):
        for verb, *arguments in json.loads(json.dumps(steps).replace("{n}", str(number))):
            perform(verb, arguments)
        if is_told():
            break
    else:
        sys.exit("nobody said a word")
    if hear()["type"] == "control_request":
        out(json.dumps(INTERRUPTED).encode() + b"\n")
        hear()


def perform(verb: str, arguments: list[Any]) -> None:
    match verb, *arguments:
        case "line", record:
            out(json.dumps(record).encode() + b"\n")
        case "raw", text:
            out(text.encode("utf-8", "surrogatepass"))
        case "bytes", text:
            for byte in f"{text}\n".encode():
                out(bytes([byte]))
        case "play", file:
            for line in Path(file).read_bytes().splitlines(keepends=True):
                out(line)
        case "stderr", count:
            sys.stderr.buffer.write(b"e" * count + b"\n")
            sys.stderr.flush()
        case "stderr_text", text:
            sys.stderr.write(text)
            sys.stderr.flush()
        case "sleep", seconds:
            time.sleep(seconds)
        case "hang", *_:
            while True:
                time.sleep(60)
        case "on_term", record:

            def end(*_: object) -> None:
                os.write(1, json.dumps(record).encode() + b"\n")
                os._exit(0)

            signal.signal(signal.SIGTERM, end)
        case "ignore", name:
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        case (("children" | "quiet_children"), file):
            pipe = None if verb == "children" else subprocess.DEVNULL
            subprocess.Popen(
                [sys.executable, "-c", GRANDCHILD, file], start_new_session=True, stdin=pipe, stdout=pipe, stderr=pipe
            ).wait()
            while not Path(file).exists():
                time.sleep(0.01)
        case "say_env", name:
            out(json.dumps(message(os.environ.get(name, "not set"))).encode() + b"\n")
        case "file", path, text:
            Path(path).write_text(text)
        case "remove", path:
            Path(path).unlink()
        case "close_stdout", *_:
            os.close(1)
        case "until_eof", *_:
            INPUT.read()
        case "until_told", *steps:
            until_told(steps)
        case "calls", *scores:
            for inner, *rest in scores[min(calls(), len(scores)) - 1]:
                perform(inner, rest)
        case "until_word", *steps:
            while not is_told():
                pass
            for inner, *rest in steps:
                perform(inner, rest)
        case "exit", code:
            os._exit(code)
        case "kill", number:
            os.kill(os.getpid(), number)
        case _:
            raise ValueError(verb)


def main() -> None:
    if not all(argument in sys.argv for argument in REQUIRED):
        sys.exit(f"unexpected command line: {sys.argv}")
    first = INPUT.readline().decode()
    seen = {"argv": sys.argv[1:], "stdin": json.loads(first), "cwd": str(Path.cwd()), "env": dict(os.environ)}
    Path(os.environ["CLAUDE_SEEN"]).write_text(json.dumps(seen))
    with Path(os.environ["CLAUDE_SEEN"] + ".calls").open("a") as file:
        file.write(json.dumps(seen) + "\n")
    for verb, *arguments in json.loads(Path(os.environ["CLAUDE_SCORE"]).read_text()):
        perform(verb, arguments)


if __name__ == "__main__":
    main()
