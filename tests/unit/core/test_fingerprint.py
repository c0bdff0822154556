"""Spec watchdog 5.4: noise does not change a fingerprint, progress does."""

import pytest

from hankwatch.core.fingerprint import fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ok \x1b[31mred\x1b[0m", "ok red"),
        ("at 2026-11-30T17:09:51.123Z", "at 2025-01-02 03:04:05 +02:00"),
        ("12:30:01 started", "23:59:59.5 started"),
        ("took 3.2s", "took 110 ms"),
        ("pid 4711 died", "pid=12 died"),
        ("id 1755084268636", "id 1755084270568"),
        ("req 1b20f935-ac90-4512-827d-1d7e89440e41", "req 2059237f-7146-4470-b597-123b7a13d3c0"),
        ("commit 89d9dbc1e4ff0a12", "commit 464d4a9b11223344"),
        ("wrote /tmp/pytest-12/a.log", "wrote /tmp/pytest-13/b.log"),
        ("a\n  b\tc ", "a b c"),
    ],
)
def test_noise_does_not_count(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("12 of 40 done", "13 of 40 done"), ("FAILED", "PASSED"), ("", "x"), ("exit code 1", "exit code 2")],
)
def test_progress_counts(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


def test_a_long_text_counts_in_its_middle_too() -> None:
    text = "x" * 100_000
    assert fingerprint(text) != fingerprint(text[:50_000] + "y" + text[50_001:])
    assert fingerprint("at 12:00:00 " + text) == fingerprint("at 13:00:01 " + text)


def test_of_a_huge_text_only_the_ends_are_looked_through() -> None:
    text = "12:30:01 line of a log 0123456789abcdef\n" * 250_000
    assert fingerprint(text) == fingerprint(text.replace("12:30:01", "12:31:59", 1))
    middle = len(text) // 2
    assert fingerprint(text) != fingerprint(text[:middle] + "!" + text[middle + 1 :])
