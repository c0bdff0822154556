"""Prompts and answer schemas of a hank's sentinels, compiled before anything runs (spec sentinels 1, 6 and 7)."""

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.refs import read_ref
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault
from hankwatch.core.errors import PathRefused, SchemaFault, TemplateFault
from hankwatch.hank.load import LoadedHank
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.prompts import read_prompts
from hankwatch.sentinels.schema import answer_schema
from hankwatch.sentinels.source import SentinelSource, refs

CODE = "template-invalid"
_HINTS = {
    "jinja": "see the Jinja documentation; text that only looks like a tag goes between {% raw %} and {% endraw %}",
    "eta": "see the Eta documentation; what stands between <% and %> is JavaScript",
}
_SCHEMA_HINT = "write a JSON Schema, or the part of Zod that describes data alone"


async def template_faults(hank: LoadedHank, sandbox: Sandbox, *, required_only: bool = False) -> list[Diagnostic]:
    """Every prompt that does not parse and every schema that cannot be used, in file order; with ``required_only`` those that
    must keep a run from starting.

    The other sentinels' faults only skip their sentinel. Sentinels with faults of another kind are left out:
    they have been reported.
    """
    found = Diagnostics()
    for pointer, codon in hank.config.codons() if hank.config is not None else ():
        for index, source in enumerate(hank.sentinels.get(codon.id, ())):
            if source.config is None or (required_only and not source.settings.fail_codon_if_not_loaded):
                continue
            written = _Written(hank, source, source.config, f"{pointer}/sentinels/{index}/sentinelConfig")
            async for fault in _faults(source, source.config, sandbox):
                written.add(found, fault)
    return found.items


async def sentinel_template_faults(
    source: SentinelSource, sandbox: Sandbox, document: Document | None = None
) -> list[Diagnostic]:
    """The same of one sentinel, read from its own file, or from a ``document`` that was sent."""
    found = Diagnostics()
    if source.config is not None:
        written_in = Document.from_value(None, "hank.json") if document is None else document
        hank_dir = Path.cwd() if document is None else source.base_dir
        nowhere = LoadedHank(Path(), hank_dir, written_in, None, Diagnostics())
        written = _Written(nowhere, source, source.config, "")
        async for fault in _faults(source, source.config, sandbox):
            written.add(found, fault)
    return found.items


async def _faults(source: SentinelSource, config: SentinelConfig, sandbox: Sandbox) -> AsyncIterator["_Fault"]:
    try:
        prompts = read_prompts(config, base_dir=source.base_dir, root=source.root)
        for field, template in (("systemPrompt", prompts.system), ("userPrompt", prompts.user)):
            try:
                if template is not None:
                    await sandbox.check(template.engine, template.source)
            except TemplateFault as fault:
                assert template is not None
                message = f"the prompt does not parse: {fault.reason}"
                yield _Fault(field, fault.code, message, _HINTS[template.engine], fault.line)
        try:
            await answer_schema(config, base_dir=source.base_dir, root=source.root, sandbox=sandbox)
        except SchemaFault as fault:
            message = f"the schema of its answers cannot be used: {fault.reason}"
            yield _Fault("structuredOutput/schema", fault.code, message, _SCHEMA_HINT, fault.line)
    except PathRefused:  # the files changed since the hank was read
        return


@dataclass(frozen=True, slots=True)
class _Fault:
    """What is wrong with one text of a sentinel."""

    field: str
    """``systemPrompt``, ``userPrompt`` or ``structuredOutput/schema``: what the keys of it begin with."""
    code: str
    message: str
    hint: str
    line: int | None
    """In the text; of a prompt, in the joined one."""


@dataclass(frozen=True, slots=True)
class _Written:
    """Where a sentinel's prompts were written."""

    hank: LoadedHank
    source: SentinelSource
    config: SentinelConfig
    pointer: str
    """Of the entry's ``sentinelConfig`` in hank.json."""

    def add(self, found: Diagnostics, fault: _Fault) -> None:
        """One fault, shown in the file it stands in."""
        if (place := self._text_file(fault)) is not None:
            found.add(Diagnostic(place[0], "", fault.code, fault.message, fault.hint, line=place[1]))
            return
        of_text = f" (line {fault.line} of the text)" if fault.line else ""
        document, pointer = self._document()
        at = pointer if self.source.source == "stock" else f"{pointer}/{self._key(fault)}"
        add_fault(found, document, at, fault.code, fault.message + of_text, hint=fault.hint)

    def _key(self, fault: _Fault) -> str:
        if not fault.field.startswith("structuredOutput"):
            return f"{fault.field}Text"
        wanted = self.config.structured_output
        return f"{fault.field}{'Str' if wanted is None or wanted.schema_file is None else 'File'}"

    def _document(self) -> tuple[Document, str]:
        source = self.source
        if source.source != "file" or source.source_path is None:
            return self.hank.document, self.pointer
        return Document.load(self.hank.hank_dir / source.source_path, self._shown(source.source_path)), ""

    def _text_file(self, fault: _Fault) -> tuple[str, int] | None:
        """The file and the line in it that a line of the text came from; None for the config's own text."""
        line = fault.line
        if line is None:
            return None
        for pointer, ref in refs(self.config):
            if not pointer.startswith(f"/{fault.field}File"):
                continue
            text = read_ref(ref, base=self.source.base_dir, root=self.source.root)
            lines = text.rstrip("\n").count("\n") + 1
            if line <= lines:
                return self._shown(os.path.relpath(self.source.base_dir / ref, self.hank.hank_dir)), line
            line -= lines + 1  # parts are joined by an empty line
        return None

    def _shown(self, path: str) -> str:
        return str(Path(self.hank.document.file).parent / path)
