"""Functions that are called when watches signal: registered by programs, or added by installed packages (spec watches 6)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Final

import anyio

from hankwatch.core.clock import Clock
from hankwatch.core.contain import contain
from hankwatch.core.errors import UsageError
from hankwatch.processes.limits import ends_within
from hankwatch.watches.blocking import contained, in_daemon_thread, is_async
from hankwatch.watches.delivery import Delivery
from hankwatch.watches.watch import Signal

HOOKS: Final = "hankwatch.hooks"
"""Entry points of other packages; each names a mapping of ``on_<signal>`` to a function."""
HOOK_LIMIT_S: Final = 10.0
"""Longest that the hooks of one signal may take."""
MAX_THREADS: Final = 64
"""Of hooks at one time; those that hang keep theirs."""

Hook = Callable[[Delivery], Awaitable[None]]
"""Gets a signal of a watch; its failure delays nobody and is tried again."""
PlainHook = Callable[[Delivery], None]


@dataclass(slots=True)
class Hooks:
    """Those of this process, on the loop's thread: the service registers them, deliverers call them."""

    _by_signal: dict[Signal, list[Hook | PlainHook]] = field(default_factory=dict)
    _in_threads: set[object] = field(default_factory=set)
    """Calls that occupy a thread."""

    def register(self, hooks: Mapping[str, Hook | PlainHook]) -> None:
        """Call these from now on, by ``on_<signal>``; none of them when one is no hook.

        Raises:
            UsageError: no such signal.
        """
        for signal, hook in [(_signal_of(name), hook) for name, hook in hooks.items()]:
            self._by_signal.setdefault(signal, []).append(hook)

    async def call(self, delivery: Delivery, clock: Clock) -> None:
        """Call all of its signal, side by side.

        Raises:
            TimeoutError: they took longer than their limit.
            Exception: what the first that failed raised.
        """
        failures = list[Exception]()

        async def call_one(hook: Hook | PlainHook) -> None:
            with contain(failures.append):
                await self._call(hook, delivery)

        async def call_all() -> None:
            async with anyio.create_task_group() as tasks:
                for hook in self._by_signal.get(delivery.signal, ()):
                    tasks.start_soon(call_one, hook)

        if not await ends_within(clock, HOOK_LIMIT_S, call_all):
            failures.append(TimeoutError(f"a hook took longer than {HOOK_LIMIT_S:g} s"))
        if failures:
            raise failures[0]

    async def _call(self, hook: Hook | PlainHook, delivery: Delivery) -> None:
        if is_async(hook):
            await contained(partial(hook, delivery))
            return
        if len(self._in_threads) >= MAX_THREADS:
            raise TimeoutError(f"{MAX_THREADS} calls of hooks before this one have not ended yet")
        call = object()
        self._in_threads.add(call)

        def run() -> None:
            try:
                hook(delivery)
            finally:
                self._in_threads.discard(call)

        await in_daemon_thread(run)


def plugin_hooks() -> tuple[list[Mapping[str, Any]], list[UsageError]]:
    """The hooks that installed packages add, and a fault for each package that cannot be used."""
    found, faults = list[Mapping[str, Any]](), list[UsageError]()
    for entry in entry_points(group=HOOKS):
        failures = list[Exception]()
        with contain(failures.append):
            hooks = dict(entry.load())
            for name in hooks:
                _signal_of(name)
            found.append({name: _in_own_loop(hook) for name, hook in hooks.items()})
        faults += [
            UsageError(f"the hooks {entry.name} of {entry.value} cannot be used: {type(failure).__name__}: {failure}")
            for failure in failures
        ]
    return found, faults


def _in_own_loop(hook: Hook | PlainHook) -> Hook | PlainHook:
    """A hook whose coroutine, should it block, blocks a loop of its own and not everybody's."""
    if not is_async(hook):
        return hook

    def call(delivery: Delivery) -> None:
        async def limited() -> None:
            with anyio.fail_after(HOOK_LIMIT_S):
                await contained(partial(hook, delivery))

        anyio.run(limited)

    return call


def _signal_of(name: str) -> Signal:
    known: Sequence[str] = [f"on_{signal}" for signal in Signal]
    if name not in known:
        raise UsageError(f"no watch signal has a hook {name!r}", hint=f"one of {', '.join(known)}")
    return Signal(name.removeprefix("on_"))
