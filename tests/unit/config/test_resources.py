"""Shipped files are found from a checkout and from a wheel."""

from pathlib import Path

import pytest

from hankwatch.config import resources


@pytest.fixture(autouse=True)
def _fresh() -> None:
    resources._data_root.cache_clear()


def test_a_checkout_holds_them_at_its_root() -> None:
    assert resources.resource("fixtures", "demo", "hank.json").is_file()
    assert resources.resource("sentinels").is_dir()


def test_a_wheel_holds_them_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hankwatch" / "_data" / "schemas").mkdir(parents=True)
    monkeypatch.setattr(resources, "PACKAGE", tmp_path / "hankwatch")
    assert resources.resource("schemas") == tmp_path / "hankwatch" / "_data" / "schemas"
    resources._data_root.cache_clear()


def test_what_does_not_ship_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="schemas/nope"):
        resources.resource("schemas", "nope")
