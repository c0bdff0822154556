"""Logins of browsers over real HTTP: cookies, where they lead, when they end, and what other sites cannot do with them."""

from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest
from tests.support.serving import Server, a_server, demo, policy

from hankwatch.serve import logins
from hankwatch.serve.guesses import GUESSES
from hankwatch.serve.logins import cookie_name

DIAL = {"type": "check", "name": "dial", "args": {"name": "a"}}
WATCH = {"condition": "a is on", "verifier": DIAL, "session": "main", "id": "w"}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Server]:
    demo(tmp_path / "executions")
    async with a_server(tmp_path / "executions", policy_file=policy(tmp_path / "policy.toml")) as made:
        yield made


@pytest.fixture
async def browser(site: Server) -> AsyncIterator[httpx.AsyncClient]:
    """Keeps cookies, and says which page it comes from as a browser does."""
    async with site.client() as client:
        client.headers["Origin"] = site.address
        yield client


async def log_in(
    client: httpx.AsyncClient,
    token: str = "secret-of-root",
    next: str = "/watches",  # noqa: A002
) -> httpx.Response:
    return await client.post("/login", data={"token": token, "next": next})


async def test_a_page_asks_for_a_login_and_goes_on_where_it_was(browser: httpx.AsyncClient) -> None:
    asked = await browser.get("/watches?q=deploy%20done&limit=5")
    assert (asked.status_code, asked.headers["location"]) == (
        303,
        "/login?next=%2Fwatches%3Fq%3Ddeploy%2520done%26limit%3D5",
    )
    form = await browser.get(asked.headers["location"])
    assert 'value="/watches?q=deploy%20done&amp;limit=5"' in form.text
    answer = await log_in(browser, next="/watches?q=deploy%20done&limit=5")
    assert (answer.status_code, answer.headers["location"]) == (303, "/watches?q=deploy%20done&limit=5")
    assert (await browser.get("/watches")).status_code == 200


async def test_a_wrong_token_is_said_and_gives_no_cookie(browser: httpx.AsyncClient) -> None:
    for token in ("wrong", "", "\udcff".encode("utf-8", "surrogatepass").decode("latin-1"), "x" * 5_000):
        answer = await log_in(browser, token)
        assert answer.status_code == 401
        assert "not known" in answer.text
        assert "set-cookie" not in answer.headers
        assert token == "" or token not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "/x\r\nSet-Cookie: a=b",
        "/\t/evil.example",
        "",
        "evil.example",
        "/" + "x" * 3_000,
    ],
    ids=ascii,
)
async def test_a_login_leads_nowhere_else(browser: httpx.AsyncClient, path: str) -> None:
    answer = await log_in(browser, next=path)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "a=b" not in answer.headers["set-cookie"]


def cookie_of(browser: httpx.AsyncClient) -> str:
    """Its name; all clients of a test call the same address."""
    return cookie_name({"host": browser.base_url.netloc.decode()})


async def test_the_cookie_is_kept_from_scripts_and_other_sites(browser: httpx.AsyncClient) -> None:
    written = (await log_in(browser)).headers["set-cookie"]
    (cookie,) = SimpleCookie(written).values()
    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["domain"]) == (True, "Strict", "/", "")
    assert int(cookie["max-age"]) == logins.LASTS_S
    assert "secret-of-root" not in written


async def test_each_login_has_a_cookie_of_its_own_whatever_was_sent(browser: httpx.AsyncClient) -> None:
    browser.cookies.set(cookie_of(browser), "chosen-by-somebody-else")
    first = (await log_in(browser)).cookies[cookie_of(browser)]
    second = (await log_in(browser)).cookies[cookie_of(browser)]
    assert len({first, second, "chosen-by-somebody-else"}) == 3


async def test_a_login_replaces_the_one_that_the_browser_had(browser: httpx.AsyncClient, site: Server) -> None:
    first = (await log_in(browser)).cookies[cookie_of(browser)]
    await log_in(browser, "secret-of-alice")
    async with site.client() as thief:
        thief.cookies.set(cookie_of(browser), first)
        assert (await thief.get("/api/runs")).status_code == 401


