"""Connected components over the integers that identify articles."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def components(edges: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the connected components of an undirected graph.

    Union-find with path halving (Tarjan and van Leeuwen 1984), in Python: an hour has tens of links,
    for which building scipy's sparse matrix takes ten times as long.

    Args:
        edges: pairs of node ids; an id paired with itself is a node with no neighbour.

    Returns:
        the ids of each component in ascending order, components in order of their lowest id.
    """
    parent: dict[int, int] = {}
    for a, b in edges:
        one, other = _root(parent, a), _root(parent, b)
        # The lower id leads, so that the roots come in the order of the lowest ids.
        parent[max(one, other)] = min(one, other)
    groups: dict[int, list[int]] = {}
    for node in sorted(parent):
        groups.setdefault(_root(parent, node), []).append(node)
    return list(groups.values())


def _root(parent: dict[int, int], node: int) -> int:
    parent.setdefault(node, node)
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node
