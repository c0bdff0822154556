"""What is prepared in a codon's workspace before its agent starts (reference 2.3)."""

from typing import Annotated, Literal

from pydantic import Field

from hankwatch.config.validation import ConfigModel

Text = Annotated[str, Field(min_length=1)]


class Copy(ConfigModel):
    """From where to where."""

    source: Text = Field(alias="from")
    """File or folder below the hank directory; a relative POSIX path without symlinks."""
    to: Text
    """Target, relative to the agent's workspace; its parent must exist, what is there is removed first."""


class CopyOperation(ConfigModel):
    """Copies a file or folder of the hank into the workspace."""

    type: Literal["copy"]
    """Which operation this is."""
    copy_: Copy = Field(alias="copy")
    """From where to where."""
    allow_failure: bool = False
    """Go on with the next operation when this one fails."""


class Command(ConfigModel):
    """A shell command."""

    run: Text
    """Handed to the shell, with the codon's env merged over the process environment."""
    working_directory: Literal["project", "lastCopied"] = "project"
    """project: the agent's workspace. lastCopied: the target of the last copy before, else the workspace."""


class CommandOperation(ConfigModel):
    """Runs a shell command in the workspace."""

    type: Literal["command"]
    """Which operation this is."""
    command: Command
    """What to run, and where."""
    allow_failure: bool = False
    """Go on with the next operation when this one fails."""


RigOperation = Annotated[CopyOperation | CommandOperation, Field(discriminator="type")]


class OutputGroup(ConfigModel):
    """Files that are copied to the output directory after the codon, when one is set."""

    copy_: tuple[Text, ...] = Field(alias="copy", min_length=1)
    """Globs below the workspace."""
    before_copy: tuple[Text | CommandOperation, ...] = ()
    """Commands that run before the copy: shell text, or rig command operations."""
