"""The server keeps to its own OpenAPI document: whatever the document allows is answered, all else refused as it says."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis.errors import Unsatisfiable
from jsonschema import Draft202012Validator
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from tests.support.serving import a_server, demo

SEED = 20_261_201


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Iterator[schemathesis.BaseSchema]:
    """What a server on loopback, which runs meanwhile, says of itself."""
    folder = tmp_path_factory.mktemp("openapi") / "executions"
    demo(folder)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(a_server(folder)) as server:
        yield schemathesis.openapi.from_url(f"{server.address}/api/openapi.json")


KNOWN = {"run_id": "latest", "session_id": "main"}
"""Of path parameters, what there is; of watches there are those that were drawn before."""
ENDLESS = "/api/runs/{run_id}/stream"
"""The one route that is left out."""
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "examples",
    [
        pytest.param(4, marks=pytest.mark.timeout(60)),
        pytest.param(60, marks=[pytest.mark.soak, pytest.mark.timeout(1_800)]),
    ],
)
def test_what_the_document_allows_is_answered_and_all_else_refused(
    document: schemathesis.BaseSchema, examples: int
) -> None:
    faults = list[str]()
    for result in document.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        if operation.path != ENDLESS:
            known = {name: value for name, value in KNOWN.items() if f"{{{name}}}" in operation.path}
            for mode in MODES:
                try:
                    ask(operation, mode, examples, known)
                except FailureGroup as found:
                    faults += [f"{operation.label}: {found}"]
    assert not faults, "\n\n".join(faults)


def ask(
    operation: schemathesis.APIOperation[Any, Any, Any, Any], mode: GenerationMode, examples: int, known: dict[str, str]
) -> None:
    """Draw requests and let all checks look at the answers.

    Raises:
        FailureGroup: some were not as they should be.
    """
    cases = operation.as_strategy(mode, path_parameters=known if len(known) == operation.path.count("{") else None)

    @seed(SEED)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def asked(case: schemathesis.Case[Any]) -> None:
        assume(not is_allowed_after_all(case))
        case.call_and_validate(timeout=10)

    with suppress(Unsatisfiable):  # nothing of it can be wrong
        asked()


def is_allowed_after_all(case: schemathesis.Case[Any]) -> bool:
    """Whether a body that was drawn to be wrong is right: what one form of several forbids, another may have."""
    drawn = {} if case.meta is None else case.meta.components
    wrong = {where.value for where, info in drawn.items() if info.mode.is_negative}
    if wrong != {"body"}:
        return False
    written = case.operation.definition.raw["requestBody"]["content"]["application/json"]["schema"]
    schema = {**written, "components": case.operation.schema.raw_schema["components"]}
    return bool(Draft202012Validator(schema).is_valid(case.body))
