from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clustering.graph import components

NODES = st.integers(min_value=1, max_value=12)


def flood(edges: list[tuple[int, int]]) -> list[list[int]]:
    """The slow way: walk from each node to all that it reaches."""
    left = {node for edge in edges for node in edge}
    found = []
    while left:
        reached = {min(left)}
        while grown := {
            b for edge in edges for a, b in (edge, edge[::-1]) if a in reached and b not in reached
        }:
            reached |= grown
        found.append(sorted(reached))
        left -= reached
    return found


def test_no_edges_have_no_components():
    assert components([]) == []


def test_a_node_with_itself_is_a_component():
    assert components([(7, 7)]) == [[7]]


def test_components_and_their_nodes_are_in_order():
    assert components([(9, 8), (5, 2), (9, 1)]) == [[1, 8, 9], [2, 5]]


def test_ids_may_be_as_large_as_the_database_gives_them():
    large = 2**62
    assert components(iter([(large, 1), (large + 1, large)])) == [[1, large, large + 1]]


@given(st.lists(st.tuples(NODES, NODES), max_size=25))
def test_components_agree_with_walking_the_graph(edges):
    assert components(edges) == flood(edges)


@given(st.lists(st.tuples(NODES, NODES), max_size=15), st.randoms(use_true_random=False))
def test_order_and_direction_of_edges_do_not_matter(edges, random):
    turned = [edge[:: random.choice((1, -1))] for edge in edges]
    random.shuffle(turned)
    assert components(turned) == components(edges)
