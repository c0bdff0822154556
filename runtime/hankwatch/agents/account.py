"""Adding up what an agent used, without counting anything twice (spec events, ``token.usage``)."""

from dataclasses import dataclass, field, replace

from hankwatch.agents.limits import could_be_used, is_possible
from hankwatch.agents.signals import ModelUse, Tokens, Used


@dataclass(slots=True)
class Account:
    """Turns what a program states into increments that add up to its totals.

    A message seen again adds only what it grew by, per kind of token; a kind that shrank adds nothing. A
    program's own total adds what it exceeds the messages by since the total before it; of one that runs over
    a whole session, what it has more than the session's last one is such a total. So the
    increments always sum to ``tokens`` and ``cost_usd``, and these equal the program's statement unless
    its messages claimed more than its total, in which case the messages stand. A statement that nothing can
    have used (``agents.limits``), or that would bring a sum there, is not counted.
    """

    tokens: Tokens = field(default_factory=Tokens)
    """Of all increments so far."""
    cost_usd: float | None = None
    """Of all increments whose cost was stated; None while none was."""
    model: str | None = None
    """The last one named."""
    by_model: dict[str, ModelUse] = field(default_factory=dict)
    """The parts of the models, where the program's totals state them."""
    refused: int = 0
    """Statements that were not counted because no program can have used that much."""
    _sessions: dict[str, Used] = field(default_factory=dict)
    _messages: dict[str, tuple[Tokens, float]] = field(default_factory=dict)
    _since: Tokens = field(default_factory=Tokens)
    _since_usd: float = 0.0
    _cut: Tokens = field(default_factory=Tokens)
    _cut_usd: float = 0.0
    """Of processes that were ended before they stated their total."""
    _is_part_unknown: bool = False

    @property
    def whole_cost_usd(self) -> float | None:
        """``cost_usd``; None as well when a process was ended before it could state what it cost."""
        return None if self._is_part_unknown else self.cost_usd

    def cut_short(self) -> None:
        """The process was ended before its total: only one that runs over the session will cover what it told so far."""
        self._is_part_unknown |= self._since != Tokens() and not self._since_usd
        self._cut, self._cut_usd = self._cut + self._since, self._cut_usd + self._since_usd
        self._since, self._since_usd = Tokens(), 0.0

    def carry(self, session_id: str, tokens: Tokens, cost_usd: float | None = None) -> None:
        """Take note of what earlier codons of a session have counted, for programs whose totals run over it."""
        self._sessions[session_id] = Used(tokens, cost_usd=cost_usd, total=True, session=session_id)

    def recall(self, earlier: "Account") -> None:
        """Know the messages that an earlier attempt of the session has counted: again they add only what they grew by."""
        self._messages |= earlier._messages

    def add(self, used: Used) -> Used | None:
        """The increment to report, or None when the statement adds nothing."""
        self.model = used.model or self.model
        if not is_possible(used) or not self._has_room(used):
            self.refused += 1
            return None
        if used.session:
            before, self._sessions[used.session] = self._sessions.get(used.session), used
            used = used if before is None else _growth(used, before)
        cost_usd = _known_cost(used.cost_usd, used.tokens)
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

    def _has_room(self, used: Used) -> bool:
        totals = [(ModelUse(self.tokens, self.cost_usd), ModelUse(used.tokens, used.cost_usd))]
        totals += [(self.by_model[name], use) for name, use in used.by_model.items() if name in self.by_model]
        return all(could_be_used(total + more) for total, more in totals)

    def _known(self, used: Used) -> tuple[Tokens, float]:
        """What of this statement was counted before."""
        if not used.total:
            return self._messages.get(used.message_id, (Tokens(), 0.0))
        if used.message_id and used.message_id in self._messages:
            return used.tokens, used.cost_usd or 0.0  # a copy
        if used.session:
            return self._since + self._cut, self._since_usd + self._cut_usd
        return self._since, self._since_usd

    def _remember(self, used: Used, tokens: Tokens, grown_usd: float) -> None:
        if used.total:
            self._since, self._since_usd = Tokens(), 0.0
            if used.session:
                self._cut, self._cut_usd = Tokens(), 0.0
                self._is_part_unknown &= used.cost_usd is None
            if used.message_id not in self._messages:
                for model, use in used.by_model.items():
                    part = ModelUse(use.tokens, _known_cost(use.cost_usd, use.tokens))
                    self.by_model[model] = self.by_model.get(model, ModelUse()) + part
        else:
            self._since += tokens
            self._since_usd += grown_usd
        if used.message_id:
            before, before_usd = self._messages.get(used.message_id, (Tokens(), 0.0))
            self._messages[used.message_id] = (before + tokens, before_usd + grown_usd)


def _growth(now: Used, before: Used) -> Used:
    nothing = ModelUse()
    models = {name: (use, before.by_model.get(name, nothing)) for name, use in now.by_model.items()}
    return replace(
        now,
        tokens=now.tokens.beyond(before.tokens),
        cost_usd=_grown_cost(now.cost_usd, before.cost_usd),
        by_model={
            name: ModelUse(use.tokens.beyond(old.tokens), _grown_cost(use.cost_usd, old.cost_usd))
            for name, (use, old) in models.items()
        },
    )


def _grown_cost(now_usd: float | None, before_usd: float | None) -> float | None:
    return None if now_usd is None else max(0.0, now_usd - (before_usd or 0.0))


def _known_cost(cost_usd: float | None, tokens: Tokens) -> float | None:
    """None as well where a program wrote 0, as it does for a model whose price it does not know."""
    return None if cost_usd is not None and cost_usd <= 0 and tokens != Tokens() else cost_usd
