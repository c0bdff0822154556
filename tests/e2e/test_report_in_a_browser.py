"""A report in a real browser, where there is one: it fits a phone and breaks no rule of its own policy."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.hostile import NASTIES, facts_of, hostile_story
from tests.support.stories import eventful_story

from hankwatch.pages.render import html

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --allow-file-access-from-files --virtual-time-budget=2000 --dump-dom"
)
FRAME = """<iframe id="page" src="page.html" style="width:390px;height:800px;border:0"></iframe><pre id="said"></pre>
<script>
page.onload = () => {
  const page_ = page.contentDocument;
  const told = [page_.documentElement.scrollWidth, page_.querySelectorAll("article").length, page_.scripts.length];
  said.textContent = told.join(" ");
};
</script>"""


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize("text", ["", "W" * 3_000, NASTIES[1], "漢" * 300 + " " + "x" * 400])
def test_a_report_is_no_wider_than_a_phone(tmp_path: Path, text: str) -> None:
    story, calls = hostile_story(text) if text else eventful_story()
    (tmp_path / "page.html").write_text(html(facts_of(story, calls, text or "eventful")), encoding="utf-8")
    (tmp_path / "frame.html").write_text(FRAME, encoding="utf-8")
    command = [
        str(CHROMIUM),
        *_FLAGS.split(),
        f"--user-data-dir={tmp_path / 'profile'}",
        f"file://{tmp_path / 'frame.html'}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    said = re.search(r'<pre id="said">(\d+) (\d+) (\d+)</pre>', done.stdout)
    assert said is not None, done.stdout[-500:]
    width, articles, scripts = map(int, said.groups())
    assert width <= 390
    assert articles > 3
    assert scripts == 0
