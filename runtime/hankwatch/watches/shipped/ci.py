"""``ci@v1``: the checks of a pull request or a branch on GitHub, asked of the program ``gh`` (spec watches 4)."""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import orjson

from hankwatch.core.clock import Clock
from hankwatch.core.errors import ProcessNotStarted
from hankwatch.core.text import strip_controls
from hankwatch.processes.child import spawn
from hankwatch.watches.checks import Check, CheckContext, Cost, Finding, Trust
from hankwatch.watches.watch import ErrorKind, Outcome

CREDENTIALS: Final = ("GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")
"""Variables that only ``gh`` is given."""
MAX_BYTES: Final = 8 * 1024 * 1024
"""Of what ``gh`` prints."""
_FAILED: Final = frozenset(
    {"failure", "error", "timed_out", "cancelled", "action_required", "startup_failure", "stale"}
)
_PASSED: Final = frozenset({"success", "neutral", "skipped"})
_UNAUTHENTICATED: Final = 4
"""How ``gh`` ends when nobody is logged in."""
_SAID: Final = (
    (re.compile(r"gh auth login|HTTP 401|HTTP 403|Bad credentials|SAML", re.IGNORECASE), ErrorKind.UNAUTHORIZED),
    (
        re.compile(r"Could not resolve|no pull requests? found|HTTP 404|no commit found", re.IGNORECASE),
        ErrorKind.NOT_FOUND,
    ),
)
_LIMITED: Final = re.compile(r"rate limit|HTTP 429", re.IGNORECASE)
_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "repo": {"type": "string", "pattern": r"^[\w.-]+/[\w.-]+(/[\w.-]+)?$"},
        "pr": {"type": "integer", "minimum": 1},
        "branch": {"type": "string", "pattern": r"^[^-\s][^\s]*$"},
    },
    "required": ["repo"],
    "if": {"not": {"required": ["branch"]}},
    "then": {"required": ["pr"]},
    "else": {"properties": {"pr": False}},
    "additionalProperties": False,
}


