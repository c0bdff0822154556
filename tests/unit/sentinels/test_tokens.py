"""The estimate of tokens against real tokenizers: at least what they count, and not wildly more (spec sentinels 6)."""

import base64
import json
import random
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from hankwatch.llm.client import Message
from hankwatch.sentinels.tokens import TOKENS_PER_MESSAGE, estimate_tokens, request_tokens

DRAWN = random.Random(5)
STREAMS = Path(__file__).parents[3] / "fixtures" / "agent-streams"

Counter = Callable[[str], int]


def drawn(alphabet: str, count: int = 3_000) -> str:
    return "".join(DRAWN.choices(alphabet, k=count))


def event(number: int) -> str:
    data = {"in": number * 7_919, "out": number * 104_729, "ok": True, "cost": None}
    stamp = "2026-11-30T18:56:42.404Z"
    return json.dumps({"id": str(UUID(int=DRAWN.getrandbits(128))), "timestamp": stamp, "type": "info", "data": data})


LOWER = "abcdefghijklmnopqrstuvwxyz"
TEXTS = {
    "uuids": " ".join(str(UUID(int=DRAWN.getrandbits(128))) for _ in range(200)),
    "hex": DRAWN.randbytes(2_000).hex(),
    "base64": base64.b64encode(DRAWN.randbytes(3_000)).decode(),
    "base32": base64.b32encode(DRAWN.randbytes(2_000)).decode(),
    "base85": base64.b85encode(DRAWN.randbytes(2_000)).decode(),
    "events": "\n".join(map(event, range(60))),
    "indented": json.dumps([{"a": number, "b": None, "c": [True, {}]} for number in range(200)], indent=2),
    "flat": json.dumps([{"a": number % 10, "b": None, "d": ""} for number in range(200)], separators=(",", ":")),
    "numbers": " ".join(str(number * 7_919) for number in range(900)),
    "decimals": "\n".join(f"{DRAWN.uniform(-99, 99):.3f},{DRAWN.uniform(-9, 9):.2f}" for _ in range(300)),
    "stamps": "\n".join(f"2026-11-30T18:{n % 60:02}:{n * 7 % 60:02}.{n * 37 % 1000:03}Z" for n in range(200)),
    "letters": drawn(LOWER),
    "capitals": drawn(LOWER.upper()),
    "letters and digits": drawn(LOWER + LOWER.upper() + "0123456789"),
    "punctuation": drawn("!#$%&'()*+,-./:;<=>?@[]^_`{|}~"),
    "escapes": json.dumps('"\\\n\t"' * 300),
    "paths": "\n".join(f"/home/u{n}/src/pkg-{n % 7}/lib/mod_{n}.test.ts:{n}:{n % 80}" for n in range(100)),
    "prose": "The agent read the file twice and then wrote the same words into another one. " * 40,
    "source": Path(__file__).read_text(encoding="utf-8"),
    "chinese": "我们在观察代码代理的工作，并且阅读观察者所看到的内容。系统会在每个事件之后触发规则。" * 20,
    "arabic": "نحن نراقب عمل الوكلاء ونقرأ ما رآه المراقبون في كل حدث. " * 20,
    "greek": "Παρακολουθούμε τους πράκτορες και διαβάζουμε ό,τι είδαν. " * 20,
    "thai": "เราเฝ้าดูการทำงานของเอเจนต์และอ่านสิ่งที่ผู้สังเกตเห็น" * 20,
    "emoji": "😀🚀" * 300,
    "spinner": "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" * 50,
    "colours": "\x1b[31mred\x1b[0m\x07" * 200,
}
WORST = 2.5
"""Times the tokens; of what is repeated (one character, a recorded stream of blanks) it may be more."""


@pytest.fixture(scope="module")
def tokenizers() -> list[Counter]:
    """Those that a dependency brings along; nothing is fetched."""
    tokenizers = pytest.importorskip("tokenizers")
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
    loaded = [tokenizers.Tokenizer.from_file(str(file)) for file in sorted(folder.glob("*_tokenizer.json"))]
    assert loaded

    def counter(tokenizer: Any) -> Counter:
        return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)

    return [counter(tokenizer) for tokenizer in loaded]


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_no_kind_of_text_has_more_tokens_than_estimated(tokenizers: list[Counter]) -> None:
    texts = {**TEXTS, **{path.name: path.read_text(encoding="utf-8")[:60_000] for path in STREAMS.glob("*success*")}}
    factors = {name: estimate_tokens(text) / max(count(text) for count in tokenizers) for name, text in texts.items()}
    assert {name: factor for name, factor in factors.items() if not 1 <= factor <= WORST} == {}


def test_a_text_without_characters_has_no_tokens_and_any_other_has_one() -> None:
    assert [estimate_tokens(text) for text in ("", "a", " ", "\ud800")] == [0, 1, 1, 1]


def test_more_text_never_has_fewer_tokens() -> None:
    text = "".join(TEXTS.values())
    counts = [estimate_tokens(text[:length]) for length in range(0, len(text), 997)]
    assert counts == sorted(counts)


def test_a_long_text_is_counted_as_its_pieces_are() -> None:
    whole, one = estimate_tokens(TEXTS["events"] * 100), estimate_tokens(TEXTS["events"])
    assert 0.99 < whole / (100 * one) < 1.01


def test_a_message_costs_more_than_its_text() -> None:
    messages = [Message("system", "a"), Message("user", "b")]
    assert request_tokens(messages) == 2 * (1 + TOKENS_PER_MESSAGE)
