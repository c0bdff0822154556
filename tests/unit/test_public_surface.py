"""What ``import hankwatch`` offers, and what it costs."""

import subprocess
import sys

import pytest

import hankwatch


@pytest.mark.parametrize("name", hankwatch.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(hankwatch, name).__doc__
    assert name in dir(hankwatch)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(hankwatch, "no_such_name")  # noqa: B009 - the type checker knows it is not there


def test_importing_the_package_imports_nothing_but_itself() -> None:
    code = "import sys; before = set(sys.modules); import hankwatch; print(*set(sys.modules) - before)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert {name for name in shown.split() if name.partition(".")[0] not in sys.stdlib_module_names} == {"hankwatch"}


def test_opening_a_run_needs_no_model_package() -> None:
    code = "import sys, hankwatch; hankwatch.run_hank; print('litellm' in sys.modules, 'typer' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert shown.split() == ["False", "False"]
