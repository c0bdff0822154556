"""Adding up what an agent used, without counting anything twice (spec events, ``token.usage``)."""

from dataclasses import dataclass, field, replace

from hankwatch.agents.signals import Tokens, Used


@dataclass(slots=True)
class Account:
    """Turns what a program states into increments that add up to its totals.

    A message seen again adds only what it grew by, per kind of token; a kind that shrank adds nothing. A
    program's own total adds what it exceeds the messages by since the total before it. So the
    increments always sum to ``tokens`` and ``cost_usd``, and these equal the program's statement unless
    its messages claimed more than its total, in which case the messages stand.
    """

    tokens: Tokens = field(default_factory=Tokens)
    """Of all increments so far."""
    cost_usd: float | None = None
    """Of all increments whose cost was stated; None while none was."""
    model: str | None = None
    """The last one named."""
    _messages: dict[str, tuple[Tokens, float]] = field(default_factory=dict)
    _since: Tokens = field(default_factory=Tokens)
    _since_usd: float = 0.0

    def add(self, used: Used) -> Used | None:
        """The increment to report, or None when the statement adds nothing."""
        self.model = used.model or self.model
        cost_usd = used.cost_usd
        if cost_usd is not None and cost_usd <= 0 and used.tokens != Tokens():
            # Programs write 0 for a model whose price they do not know.
            cost_usd = None
        known, known_usd = self._known(used)
        tokens = used.tokens.beyond(known)
        grown_usd = None if cost_usd is None else max(0.0, cost_usd - known_usd)
        self._remember(used, tokens, grown_usd or 0.0)
        if tokens == Tokens() and not grown_usd:
            return None
        self.tokens += tokens
        if grown_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + grown_usd
        return replace(used, tokens=tokens, cost_usd=grown_usd)

    def _known(self, used: Used) -> tuple[Tokens, float]:
        """What of this statement was counted before."""
        if not used.total:
            return self._messages.get(used.message_id, (Tokens(), 0.0))
        if used.message_id and used.message_id in self._messages:
            return used.tokens, used.cost_usd or 0.0  # a copy
        return self._since, self._since_usd

    def _remember(self, used: Used, tokens: Tokens, grown_usd: float) -> None:
        if used.total:
            self._since, self._since_usd = Tokens(), 0.0
        else:
            self._since += tokens
            self._since_usd += grown_usd
        if used.message_id:
            before, before_usd = self._messages.get(used.message_id, (Tokens(), 0.0))
            self._messages[used.message_id] = (before + tokens, before_usd + grown_usd)
