"""What kind of tools agent programs have, as far as their names tell (spec watchdog 0)."""

from collections.abc import Mapping
from types import MappingProxyType

from hankwatch.watchdog.policy import ToolClass


def _classes(*, mutate: str = "", poll: str = "", wait: str = "", noop: str = "") -> Mapping[str, ToolClass]:
    of: dict[ToolClass, str] = {"mutate": mutate, "poll": poll, "wait": wait, "noop": noop}
    return {name: kind for kind, names in of.items() for name in names.split()}


TOOL_CLASSES: Mapping[str, Mapping[str, ToolClass]] = MappingProxyType(
    {
        "claude": _classes(mutate="Edit MultiEdit NotebookEdit Write", poll="BashOutput TaskOutput", noop="TodoWrite"),
        "cline": _classes(mutate="editor", noop="update_todo"),
        "codex": _classes(mutate="file_change apply_patch", noop="todo_list update_plan"),
        "copilot": _classes(
            mutate="create edit str_replace_editor", poll="read_bash", noop="update_todo report_intent"
        ),
        "gemini": _classes(mutate="replace write_file", noop="write_todos"),
        "opencode": _classes(mutate="apply_patch edit patch write", noop="todoread todowrite"),
        "openhands": _classes(mutate="file_editor str_replace_editor", noop="task_tracker think"),
        "pi": _classes(mutate="Edit Write edit write"),
        "qwen": _classes(mutate="edit write_file", noop="todo_write"),
        "vibe": _classes(mutate="file_system.search_replace file_system.write_file", noop="todo"),
    }
)
"""Agent program -> tool name -> class; tools that are missing have none, and a shell command is judged by what it runs."""


def classes_of(program: str) -> Mapping[str, ToolClass]:
    """What is known of an agent program's tools; all that is known, for what plays or imitates any of them."""
    everything = {name: kind for of_program in TOOL_CLASSES.values() for name, kind in of_program.items()}
    return TOOL_CLASSES.get(program, everything)
