"""The watched tree as events show it (the 0.10 contract, section "shared shapes")."""

from hankwatch.events.payload import Maybe, Shape


class FileNode(Shape):
    """A file or directory of the watched tree; a file has no children and a ``last_modified``."""

    name: str
    path: str
    """Relative to the agent's workspace."""
    is_directory: bool
    last_modified: Maybe[str] = None
    children: "list[FileNode]"
