"""Environment variables whose names are probably those of settings, misspelled."""

from __future__ import annotations

from collections.abc import Iterable

from engine.config import settings
from engine.config.setting import VARIABLE_PREFIX, declared_settings, is_group

_SIMILAR = 0.81
"""Variables of other uses, such as those of the tests, are less similar to those of settings."""


def misspelled_variables(environment: Iterable[str]) -> list[str]:
    """A sentence for each variable that is similar to that of a setting, but is none of them."""
    candidates = sorted(name for name in environment if name.startswith(VARIABLE_PREFIX))
    if not candidates:
        return []
    # Not at the top: hardly any command needs it.
    from difflib import get_close_matches

    owners = filter(is_group, vars(settings).values())
    variables = {each.variable for owner in owners for each in declared_settings(owner)}
    known = {variable.removeprefix(VARIABLE_PREFIX) for variable in variables}
    sentences = []
    for variable in candidates:
        name = variable.removeprefix(VARIABLE_PREFIX)
        near = get_close_matches(name, known, n=1, cutoff=_SIMILAR)
        if name not in known and near:
            sentences.append(
                f"the environment variable {variable} is ignored, since no setting has it: did you mean "
                f"{VARIABLE_PREFIX}{near[0]}?"
            )
    return sentences
