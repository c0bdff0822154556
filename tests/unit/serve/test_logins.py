"""Logins of browsers: whose they are, and when they end."""

import pytest

from hankwatch.core.clock import SystemClock
from hankwatch.serve import logins
from hankwatch.serve.guesses import GUESSES, WINDOW_S, Guesses
from hankwatch.serve.logins import Logins, cookie_name, login_of, set_cookie

HOST = "127.0.0.1:8080"
COOKIE = cookie_name({"host": HOST})


def sent(cookie: str, host: str = HOST) -> dict[str, str]:
    return {"host": host, "cookie": cookie}


class Stopped(SystemClock):
    """A clock that a test moves."""

    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.mark.parametrize(
    "header",
    [
        "{ours}",
        'x={"a": 1}; {ours}',
        "expires=1; path=/; {ours}",
        "=; a b=c; {ours}; é=1",
        "x{ours}; {ours}",
    ],
)
def test_cookies_of_other_programs_do_not_hide_a_login(header: str) -> None:
    known = Logins(SystemClock())
    ours = f"{COOKIE}={known.begin('token')}"
    assert known.token(sent(header.replace("{ours}", ours))) == "token"


@pytest.mark.parametrize("header", ["", COOKIE, f"{COOKIE}=", f"{COOKIE}=guess", "\x00", f"x{COOKIE}=a"])
def test_what_is_no_login_is_none(header: str) -> None:
    known = Logins(SystemClock())
    known.begin("token")
    assert known.token(sent(header)) is None
    known.end(sent(header))


def test_a_login_lasts_its_time_and_no_longer() -> None:
    clock = Stopped()
    known = Logins(clock)
    header = f"{COOKIE}={known.begin('token')}"
    clock.now_s += logins.LASTS_S - 1
    assert known.token(sent(header)) == "token"
    clock.now_s += 1
    assert known.token(sent(header)) is None


def test_the_oldest_login_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "_MOST", 2)
    known = Logins(SystemClock())
    first, *others = [f"{COOKIE}={known.begin(str(number))}" for number in range(3)]
    assert known.token(sent(first)) is None
    assert [known.token(sent(header)) for header in others] == ["1", "2"]


@pytest.mark.parametrize("host", ["127.0.0.1:8081", "127.0.0.1", "", "[::1]:9", "x:y", "[", "127.0.0.1:99999"])
def test_servers_of_one_host_do_not_share_a_login(host: str) -> None:
    written = set_cookie("value", sent("", host), is_secure=False).partition(";")[0]
    assert login_of(sent(written, host)) == "value"
    assert login_of(sent(written)) is None


def test_over_https_the_cookie_is_sent_over_https_alone() -> None:
    assert "; Secure" in set_cookie("x", sent(""), is_secure=True)
    assert "; Secure" not in set_cookie("x", sent(""), is_secure=False)
    assert "Max-Age=0" in set_cookie("", sent(""), is_secure=False)


def test_wrong_tokens_of_one_address_wait_and_those_of_others_do_not() -> None:
    clock = Stopped()
    guesses = Guesses(clock)
    for _ in range(GUESSES):
        assert guesses.wait_s("a") == 0
        guesses.add("a")
    assert guesses.wait_s("a") == WINDOW_S
    assert guesses.wait_s("b") == 0
    clock.now_s += WINDOW_S
    assert guesses.wait_s("a") == 0
    guesses.add("a")
    assert guesses.wait_s("a") == 0
