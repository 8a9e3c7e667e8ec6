"""The texts of all questions in use, each in its wording, rendered a batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.render.jinja import Rewrite, TemplateError, render_batch
from builders.engine.render.template_file import Template, Wording
from kbprobe.arrays import Ints
from kbprobe.format.setups import MASK

Fields = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class QuestionBatch:
    """Distinct questions, each with its wording.

    Attributes:
        template: the wordings.
        fields: template field -> values of all of the plan's questions.
        used: (questions,) those in use, as lines of ``fields``.
        wording: (questions,) index of each one's wording.
    """

    template: Template
    fields: Mapping[str, pa.Array]
    used: Ints
    wording: Ints

    def render(
        self,
        rewrite: Callable[[Wording], Rewrite | None] = lambda _: None,
        more: Callable[[Wording, Ints], Fields] = lambda *_: {},
    ) -> pa.Array:
        """Render each question with its wording, one Jinja call for each wording.

        Args:
            rewrite: the change to a wording's syntax tree, if any.
            more: given a wording and the questions that have it (as positions in ``used``),
                fields that the change brings in.

        Returns:
            The texts, one for each of ``used``.
        """
        order = np.argsort(self.wording, kind="stable")
        rendered: list[str] = []
        for number, wording in enumerate(self.template.questions):
            some = order[self.wording[order] == number]
            lines = pa.array(self.used[some])
            fields: dict[str, Sequence[Any]] = {
                name: values.take(lines).to_pylist() for name, values in self.fields.items()
            }
            fields |= more(wording, some)
            where = f"{self.template.probe}: {wording.id}"
            rendered += render_batch(wording.text, fields, where, rewrite(wording))
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        return pa.array(rendered, pa.string()).take(pa.array(place))

    def arguments(self) -> dict[str, pa.Array]:
        """Return the task's arguments: name -> texts, one for each of ``used``."""
        lines = pa.array(self.used)
        return {
            name: self.fields[name].take(lines).cast(pa.string())
            for name in self.template.arguments
        }

    def check_masks(self, texts: pa.Array, what: str) -> None:
        """Make sure that each rendered question shows the mask once.

        Raises:
            TemplateError: one does not; the message names the wording and shows the question.
        """
        wrong = pc.index(pc.equal(pc.count_substring(texts, MASK), 1), False).as_py()
        if wrong >= 0:
            wording = self.template.questions[int(self.wording[wrong])]
            raise TemplateError(
                f"a cloze question shows {MASK} exactly once, not as in {texts[wrong].as_py()!r}",
                where=f"{self.template.probe}: {wording.id} ({what})",
            )
