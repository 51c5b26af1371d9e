"""Names for nodes: what a model may call one, and asking it for a name."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from curation.domain.model import OTHER
from curation.errors import CurationError
from curation.teachers.llm.answers import NameAnswer
from curation.teachers.llm.prompts import load_prompt
from curation.teachers.llm.questions import Question, ask_checked
from curation.teachers.llm.rows import Asker, FaultyAnswerError
from curation.teachers.prompts import Language

__all__ = ["Named", "check_name", "name_cluster"]

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 48


@dataclass(frozen=True)
class Named:
    """A name for a group of queries, what belongs to it, and what to a neighbour instead (empty without one)."""

    name: str
    description: str
    contrast: str


def check_name(name: str, taken: Collection[str]) -> str:
    """``name`` without white space around it.

    Raises:
        FaultyAnswerError: It is no name for a node, or taken.
    """
    name = name.strip()
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise FaultyAnswerError(f"{name!r} is not a name of lower case English words joined by '_'")
    if name == OTHER:
        raise FaultyAnswerError(f"the name {OTHER!r} is kept for what no category takes")
    if name in taken:
        raise FaultyAnswerError(f"the name {name!r} is taken")
    return name


def name_cluster(
    client: Asker,
    texts: Sequence[str],
    others: Sequence[str],
    *,
    title: str,
    language: Language,
    taken: Sequence[str] = (),
) -> Named:
    """Name a group of queries.

    Args:
        client: Who asks.
        texts: Queries of the group.
        others: Queries of its neighbours, for contrast.
        title: Title of the domain.
        language: Of instructions and description.
        taken: Names it must not get.

    Raises:
        CurationError: The model gave no usable name, also when it was told what is wrong.
    """

    def check(answer: NameAnswer) -> Named:
        name = check_name(answer.name, taken)
        if not answer.description.strip():
            raise FaultyAnswerError("the description is empty")
        return Named(name, answer.description.strip(), answer.contrast.strip())

    prompt = load_prompt("name", language)
    data = {"queries": list(texts), "others": list(others)}
    told = prompt.instructions(title=title, taken=list(taken))
    (named,) = ask_checked(client, [Question(prompt.tag, told, data, NameAnswer, check)])
    if named.value is None:
        raise CurationError(f"the model gave no name to {len(texts)} queries such as {texts[0]!r}: {named.error}")
    return named.value
