"""Rollback over real files, a real shadow repository and a real archive."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.rollbacks import FROM, TO, History, three_codons
from tests.support.workspaces import contents, execution

from hankwatch.core.errors import CheckpointFailed, GitMissing, RollbackRefused
from hankwatch.runner.archive import Archive
from hankwatch.runner.checkpoints import Checkpoints, Key, Saved
from hankwatch.runner.rollback import recover
from hankwatch.runner.rollback_plan import Choice, ThreadCodon, To, choose


async def test_back_to_a_codon_everything_stands_as_when_it_had_ended(tmp_path: Path) -> None:
    history = await three_codons(execution(tmp_path))
    await history.go(choose(history.thread, To(codon="one")))
    # What no checkpoint knows stays where it is, or comes back from where an undone codon had archived it.
    assert history.stands() == {**history.after["one"], "agentRoot/notes.txt": "in no checkpoint"}
    assert not (history.layout.managed / "rollback").exists()
    assert [entry.path for entry in Archive(history.layout).entries] == ["tracked/old.log"]


async def test_the_events_come_in_the_contracts_order(tmp_path: Path) -> None:
    history = await three_codons(execution(tmp_path))
    one, two, three = (codon.last for codon in history.thread)
    assert one is not None
    assert two is not None
    assert three is not None
    await history.go(choose(history.thread, To(codon="one")))
    told = [(payload.TYPE.removeprefix("rollback."), payload.dump()) for payload in history.emitted.payloads]
    assert [kind for kind, _ in told] == [
        "started",
        *("progress", "codonCheckpoint"),
        *("progress", "codonCheckpoint", "rigCleanup", "rigCleanup"),
        *("progress", "archiveRestore", "codonCheckpoint"),
        "completed",
    ]
    assert told[0][1] == {
        "fromRun": FROM,
        "fromCodon": "three",
        "toCodon": "one",
        "toCheckpoint": one.sha,
        "checkpointType": "completed",
        "codonsToProcess": ["three", "two"],
    }
    assert [data["checkpoint"] for kind, data in told if kind == "codonCheckpoint"] == [three.sha, two.sha, one.sha]
    cleanups = [data for kind, data in told if kind == "rigCleanup"]
    assert [data["status"] for data in cleanups] == ["started", "completed"]
    assert cleanups[1]["successfulCleanups"] == ["agentRoot/deps"], "kit is the rig of a codon that stays"
    (restored,) = [data for kind, data in told if kind == "archiveRestore"]
    assert restored == {"codonId": one.sha, "restoredPaths": ["big.bin"], "status": "completed"}
    assert [data["currentStep"] for kind, data in told if kind == "progress"] == [1, 2, 3]
    assert told[-1][1]["toRun"] == TO


async def test_a_codon_that_runs_again_keeps_its_rig_and_gets_its_archive_back(tmp_path: Path) -> None:
    history = await three_codons(execution(tmp_path))
    rig_setup = history.thread[1].checkpoints[0]
    choice = choose(history.thread, To(checkpoint=rig_setup.sha[:10]))
    await history.go(choice)
    stands = history.stands()
    assert stands["agentRoot/deps/x"] == "rig of two"
    assert stands["agentRoot/big.bin"] == "in no checkpoint"
    assert stands["agentRoot/tracked/made"] == "m2", "it was there at this checkpoint"
    assert stands["agentRoot/a.md"] == "a2"
    assert "agentRoot/late.md" not in stands
    assert choice.starting_conditions == {
        "type": "continuation",
        "source": {"runId": FROM, "afterCodon": "one", "checkpointSha": rig_setup.sha},
        "reason": "rollback",
    }


async def test_a_rollback_while_a_codon_runs_is_refused_without_a_trace(tmp_path: Path) -> None:
    history = await three_codons(execution(tmp_path))
    with pytest.raises(RollbackRefused, match="a codon is running"):
        await history.rollback().run(
            choose(history.thread, To(last_success=True)),
            from_run=FROM,
            to_run=TO,
            globs=history.globs,
            continue_run=history.continue_run,
            codon_running=True,
            auto_restart=True,
        )
    assert history.emitted.payloads == []
    assert history.stands() == history.after["three"]


async def test_files_that_are_as_they_should_be_are_not_touched(tmp_path: Path) -> None:
    history = await History.begin(execution(tmp_path))
    await history.end("one", change={"same": "1", "other": "1"})
    await history.end("two", change={"other": "2"})
    before = (history.layout.agent_root / "same").stat()
    await history.go(choose(history.thread, To(codon="one")))
    after = (history.layout.agent_root / "same").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert history.stands() == history.after["one"]


async def test_a_link_that_an_agent_made_leads_the_rollback_nowhere(tmp_path: Path) -> None:
    history = await History.begin(execution(tmp_path))
    await history.end("one", change={"d/x": "1", "e/x": "1"}, archive=("e/x",))
    await history.end("two", change={"d/y": "2", "e/y": "2"}, archive=("e/y",))
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("x", "y"):
        (mine / name).write_text("the user's")
    history.edit({"d": f"-> {mine}", "e": f"-> {mine}"})
    await history.go(choose(history.thread, To(codon="one")))
    assert contents(mine) == {"x": "the user's", "y": "the user's"}
    assert (history.layout.agent_root / "d/x").read_text() == "1"


async def test_what_stands_in_the_place_of_an_archived_file_stays_and_is_told(tmp_path: Path) -> None:
    history = await three_codons(execution(tmp_path))
    history.edit({"big.bin": "another one, in no checkpoint"})
    await history.go(choose(history.thread, To(codon="one")))
    assert history.stands()["agentRoot/big.bin"] == "another one, in no checkpoint"
    assert history.stands()["rigArchive/two/big.bin"] == "in no checkpoint"
    (told,) = [p.dump() for p in history.emitted.payloads if p.TYPE == "rollback.archiveRestore"]
    assert (told["status"], told["failedPaths"][0]["path"]) == ("failed", "big.bin")
    assert "big.bin" in [entry.path for entry in Archive(history.layout).entries]


async def test_an_archived_folder_comes_back_with_the_files_that_no_checkpoint_has(tmp_path: Path) -> None:
    history = await History.begin(execution(tmp_path))
    await history.end("one", change={".gitignore": "raw", "out/a": "a1", "out/b": "b1", "out/raw": "untracked"})
    await history.end("two", change={"out/b": "b2", "out/c": "c2"}, archive=("out",))
    await history.go(choose(history.thread, To(codon="one")))
    assert history.stands() == history.after["one"]
    assert Archive(history.layout).entries == ()


async def test_what_no_checkpoint_has_is_kept_and_told(tmp_path: Path) -> None:
    history = await History.begin(execution(tmp_path))
    await history.end("one", change={"a": "a1", "d": "a file"})
    await history.end("two", change={"a": "a2", "known": "k2", "d": None, "d/x": "x2"})
    history.edit({"a": "by hand", "new": "by hand too", "d/y": "in the way", "link": "-> a"})
    await history.go(choose(history.thread, To(codon="one")))
    assert history.stands() == history.after["one"]
    assert contents(history.layout.managed / "rollback-kept" / TO) == {
        "agentRoot/a": "by hand",
        "agentRoot/d/x": "x2",
        "agentRoot/d/y": "in the way",
        "agentRoot/link": "-> a",
        "agentRoot/new": "by hand too",
    }
    (told,) = [p.dump() for p in history.emitted.payloads if p.TYPE == "info"]
    assert (told["code"], told["details"]["paths"]) == (
        "rollback-kept",
        ["agentRoot/d", "agentRoot/a", "agentRoot/link", "agentRoot/new"],
    )


async def test_a_failed_rig_cleanup_is_told_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = await three_codons(execution(tmp_path))
    rename = os.rename

    def refuse(source: Any, target: Any, **options: Any) -> None:
        if str(source).endswith("/deps"):
            raise OSError(16, "Device or resource busy")
        rename(source, target, **options)

    monkeypatch.setattr(os, "rename", refuse)
    await history.go(choose(history.thread, To(codon="one")))
    told = [p.dump() for p in history.emitted.payloads if p.TYPE == "rollback.rigCleanup"]
    assert [data["status"] for data in told] == ["started", "failed"]
    assert history.stands()["agentRoot/deps/x"] == "rig of two"
    assert history.stands()["agentRoot/a.md"] == "a1"


async def test_a_rollback_that_fails_half_way_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = await three_codons(execution(tmp_path))
    rename = os.rename

    def refuse(source: Any, target: Any, **options: Any) -> None:
        if str(target).endswith("agentRoot/gone.md"):
            raise OSError(28, "No space left on device")
        rename(source, target, **options)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(CheckpointFailed, match="No space left"):
        await history.go(choose(history.thread, To(codon="one")))
    assert history.stands() == history.after["three"]
    assert not (history.layout.managed / "rollback").exists()
    monkeypatch.undo()
    await history.go(choose(history.thread, To(codon="one")))
    assert history.stands()["agentRoot/gone.md"] == "g1"


async def test_without_git_nothing_is_rolled_back(tmp_path: Path) -> None:
    history = await three_codons(execution(tmp_path))
    git = history.checkpoints.git
    history.checkpoints = Checkpoints(
        type(git)(git.git_dir, git.work_tree, {"PATH": "/nowhere"}, git.marker, git.clock)
    )
    with pytest.raises(GitMissing):
        await history.go(choose(history.thread, To(codon="one")))
    assert history.stands() == history.after["three"]


def settled(known: bool, _run_id: str) -> bool:
    return known


async def test_an_unsettled_rollback_refuses_the_next_and_is_taken_back_or_finished(tmp_path: Path) -> None:
    history = await three_codons(execution(tmp_path))
    choice = choose(history.thread, To(codon="one"))

    async def die() -> None:
        raise KeyboardInterrupt

    for run_exists in (False, True):
        with pytest.raises(KeyboardInterrupt):
            await history.rollback().run(
                choice,
                from_run=FROM,
                to_run=TO,
                globs=history.globs,
                continue_run=die,
                codon_running=False,
                auto_restart=True,
            )
        with pytest.raises(RollbackRefused, match="not been settled"):
            await history.go(choice)
        recovered = recover(history.layout, Archive(history.layout), partial(settled, run_exists))
        assert recovered is not None
        assert (recovered.finished is not None) == run_exists
        assert recovered.infos()[0].code == ("rollback-finished" if run_exists else "rollback-undone")
        if not run_exists:
            assert history.stands() == history.after["three"]
            assert len(Archive(history.layout).entries) == 4
    assert history.stands() == {**history.after["one"], "agentRoot/notes.txt": "in no checkpoint"}
    assert recover(history.layout, Archive(history.layout), lambda _run: True) is None


def saved(codon_id: str, status: Any, sha: str, run_id: str = FROM) -> Saved:
    return Saved(Key(run_id, codon_id, 1, status), sha, f"Codon {codon_id}", 0)


def thread() -> list[ThreadCodon]:
    def codon(codon_id: str, *checkpoints: Saved, succeeded: bool = True) -> ThreadCodon:
        return ThreadCodon(FROM, codon_id, codon_id, codon_id, succeeded, checkpoints)

    return [
        codon("a#0", saved("a#0", "rig-setup", "1111111a"), saved("a#0", "completed", "2222222a")),
        codon("a#1", saved("a#1", "completed", "3333333a")),
        codon("b", saved("b", "skipped", "4444444a"), succeeded=False),
        codon("c", saved("c", "error", "4444444b"), succeeded=False),
        codon("d", succeeded=False),
    ]


@pytest.mark.parametrize(
    ("to", "sha", "undone", "after"),
    [
        (To(last_success=True), "3333333a", ["d", "c", "b"], "a#1"),
        (To(codon="a#0"), "2222222a", ["d", "c", "b", "a#1"], "a#0"),
        (To(codon="b"), "4444444a", ["d", "c"], "b"),
        (To(codon="c"), "4444444b", ["d"], "b"),
        (To(checkpoint="1111111"), "1111111a", ["d", "c", "b", "a#1"], None),
        (To(checkpoint="3333333a"), "3333333a", ["d", "c", "b"], "a#1"),
    ],
)
def test_the_checkpoint_that_is_meant(to: To, sha: str, undone: list[str], after: str | None) -> None:
    choice = choose(thread(), to)
    assert choice.target.sha == sha
    assert [codon.codon_id for codon in choice.undone] == undone
    assert choice.after_codon == after
    assert not choice.direct


@pytest.mark.parametrize(
    ("to", "why"),
    [
        (To(codon="d"), "has no checkpoint"),
        (To(codon="x"), "has no checkpoint"),
        (To(checkpoint="4444444"), "more than one"),
        (To(checkpoint="999999999"), "no checkpoint"),
        (To(checkpoint="1111"), "too short"),
        (To(checkpoint=""), "too short"),
    ],
)
def test_what_names_no_checkpoint_or_several_is_refused(to: To, why: str) -> None:
    with pytest.raises(RollbackRefused, match=why):
        choose(thread(), to)


def test_without_a_success_there_is_no_last_one() -> None:
    with pytest.raises(RollbackRefused, match="no codon has completed"):
        choose(thread()[3:], To(last_success=True))
    with pytest.raises(RollbackRefused, match="nothing has run"):
        choose([], To(last_success=True))


def test_a_checkpoint_of_a_timeline_that_was_left_is_gone_to_directly() -> None:
    old = [ThreadCodon("r-0", "z", "z", "z", True, (saved("z", "completed", "9999999z", "r-0"),))]
    choice = choose(thread(), To(checkpoint="9999999"), [thread()[:1], old])
    assert choice.direct
    assert (choice.after_codon, choice.newest.codon_id) == ("z", "d")
    assert len(choice.undone) == 5


async def test_a_direct_rollback_walks_over_no_codon_and_leaves_rigs(tmp_path: Path) -> None:
    history = await three_codons(execution(tmp_path))
    old, history.thread = history.thread[:1], history.thread[1:]
    assert old[0].last is not None
    await history.go(choose(history.thread, To(checkpoint=old[0].last.sha), [old]))
    kinds = [payload.TYPE.removeprefix("rollback.") for payload in history.emitted.payloads]
    assert kinds == ["started", "progress", "archiveRestore", "codonCheckpoint", "completed"]
    assert history.stands()["agentRoot/deps/x"] == "rig of two"
    assert history.stands()["agentRoot/a.md"] == "a1"


NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a", "e"])
EDITS = st.dictionaries(NAMES, st.sampled_from(["1", "2", None, "-> a"]), max_size=4)
ARCHIVES = st.lists(st.sampled_from(["a", "d", "d/*", "**/a"]), max_size=2).map(tuple)
CODONS = st.lists(st.tuples(EDITS, ARCHIVES), min_size=2, max_size=4)


def plain(edits: dict[str, str | None]) -> dict[str, str | None]:
    """Without those that need a folder where another one makes a file."""
    made = {name for name, text in edits.items() if text is not None}
    return {name: text for name, text in edits.items() if not any(name.startswith(f"{other}/") for other in made)}


async def check_history(
    tmp_path: Path,
    codons: list[tuple[dict[str, str | None], tuple[str, ...]]],
    back: int,
    last_edits: dict[str, str | None],
) -> None:
    history = await History.begin(execution(tmp_path))
    for number, (edits, archive) in enumerate(codons):
        await history.end(str(number), change=unlinked(history, plain(edits)), archive=archive)
    history.edit(unlinked(history, plain(last_edits)))
    target = str(min(back, len(codons) - 1))
    await history.go(choose(history.thread, To(codon=target)))
    stands, after, entries = history.stands(), history.after[target], Archive(history.layout).entries
    assert workspace(stands) == workspace(after)
    # An archived folder stays when another one has taken its place; else the archive is as it was too.
    left = [entry.target for entry in entries if entry.at_ms > history.ended_ms[target]]
    assert {path: text for path, text in stands.items() if not inside(path, left)} == after
    archived = [path for path in stands if path.startswith("rigArchive/")]
    assert all(sum(inside(path, [entry.target]) for entry in entries) == 1 for path in archived)


@pytest.mark.slow
@settings(max_examples=3)
@given(codons=CODONS, back=st.integers(0, 3), last_edits=EDITS)
async def test_whatever_happened_each_codons_end_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    codons: list[tuple[dict[str, str | None], tuple[str, ...]]],
    back: int,
    last_edits: dict[str, str | None],
) -> None:
    await check_history(tmp_path_factory.mktemp("history"), codons, back, last_edits)


@pytest.mark.soak
@settings(max_examples=300)
@given(codons=CODONS, back=st.integers(0, 3), last_edits=EDITS)
async def test_whatever_happened_in_many_histories_each_codons_end_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    codons: list[tuple[dict[str, str | None], tuple[str, ...]]],
    back: int,
    last_edits: dict[str, str | None],
) -> None:
    await check_history(tmp_path_factory.mktemp("history"), codons, back, last_edits)


def workspace(stands: dict[str, str]) -> dict[str, str]:
    return {path: text for path, text in stands.items() if path.startswith("agentRoot/")}


def inside(path: str, folders: list[str]) -> bool:
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def unlinked(history: History, edits: dict[str, str | None]) -> dict[str, str | None]:
    """Edits that can be made: what stands where they need a folder goes first."""
    blocking: dict[str, str | None] = {}
    for name, text in edits.items():
        for above in ("d", "d/e"):
            path = history.layout.agent_root / above
            if name.startswith(f"{above}/") and os.path.lexists(path) and (path.is_symlink() or not path.is_dir()):
                if text is None:
                    return {key: value for key, value in edits.items() if key != name}
                blocking[above] = None
    return {**blocking, **edits}


def test_a_choice_knows_whether_its_codon_runs_again() -> None:
    kept = choose(thread(), To(codon="a#0"))
    again = Choice(saved("a#0", "exit", "5555555a"), kept.undone, kept.kept, kept.newest)
    assert kept.keeps_its_codon
    assert not again.keeps_its_codon
    assert again.after_codon is None
