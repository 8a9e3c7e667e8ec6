"""Strategy 1 where the rows are chosen too: balanced candidates by dual prices.

:func:`builders.engine.draw.balanced.draw_balanced` is given rows and drops those that it cannot
balance. Where golds meet few others that may stand beside them, as in a taxonomy, too little is
left. Here the rows are chosen as well, out of many more than are wanted.

Guarantee of ``draw_priced``:

- Exactly: each row gets one distractor of each group; no gold has more than ``cap`` rows; a node's
  uses as a distractor differ from K - 1 times its golds by at most ``TOLERANCE`` of their sum, or
  by ``SLACK``; the result depends on the rows and the random generator alone.
- Approximately: the gold's rank among the choices by level is each of the K in a K-th of the rows
  (to within ``EVEN``, unless no prices are found in ``ROUNDS`` rounds; violating rows are then
  dropped until the uses, not the ranks, are within bounds), and as many rows as possible are kept.
- Cost: O(rounds * candidates), all in NumPy.
"""

from __future__ import annotations

import numpy as np

from builders.engine.draw.balanced import Candidates, Draw, ranks_within
from kbprobe.arrays import Floats, Ints
from kbprobe.rng import RandomGenerator

ROUNDS = 800
WORTH = (5.0, -1.0)
"""The value of a row in the first round and in the last, when few rows are worth keeping."""

TOLERANCE = 0.5
"""How far a node's uses as a distractor may be from K - 1 times its golds, as a share of the sum.

At a half and with three choices, a node is gold in 14% to 60% of the rows that show it, and most
nodes in about 33%.
"""

SLACK = 6
"""The same in uses, for rare nodes."""

EVEN = 0.08
"""How far the share of rows in which the gold has a given rank may be from one in K."""


def draw_priced(
    candidates: Candidates, gold: Ints, level: Floats, count: int, cap: int, rng: RandomGenerator
) -> Draw:
    """Choose rows, and their distractors, such that each node is gold in one of K rows showing it.

    The gold is also the highest, the lowest, and each rank between by level in a K-th of the rows.

    Every node has a price: a row pays ``count`` times for its gold and is paid for its
    distractors. In each round every row takes the distractors with the highest prices, rows of
    negative value are left out, and prices of nodes that were gold too often rise (subgradient
    ascent on the dual of a flow problem). Fixed random parts of every value, of Gumbel
    distribution, keep rows from all taking the same candidates. With each round a row is worth
    less by itself, until what is left is balanced.

    Args:
        candidates: each (row, node) at most once; of all groups 0 .. ``count`` - 1 in every row.
        gold: the gold of each row; row numbers index this array.
        level: of every node, such as its generality.
        count: distractors for each row, K - 1.
        cap: most rows with one gold; 0: any number.
        rng: the random generator.

    Returns:
        The rows chosen, ascending, and their distractors in the order of the groups.

    Raises:
        ValueError: the candidates have no groups.
    """
    if candidates.group is None:
        raise ValueError("candidates need groups, one for each distractor of a row")
    if gold.size == 0:
        return Draw(np.empty(0, dtype=np.int64), np.empty((0, count), dtype=np.int64))
    side = candidates.row * count + candidates.group
    order = np.lexsort((candidates.node, side))
    side, node = side[order], candidates.node[order]
    start = np.searchsorted(side, np.arange(count * gold.size))
    lengths = np.diff(np.append(start, side.size))
    of_node = _gumbel(rng.child("nodes").uniform(side, node))
    of_row = _gumbel(rng.child("rows").uniform(np.arange(gold.size)))
    price, rank_price = np.zeros(level.size), np.zeros(count + 1)
    for worth in np.linspace(*WORTH, ROUNDS):
        offer = of_node + price[node]
        best = np.flatnonzero(offer == np.repeat(np.maximum.reduceat(offer, start), lengths))
        chosen = node[best[np.searchsorted(side[best], side[start])]].reshape(-1, count)
        rank = (level[chosen] < level[gold][:, None]).sum(axis=1)
        value = worth + of_row + price[chosen].sum(axis=1) - count * price[gold] + rank_price[rank]
        rows = _best(value, gold, cap)
        excess, most = _excess(gold[rows], chosen[rows], level.size)
        shares = np.bincount(rank[rows], minlength=count + 1) / max(rows.size, 1)
        lack = 1 / (count + 1) - shares
        if (np.abs(excess) <= most).all() and (np.abs(lack) <= EVEN).all():
            return Draw(rows, chosen[rows])
        rank_price = (rank_price + lack).astype(np.float32).astype(np.float64)
        # Rounded, so that a last bit of difference between machines cannot grow.
        moved = price + excess / (most / TOLERANCE + 4)
        price = moved.astype(np.float32).astype(np.float64)
    return _pruned(Draw(rows, chosen[rows]), value[rows], gold, level.size)


def _excess(gold: Ints, nodes: Ints, size: int) -> tuple[Ints, Floats]:
    """Return by how much each node's due exceeds its uses as a distractor; and how far it may."""
    due = nodes.shape[1] * np.bincount(gold, minlength=size)
    done = np.bincount(nodes.ravel(), minlength=size)
    return due - done, np.maximum(SLACK, TOLERANCE * (due + done))


def _pruned(draw: Draw, value: Floats, gold: Ints, size: int) -> Draw:
    """Drop violating rows until every node is within bounds, those of least value first."""
    rows, nodes = draw
    order = np.argsort(value, kind="stable")
    rows, nodes = rows[order], nodes[order]
    while rows.size:
        excess, most = _excess(gold[rows], nodes, size)
        shown = np.column_stack([(excess > most)[gold[rows]], (-excess > most)[nodes]])
        if not shown.any():
            break
        drop = int(np.argmax(shown.sum(axis=1)))
        rows, nodes = np.delete(rows, drop), np.delete(nodes, drop, axis=0)
    order = np.argsort(rows)
    return Draw(rows[order], nodes[order])


def _gumbel(uniform: Floats) -> Floats:
    return np.asarray(-np.log(-np.log(uniform)))


def _best(value: Floats, gold: Ints, cap: int) -> Ints:
    """Return the rows of positive value, ascending; of each gold the ``cap`` of highest value."""
    rows = np.flatnonzero(value > 0)
    if cap:
        rows = rows[np.lexsort((-value[rows], gold[rows]))]
        rows = np.sort(rows[ranks_within(gold[rows]) < cap])
    return rows
