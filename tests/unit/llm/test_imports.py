"""The provider library is imported by one module, at its first use (design rule 10)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hankwatch


def test_only_its_adapter_imports_litellm() -> None:
    package = Path(hankwatch.__file__).parent
    importing = re.compile(r"^\s*(?:import|from)\s+litellm\b", re.MULTILINE)
    files = {str(path.relative_to(package)) for path in package.rglob("*.py") if importing.search(path.read_text())}
    assert files == {"llm/litellm.py"}


@pytest.mark.slow
def test_neither_importing_nor_checking_imports_litellm() -> None:
    script = (
        "import sys, hankwatch.llm, hankwatch.testing\n"
        "from hankwatch.core.clock import SystemClock\n"
        "from hankwatch.core.redaction import Redactor\n"
        "router = hankwatch.llm.ModelRouter({'OPENAI_API_KEY': 'k'}, redactor=Redactor(), clock=SystemClock())\n"
        "assert router.check('openai/gpt-5-mini').provider == 'openai'\n"
        "print([name for name in sys.modules if name.partition('.')[0] == 'litellm'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