async def test_logging_out_ends_it_for_whoever_has_the_cookie(browser: httpx.AsyncClient, site: Server) -> None:
    value = (await log_in(browser)).cookies[cookie_of(browser)]
    out = await browser.post("/logout")
    assert (out.status_code, out.headers["location"]) == (303, "/login")
    assert "Max-Age=0" in out.headers["set-cookie"]
    async with site.client() as thief:
        thief.cookies.set(cookie_of(browser), value)
        assert (await thief.get("/api/runs")).status_code == 401


async def test_a_login_ends_with_its_token(browser: httpx.AsyncClient, site: Server, tmp_path: Path) -> None:
    await log_in(browser, "secret-of-alice")
    assert (await browser.get("/api/watches")).status_code == 200
    policy(tmp_path / "policy.toml", root={"tenant": "acme", "roles": ["operator"]})
    assert (await browser.get("/watches")).headers["location"] == "/login?next=%2Fwatches"
    assert (await browser.get("/console/live")).status_code == 401


async def test_a_login_ends_with_its_time(browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "LASTS_S", -1.0)
    await log_in(browser)
    assert (await browser.get("/watches")).status_code == 303


async def test_the_live_stream_takes_the_cookie(browser: httpx.AsyncClient) -> None:
    await log_in(browser)
    async with browser.stream("GET", "/console/live") as stream:
        assert stream.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}],
    ids=str,
)
async def test_what_acts_with_a_cookie_comes_from_a_page_of_ours(
    browser: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    await log_in(browser)
    assert (await browser.post("/api/watches", json=WATCH)).status_code == 201
    del browser.headers["Origin"]
    for method, path, body in (
        ("POST", "/api/watches/w/cancel", None),
        ("PATCH", "/api/watches/w", {"interval_s": 60}),
        ("DELETE", "/api/watches/w", None),
        ("PATCH", "/api/watch-settings", {"interval": 60}),
    ):
        answer = await browser.request(method, path, json=body, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "cross-site"), path
    out = await browser.post("/logout", headers=headers)
    assert out.status_code == 403
    assert (await browser.get("/api/watches/w")).json()["status"] == "active"


async def test_a_bearer_token_acts_without_an_origin(site: Server) -> None:
    async with site.client("root") as program:
        assert (await program.post("/api/watches", json=WATCH)).status_code == 201


async def test_pages_show_another_tenant_nothing(browser: httpx.AsyncClient, site: Server) -> None:
    async with site.client("alice") as alice:
        await alice.post("/api/watches", json=WATCH)
    await log_in(browser, "secret-of-eve")
    assert "a is on" not in (await browser.get("/watches")).text
    for path in ("/watches/w", "/runs/latest", "/watches/none"):
        answer = await browser.get(path)
        assert answer.status_code == 404, path
        assert "a is on" not in answer.text


async def test_whoever_is_refused_a_page_can_log_out_and_is_shown_the_way_to_what_they_may_see(site: Server) -> None:
    async with site.client(token="reader-of-bob") as reader, site.client("bob") as bob, site.client() as nobody:
        runs, refused = (await reader.get("/")).text, await reader.get("/watches")
        assert 'href="/watches"' in (await bob.get("/")).text
        lost = await nobody.get("/nowhere", headers={"Accept": "text/html"})
    assert refused.status_code == 403
    for page in (runs, refused.text):
        assert 'action="/logout"' in page
        assert 'href="/watches"' not in page
    assert lost.status_code == 404
    assert 'action="/logout"' not in lost.text


async def test_many_guesses_are_answered_later(browser: httpx.AsyncClient) -> None:
    answers = [await log_in(browser, f"guess-{number}") for number in range(GUESSES + 1)]
    assert [answer.status_code for answer in answers] == [401] * GUESSES + [429]
    assert int(answers[-1].headers["retry-after"]) > 0
    assert (await log_in(browser)).status_code == 429
