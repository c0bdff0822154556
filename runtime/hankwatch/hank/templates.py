"""Prompt templates of a hank's sentinels, compiled before anything runs (spec sentinels 1 and 6)."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.refs import read_ref
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault
from hankwatch.core.errors import PathRefused, TemplateFault
from hankwatch.hank.load import LoadedHank
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.loader import SentinelSource
from hankwatch.sentinels.prompts import Prompts, Template, prompt_refs, read_prompts

CODE = "template-invalid"
_HINT = "see the Jinja documentation; text that only looks like a tag goes between {% raw %} and {% endraw %}"


async def template_faults(hank: LoadedHank, sandbox: Sandbox, *, required_only: bool = False) -> list[Diagnostic]:
    """Every prompt that does not parse, in file order; with ``required_only`` those that must keep a run from starting.

    The other sentinels' faults only skip their sentinel. Sentinels with faults of another kind are left out:
    they have been reported.
    """
    found = Diagnostics()
    for pointer, codon in hank.config.codons() if hank.config is not None else ():
        for index, source in enumerate(hank.sentinels.get(codon.id, ())):
            if source.config is None or (required_only and not source.settings.fail_codon_if_not_loaded):
                continue
            written = _Written(hank, source, source.config, f"{pointer}/sentinels/{index}/sentinelConfig")
            async for field, fault in _faults(source, source.config, sandbox):
                written.add(found, field, fault)
    return found.items


async def sentinel_template_faults(source: SentinelSource, sandbox: Sandbox) -> list[Diagnostic]:
    """Every prompt of one sentinel, read from its own file, that does not parse."""
    found = Diagnostics()
    if source.config is not None:
        nowhere = LoadedHank(Path(), Path.cwd(), Document.from_value(None, "hank.json"), None, Diagnostics())
        written = _Written(nowhere, source, source.config, "")
        async for field, fault in _faults(source, source.config, sandbox):
            written.add(found, field, fault)
    return found.items


async def _faults(
    source: SentinelSource, config: SentinelConfig, sandbox: Sandbox
) -> AsyncIterator[tuple[str, TemplateFault]]:
    try:
        prompts = read_prompts(config, base_dir=source.base_dir, root=source.root)
    except PathRefused:  # the files changed since the hank was read
        return
    for field, template in _jinja(prompts):
        try:
            await sandbox.check(template.engine, template.source)
        except TemplateFault as fault:
            yield field, fault


def _jinja(prompts: Prompts) -> list[tuple[str, Template]]:
    """Those that this version can compile; others are reported as not supported yet."""
    named = (("systemPrompt", prompts.system), ("userPrompt", prompts.user))
    return [(field, template) for field, template in named if template is not None and template.engine == "jinja"]


@dataclass(frozen=True, slots=True)
class _Written:
    """Where a sentinel's prompts were written."""

    hank: LoadedHank
    source: SentinelSource
    config: SentinelConfig
    pointer: str
    """Of the entry's ``sentinelConfig`` in hank.json."""

    def add(self, found: Diagnostics, field: str, fault: TemplateFault) -> None:
        """One fault of ``systemPrompt`` or ``userPrompt``, shown in the file it stands in."""
        message = f"the prompt does not parse: {fault.reason}"
        if (place := self._prompt_file(field, fault.line)) is not None:
            found.add(Diagnostic(place[0], "", CODE, message, _HINT, line=place[1]))
            return
        of_prompt = f" (line {fault.line} of the prompt)" if fault.line else ""
        document, pointer = self._document()
        at = pointer if self.source.source == "stock" else f"{pointer}/{field}Text"
        add_fault(found, document, at, CODE, message + of_prompt, hint=_HINT)

    def _document(self) -> tuple[Document, str]:
        source = self.source
        if source.source != "file" or source.source_path is None:
            return self.hank.document, self.pointer
        return Document.load(self.hank.hank_dir / source.source_path, self._shown(source.source_path)), ""

    def _prompt_file(self, field: str, line: int | None) -> tuple[str, int] | None:
        """The file and the line in it that a line of the joined prompt came from; None for the config's own text."""
        if line is None:
            return None
        for pointer, ref in prompt_refs(self.config):
            if not pointer.startswith(f"/{field}File"):
                continue
            text = read_ref(ref, base=self.source.base_dir, root=self.source.root)
            lines = text.rstrip("\n").count("\n") + 1
            if line <= lines:
                return self._shown(os.path.relpath(self.source.base_dir / ref, self.hank.hank_dir)), line
            line -= lines + 1  # parts are joined by an empty line
        return None

    def _shown(self, path: str) -> str:
        return str(Path(self.hank.document.file).parent / path)
