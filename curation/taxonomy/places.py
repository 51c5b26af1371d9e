"""The files of a workspace that people edit."""

from __future__ import annotations

__all__ = ["BASE_FILE", "DECISIONS_FILE", "REVIEW", "SEEDS_FILE", "VERSIONS_FILE"]

REVIEW = "review"
"""Directory of a workspace with the files that people edit."""

BASE_FILE = f"{REVIEW}/taxonomy.yaml"
VERSIONS_FILE = f"{REVIEW}/versions.yaml"
DECISIONS_FILE = f"{REVIEW}/decisions.yaml"
SEEDS_FILE = f"{REVIEW}/seeds.csv"
