"""What of our environment a child gets (design rule 11, reference 2.8)."""

from hankwatch.config.environment import child_environment, is_present

OURS = {
    "PATH": "/bin",
    "HOME": "/h",
    "LC_ALL": "C",
    "OPENAI_API_KEY": "k",
    "DATABASE_URL": "d",
    "HANKWATCH_PROCESS": "p",
}


def test_a_child_gets_what_any_program_needs_and_no_more() -> None:
    assert child_environment(OURS) == {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C"}


def test_an_agents_own_variables_are_kept_by_name_or_prefix() -> None:
    kept = child_environment(OURS, keep=["OPENAI_*", "DATABASE_URL"])
    assert kept["OPENAI_API_KEY"] == "k"
    assert kept["DATABASE_URL"] == "d"


def test_a_variable_with_our_prefix_reaches_the_child_without_it() -> None:
    assert child_environment({"HANKWEAVE_X": "v", "X": "old"}, keep=["X"]) == {"X": "v"}


def test_the_value_unset_removes_a_variable() -> None:
    assert child_environment({"HANKWEAVE_PATH": "unset", "PATH": "/bin", "HANKWEAVE_NOT_THERE": "unset"}) == {}


def test_what_is_meant_for_the_runtime_and_the_sentinels_stays_here() -> None:
    ours = {"HANKWEAVE_RUNTIME_MODEL": "m", "HANKWEAVE_SENTINEL_OPENAI_API_KEY": "k", "HANKWEAVE_": "x"}
    assert child_environment(ours, keep=["*"]) == {}


def test_what_a_codon_sets_goes_last_as_it_is() -> None:
    assert child_environment({"HANKWEAVE_X": "v"}, {"X": "codon", "HANKWEAVE_Y": "y"}) == {
        "X": "codon",
        "HANKWEAVE_Y": "y",
    }


def test_a_required_variable_is_present_under_either_name_when_not_empty() -> None:
    assert is_present("A", {"A": "x"})
    assert is_present("A", {"HANKWEAVE_A": "x"})
    assert not is_present("A", {"A": "", "B": "x"})
