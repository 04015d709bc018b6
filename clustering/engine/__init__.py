"""The engine: joins the stages. The only module that knows them all."""

from __future__ import annotations

from clustering.engine.engine import Engine
from clustering.engine.runs import RunReport

__all__ = ["Engine", "RunReport"]