class GhFailed(Exception):
    """``gh`` gave no answer."""

    def __init__(self, kind: ErrorKind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Job:
    """One check of a commit."""

    name: str
    word: str
    """Its conclusion, or where it stands."""

    @property
    def is_failed(self) -> bool:
        """It ended, and not well."""
        return self.word in _FAILED

    @property
    def is_passed(self) -> bool:
        """It ended well, or is of no account."""
        return self.word in _PASSED


def ci(environ: Mapping[str, str], clock: Clock) -> Check:
    """Satisfied when all checks have passed, impossible once one has failed.

    Args:
        environ: What ``gh`` gets, its own credentials among it.
        clock: Bounds it.
    """

    async def look(context: CheckContext, args: Mapping[str, Any]) -> Finding:
        # Of this look alone: processes that bear the same marker end together.
        gh = _Gh(environ, clock, f"watch/{context.invoker.id}/gh-{secrets.token_hex(4)}", args["repo"])
        try:
            commit, jobs = await (gh.pull_request(args["pr"]) if "pr" in args else gh.branch(args["branch"]))
        except GhFailed as failed:
            return Finding(Outcome.UNAVAILABLE, f"gh-{failed.kind}".replace("_", "-"), str(failed), error=failed.kind)
        return _found(commit, jobs)

    return Check(
        "ci",
        look,
        description="The checks of a GitHub pull request or branch: all passed, or one failed.",
        parameters=_PARAMETERS,
        behaviour="ci/1",
        cost=Cost.REMOTE,
        trust=Trust.OPERATOR,
        read_only=True,
        limit_s=60.0,
    )


def _found(commit: str, jobs: Sequence[Job]) -> Finding:
    words = {job.name: job.word for job in jobs}
    value = {"commit": commit, "checks": words}
    shown = "\n".join(f"{name}: {word}" for name, word in words.items())
    failed = [job.name for job in jobs if job.is_failed]
    if failed:
        return Finding(Outcome.TERMINAL_UNSATISFIED, "checks-failed", f"failed: {', '.join(failed)}", value, shown)
    if not jobs:
        return Finding(Outcome.PENDING, "no-checks", f"no checks of {commit[:12]} yet", value)
    waiting = sum(not job.is_passed for job in jobs)
    if waiting:
        return Finding(Outcome.PENDING, "checks-running", f"{waiting} of {len(jobs)} checks run", value, shown)
    return Finding(Outcome.SATISFIED, "checks-passed", f"all {len(jobs)} checks passed", value, shown)


@dataclass(frozen=True, slots=True)
class _Gh:
    environ: Mapping[str, str]
    clock: Clock
    marker: str
    repo: str

    async def pull_request(self, number: int) -> tuple[str, list[Job]]:
        fields = "headRefOid,statusCheckRollup"
        said = await self._ask("pr", "view", str(number), "--repo", self.repo, "--json", fields)
        return _text(said, "headRefOid"), list(_jobs(_list(said, "statusCheckRollup")))

    async def branch(self, name: str) -> tuple[str, list[Job]]:
        *host, owner, repo = self.repo.split("/")
        at = [word for one in host for word in ("--hostname", one)]
        path = f"repos/{owner}/{repo}/commits/{quote(name, safe='')}"
        runs = await self._ask("api", *at, f"{path}/check-runs?per_page=100")
        status = await self._ask("api", *at, f"{path}/status?per_page=100")
        found = [*_list(runs, "check_runs"), *_list(status, "statuses")]
        total = sum(said["total_count"] for said in (runs, status) if isinstance(said.get("total_count"), int))
        if total > len(found):
            raise GhFailed(ErrorKind.BAD_OUTPUT, f"there are {total} checks, more than are read")
        return _text(status, "sha"), list(_jobs(found))

    async def _ask(self, *arguments: str) -> Mapping[str, Any]:
        env = {**self.environ, "GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
        try:
            async with spawn(
                ["gh", *arguments], cwd=Path("/"), env=env, marker=self.marker, clock=self.clock, cap_bytes=MAX_BYTES
            ) as child:
                printed, size = list[bytes](), 0
                async for line in child.lines():
                    size += len(line.data)
                    if line.stub is not None or size > MAX_BYTES:
                        raise GhFailed(ErrorKind.BAD_OUTPUT, "gh printed more than is read")
                    printed.append(line.data)
                exit_ = await child.wait()
                complaint = strip_controls(child.stderr_tail()).strip()
        except ProcessNotStarted as error:
            raise GhFailed(ErrorKind.NOT_FOUND, f"the program gh cannot be started: {error.reason}") from error
        if exit_.code != 0:
            raise _failure(exit_.code, complaint)
        return _object(b"\n".join(printed))


def _failure(code: int | None, complaint: str) -> GhFailed:
    said = (complaint.splitlines() or [f"gh ended with {code}"])[0]
    if code == _UNAUTHENTICATED:
        return GhFailed(ErrorKind.UNAUTHORIZED, f"{said} (is gh logged in?)")
    if _LIMITED.search(complaint):
        return GhFailed(ErrorKind.RATE_LIMITED, said)
    kind = next((kind for words, kind in _SAID if words.search(complaint)), ErrorKind.CRASHED)
    return GhFailed(kind, said)


def _jobs(entries: Sequence[Any]) -> Iterator[Job]:
    """Check runs and commit statuses, as the REST and the GraphQL API spell them; the latest of a name counts."""
    found = dict[str, Job]()
    if not all(isinstance(entry, dict) for entry in entries):
        raise GhFailed(ErrorKind.BAD_OUTPUT, "gh printed a check that is no object")
    for entry in sorted(entries, key=_began):
        name = str(entry.get("name") or entry.get("context") or "?")
        word = str(entry.get("conclusion") or entry.get("state") or entry.get("status") or "unknown").lower()
        if (flow := entry.get("workflowName")) and flow != name:
            name = f"{flow} / {name}"
        found[name] = Job(name, word)
    yield from found.values()


def _began(entry: Mapping[str, Any]) -> str:
    """ISO-8601 in UTC, so that texts order as instants do."""
    names = ("startedAt", "started_at", "createdAt", "created_at")
    return next((str(entry[name]) for name in names if entry.get(name)), "")


def _object(printed: bytes) -> Mapping[str, Any]:
    try:
        said = orjson.loads(printed)
    except orjson.JSONDecodeError as error:
        raise GhFailed(ErrorKind.BAD_OUTPUT, f"gh printed no JSON: {error}") from error
    if not isinstance(said, dict):
        raise GhFailed(ErrorKind.BAD_OUTPUT, "gh printed no JSON object")
    return said


def _list(said: Mapping[str, Any], key: str) -> list[Any]:
    value = said.get(key)
    if not isinstance(value, list):
        raise GhFailed(ErrorKind.BAD_OUTPUT, f"gh printed no {key}")
    return value


def _text(said: Mapping[str, Any], key: str) -> str:
    return str(said.get(key) or "")
