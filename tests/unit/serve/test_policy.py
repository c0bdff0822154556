"""The policy file: what it grants, what it refuses, and that a change of it counts at once."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.serving import digest, policy
from tests.support.watches import a_watch

from hankwatch.core.errors import ConfigError, UsageError
from hankwatch.core.request_errors import ScopeMissing, Unauthenticated
from hankwatch.serve.auth import Caller, Door, is_loopback, open_door
from hankwatch.serve.policy import PolicyAuthorizer, PolicyFile, load_policy
from hankwatch.watches.authority import operator


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    os.utime(path, ns=(path.stat().st_mtime_ns + 1_000_000,) * 2)  # a coarse clock hides two writes
    return path


def test_a_token_is_known_by_its_digest_alone(tmp_path: Path) -> None:
    made = load_policy(policy(tmp_path / "policy.toml"))
    assert "secret-of-alice" not in (tmp_path / "policy.toml").read_text()
    grant = made.grant("secret-of-alice")
    assert grant is not None
    assert (grant.principal.tenant, grant.principal.actor) == ("acme", "alice")
    assert made.grant(digest("secret-of-alice")) is None
    assert made.grant("") is None


def test_a_token_with_scopes_is_for_nothing_else_and_makes_no_operator(tmp_path: Path) -> None:
    grant = load_policy(policy(tmp_path / "policy.toml")).grant("reader-of-root")
    assert grant is not None
    assert (grant.scopes, grant.principal.is_scoped, grant.principal.is_operator) == (
        frozenset({"runs:read"}),
        True,
        False,
    )
    with pytest.raises(ScopeMissing, match="watches:read"):
        Caller(grant.principal, "acme", grant.scopes).require("watches:read")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tenant = 1", "/tenant"),
        ("principal = []", "did you mean"),
        ('[[principals]]\ntenant = "a"\nactor = "b"\ntokens = [{ sha256 = "short" }]', "sha256"),
        ('[[principals]]\ntenant = "a"\nactor = "b"\nroles = ["king"]', "king"),
        ('[[principals]]\ntenant = "a"\nactor = "b"\n' * 2, "is there already"),
        ("not toml", "toml-syntax"),
    ],
)
def test_a_policy_with_faults_is_refused_with_their_places(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_policy(written(tmp_path / "policy.toml", text))


def test_the_same_token_for_two_people_is_refused(tmp_path: Path) -> None:
    entry = '[[principals]]\ntenant = "a"\nactor = "{}"\ntokens = [{{ sha256 = "' + "0" * 64 + '" }}]\n'
    with pytest.raises(ConfigError, match="doubled-token"):
        load_policy(written(tmp_path / "policy.toml", entry.format("b") + entry.format("c")))


def test_a_change_counts_at_once_and_a_faulty_one_not_at_all(tmp_path: Path) -> None:
    path = policy(tmp_path / "policy.toml")
    file = PolicyFile(path)
    door = Door(file)
    headers = {"authorization": "Bearer secret-of-bob"}
    assert door.caller(headers).principal.actor == "bob"

    written(path, "broken")
    assert door.caller(headers).principal.actor == "bob"
    assert file.fault is not None

    path.unlink()
    assert door.caller(headers).principal.actor == "bob"

    policy(path, alice={"tenant": "acme"})
    with pytest.raises(Unauthenticated):
        door.caller(headers)
    assert file.fault is None


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic c2VjcmV0", "Bearer wrong", "secret-of-bob"])
def test_who_brings_no_known_token_is_nobody(tmp_path: Path, header: str) -> None:
    with pytest.raises(Unauthenticated):
        Door(PolicyFile(policy(tmp_path / "policy.toml"))).caller({"authorization": header})


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "192.0.2.7", "example.com", "127.0.0.1.example.com", ""])
def test_an_address_that_others_reach_needs_a_policy(bind: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no policy file"):
        open_door(bind, None)
    assert open_door(bind, str(policy(tmp_path / "policy.toml"))).policy is not None


@pytest.mark.parametrize("bind", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"])
def test_on_loopback_whoever_is_there_is_the_operator(bind: str) -> None:
    assert is_loopback(bind)
    assert open_door(bind, None).caller({}).principal == operator()


@pytest.mark.parametrize(
    ("fields", "stays"),
    [
        ({"tenant": "acme", "owner": "alice"}, True),
        ({"tenant": "acme", "owner": "gone"}, False),
        ({"tenant": "evil", "owner": "alice"}, False),
        ({"tenant": "local", "owner": "operator"}, True),
        ({"tenant": "local", "owner": "agent:main"}, True),
        ({"tenant": "local", "owner": "somebody"}, False),
        ({"tenant": "acme", "owner": "agent:main"}, False),
    ],
)
def test_owners_are_who_the_file_names_and_this_machine_itself(
    tmp_path: Path, fields: dict[str, Any], stays: bool
) -> None:
    authorizer = PolicyAuthorizer(PolicyFile(policy(tmp_path / "policy.toml")))
    assert (authorizer.owner_of(a_watch(**fields)) is not None) is stays
