"""Answers: their fields are columns of the contracts, their lists are closed, their schemas are strict."""

from __future__ import annotations

import json

import openai
import polars as pl
import pytest
from pydantic import ValidationError

import schemas
from curation.domain.model import REASONS
from curation.teachers.llm import answers
from curation.teachers.llm.answers import labels_answer, queries_answer, scores_answer, verdicts_answer

LEAVES = ("news.sport", "news.other", "other")


def columns(table):
    return dict(schemas.load(table).schema.create_empty().schema)


def fields(model):
    return set(model.model_fields)


def struct_fields(table, column):
    return {field.name for field in columns(table)[column].inner.fields}


def test_answers_fill_columns_of_the_contracts():
    theirs = {"query_id", "teacher", "taxonomy_version", "error"}
    assert fields(answers.LabelAnswer) - {"id"} == set(columns("annotations")) - theirs
    assert fields(answers.ConstraintAnswer) == struct_fields("annotations", "constraints") - {"start", "end"}
    computed = {"query_id", "teacher", "difficulty", "chain_depth"}
    assert fields(answers.ScoreAnswer) - {"id"} == set(columns("difficulty")) - computed
    assert fields(answers.StepAnswer) == struct_fields("difficulty", "tool_plan")
    assert fields(answers.QueryAnswer) <= set(columns("synthetic"))
    assert fields(answers.NameAnswer) - {"contrast"} <= set(columns("taxonomy"))
    assert fields(answers.Category) - {"contrast", "evidence"} <= set(columns("taxonomy"))
    measured = {"proposal_id", "source", "rows", "weight", "purity", "trend", "base_version", "problem"}
    assert fields(answers.ProposalAnswer) == set(columns("proposals")) - measured
    assert fields(answers.PartAnswer) - {"evidence"} == struct_fields("proposals", "parts") - {"examples"}


@pytest.mark.parametrize(
    ("model", "table"),
    [
        (answers.LabelAnswer, "annotations"),
        (answers.ScoreAnswer, "difficulty"),
        (answers.ProposalAnswer, "proposals"),
    ],
)
def test_answers_have_the_types_of_the_contracts(model, table):
    kinds = {str: pl.String, float: (pl.Float32, pl.Float64), bool: pl.Boolean}
    for name, field in model.model_fields.items():
        if name in columns(table) and field.annotation in kinds:
            expected = kinds[field.annotation]
            assert columns(table)[name] in (expected if isinstance(expected, tuple) else (expected,)), name


def test_bounds_are_those_of_the_contracts():
    for model, table in ((answers.LabelAnswer, "annotations"), (answers.ScoreAnswer, "difficulty")):
        for name, column in schemas.load(table).columns().items():
            if name in model.model_fields and getattr(column, "max", None) is not None:
                shown = model.model_json_schema()["properties"][name]
                assert (shown["minimum"], shown["maximum"]) == (column.min, column.max), name


def test_reasons_are_those_of_the_domain():
    schema = answers.ScoreAnswer.model_json_schema()["properties"]["reason"]["anyOf"]
    assert schema == [{"enum": list(REASONS), "type": "string"}, {"type": "null"}]


def label(**changes):
    entry = {
        "id": "a", "primary": "news.sport", "secondary": [], "constraints": [], "confidence": 0.5,
        "unsolvable": None, "unsolvable_confidence": 0,
    }  # fmt: skip
    return json.dumps({"labels": [entry | changes]})


def test_lists_are_closed():
    model = labels_answer(LEAVES, ("budget",), 1)
    good = model.model_validate_json(label(secondary=["other"])).labels[0]
    assert (good.primary, good.secondary) == ("news.sport", ["other"])
    bad = [
        {"primary": "news"},
        {"primary": None},
        {"secondary": ["weather"]},
        {"secondary": ["other", "news.other"]},
        {"constraints": [{"dimension": "mood", "value": "x", "text": "y"}]},
        {"confidence": 1.1},
        {"unsolvable": "too_hard"},
    ]
    for change in bad:
        with pytest.raises(ValidationError):
            model.model_validate_json(label(**change))
    with pytest.raises(ValidationError):
        scores_answer(("f",)).model_validate_json(
            '{"scores": [{"id": "a", "tool_plan": [{"step": 1, "tool": "g", "depends_on": []}],'
            ' "cognitive_load": 1, "constraint_complexity": 1, "reason": null}]}'
        )


def test_a_domain_without_dimensions_or_tools_has_empty_lists():
    model = labels_answer(LEAVES, (), 0)
    with pytest.raises(ValidationError):
        model.model_validate_json(label(constraints=[{"dimension": "x", "value": "x", "text": "y"}]))
    assert model.model_validate_json(label()).labels[0].constraints == []


def test_lists_too_long_for_a_schema_are_open():
    many = tuple(f"leaf{at}" for at in range(600))
    assert "enum" not in json.dumps(queries_answer(many).model_json_schema())
    assert len(labels_answer(many[:500], (), 2).model_json_schema()["$defs"]["Leaf"]["enum"]) == 500


@pytest.mark.parametrize(
    "model",
    [
        labels_answer(LEAVES, ("budget", "time"), 2),
        scores_answer(("f", "g")),
        queries_answer(LEAVES),
        verdicts_answer(("f", "g")),
        answers.clusters_answer(LEAVES),
        answers.CategoriesAnswer,
        answers.NameAnswer,
        answers.ProposalsAnswer,
    ],
)
def test_schemas_are_strict_and_have_no_docstrings(model):
    strict = openai.pydantic_function_tool(model)["function"]["parameters"]
    objects = [strict, *strict.get("$defs", {}).values()]
    for shape in objects:
        if shape.get("type") == "object":
            assert shape["additionalProperties"] is False
            assert sorted(shape["required"]) == sorted(shape["properties"])
    assert "description" not in {key for shape in objects for key in shape}
    # What strict schemas may not say would have the endpoint refuse the request.
    assert not {"minLength", "maxLength", "default", "uniqueItems"} & set(words(strict))


def words(schema):
    if isinstance(schema, dict):
        for key, value in schema.items():
            yield key
            yield from words(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from words(value)


def test_equal_lists_give_the_same_model():
    """The client takes requests for equal only if their models are."""
    assert labels_answer(LEAVES, (), 2) is labels_answer(tuple(LEAVES), (), 2)
