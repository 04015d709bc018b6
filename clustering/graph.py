"""Connected components over the integers that identify articles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

if TYPE_CHECKING:
    from collections.abc import Iterable


def components(edges: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the connected components of an undirected graph.

    Args:
        edges: pairs of node ids; an id paired with itself is a node with no neighbour.

    Returns:
        the ids of each component in ascending order, components in order of their lowest id.
    """
    pairs = list(edges)
    nodes = sorted({node for pair in pairs for node in pair})
    if not nodes:
        return []
    index = {node: position for position, node in enumerate(nodes)}
    ends = ([index[a] for a, _ in pairs], [index[b] for _, b in pairs])
    graph = coo_array(([1] * len(pairs), ends), shape=(len(nodes), len(nodes)))
    count, labels = connected_components(graph, directed=False)
    groups: list[list[int]] = [[] for _ in range(count)]
    for node, label in zip(nodes, labels, strict=True):
        groups[label].append(node)
    return groups
