"""Results: what a run of a model on a probe writes, and the meaning of each number.

``results.json`` holds :class:`Results`, and ``predictions.parquet`` one row per item as described
in :func:`predictions_schema`; ``report.html`` is made from these two files alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from evaluation.items.types import arguments_type
from kbprobe.columns import arrow_type
from kbprobe.errors import UsageError
from kbprobe.files import regular_path, replacing_file
from kbprobe.format.manifest import MOST_SIMILAR, EncoderDigest
from kbprobe.format.parquet import UNIQUE, write_parquet
from kbprobe.format.sealed import Sealed, read_sealed, write_sealed
from kbprobe.intervals import Estimate as Estimate  # read with the results
from kbprobe.parsing import validated

if TYPE_CHECKING:
    import pyarrow as pa

RESULTS = "results.json"
PREDICTIONS = "predictions.parquet"
REPORT = "report.html"
FACTS = "facts"
"""The subfolder with the results on the facts that rows rest on."""
SCHEMA_VERSION = "1.6"
AGAIN = "Evaluate again with --overwrite."

Normalization = Literal["sum", "char", "byte", "token"]
"""What a choice's score is divided by before choices are compared: nothing, or its length."""

METRIC_OF: dict[Normalization, str] = {
    "sum": "acc",
    "char": "acc_norm",
    "byte": "acc_bytes",
    "token": "acc_tokens",
}
"""The names of the accuracies; the first three are those of lm-evaluation-harness."""

DIVIDED: dict[Normalization, str] = {
    "sum": "sums of log-likelihoods",
    "char": "log-likelihoods per character",
    "byte": "log-likelihoods per byte",
    "token": "log-likelihoods per token",
}
"""What choices are compared by."""

PER: dict[Normalization, str] = {
    "sum": "as sums",
    "char": "per character",
    "byte": "per byte",
    "token": "per token",
}
"""How log-likelihoods are compared, in a few words."""

NOTES: dict[str, str] = {
    "truncated": "rows whose text was cut to fit the model",
    "cut_texts": "different texts cut to fit the model",
    "straddled": "rows whose question is divided in another way before a choice than alone",
    "unstructured": "answers that are not the object which was asked for; their text was read",
    "filtered": "answers that a content filter refused or ended",
    "unpacked": "questions read again for each choice, as the model needs it",
    "plain_forward": "sequences run the plain way, as the model needs it",
    "halved_batches": "batches halved because memory ran out",
    "several_pieces": "rows with a candidate of several pieces, which counts as their mean",
    "train_set_aside": "rows of train that were not fitted on, for such a reason",
    "known_words": "different words with a vector, which are few: see --vectors",
    "unknown_words": "different words without a vector of their own",
    "undecided": "pairs without a label that annotators agreed on, which were left out",
    "gold_copies": "rows with copies of the gold among their choices, which were left out",
    "train_overlap": "rows of clusters that are in train as well",
}
"""Descriptions of what a scorer may report, by its name in the results."""


SHOWN_CHARACTERS = 400
"""Maximum number of characters that ``print`` shows of a part of the results."""


class Model(BaseModel):
    """A part of the results: frozen, and without fields that are not declared."""

    # Validators are built when a result is first made or read: commands that do neither start fast.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def __repr__(self) -> str:
        """Return the fields, shortened; ``model_dump_json(indent=1)`` gives them all."""
        text = super().__repr__()
        return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}...)"

    __str__ = __repr__

    def __bool__(self) -> Literal[True]:
        """Return True: ``part and part.value`` is None only where there is no part."""
        return True


class Group(Model):
    """The accuracy of some of the rows, named by what they share."""

    name: str = Field(description="What the rows share: a wording, a part of speech.")
    accuracy: Estimate = Field(description="Share of these rows answered right.")


class Stratum(Model):
    """One cell of the table hops x distractor family x distractor distance k'."""

    hops: int | None = Field(description="Edges k between concept and gold; null: not known.")
    family: str | None = Field(description="Distractor family; null: not known.")
    distractor_hops: int | None = Field(description="Distance k' of the distractors.")
    accuracy: Estimate = Field(description="Share of these rows answered right.")


class ClusterSize(Model):
    """All wholly scored clusters of one size: the share with every question right."""

    size: int = Field(description="Questions in the cluster.")
    clusters: int = Field(description="How many clusters of this size there are.")
    accuracy: float = Field(description="Row accuracy in these clusters.")
    strict: float = Field(description="Share of these clusters with every question right.")
    independent: float = Field(
        description="The strict accuracy to expect if these rows were right independently of "
        "each other: accuracy to the power of size."
    )


class Bin(Model):
    """One bin of the calibration curve: ten of equal width, empty ones left out."""

    low: float = Field(description="Lowest softmax probability in the bin.")
    high: float = Field(description="Highest softmax probability in the bin.")
    n: int = Field(description="Predictions in the bin.")
    confidence: float = Field(description="Mean softmax probability of the predicted choice.")
    accuracy: float = Field(description="Share of these predictions that are right.")


class Similarity(Model):
    """The model beside the similarity baseline, on the same rows."""

    name: str = Field(MOST_SIMILAR, description="Its name among the baselines.")
    accuracy: Estimate = Field(
        description="Share of rows whose most similar choice is right. Encoders have no training "
        "on questions, and know no relations."
    )
    difference: Estimate = Field(
        description="Accuracy of the model minus this one, in percentage points; the interval is "
        "that of the paired difference."
    )
    near_difference: Estimate | None = Field(
        None,
        description="That difference on the rows with near distractors; null where rows do not "
        "have both near and random ones.",
    )
    differences: dict[str, Estimate] = Field(
        default_factory=dict,
        description="The difference on all rows by normalization, where there are several.",
    )
    encoder: EncoderDigest | None = Field(
        None,
        description="The encoder of --similarity; null: the static one that comes with kbprobe. "
        "The one that is right more often is compared with.",
    )


class Metrics(Model):
    """Every number computed from the predictions."""

    items: int = Field(description="Rows evaluated.")
    scored: int = Field(
        description="Of these, not set aside. All numbers below are of them or, where more than a "
        "fifth of the rows ask about taxa, persons, places and other names, of the rows about "
        "common words alone: accuracy.n says of how many."
    )
    set_aside: dict[str, int] = Field(description="Items that were not scored, by reason.")
    normalization: Normalization = Field(description="The one that predictions were made with.")
    accuracy: Estimate = Field(description="Share of these rows answered right.")
    near_accuracy: Estimate | None = Field(
        None,
        description="Accuracy on the rows with near distractors: of any family but random. Null "
        "where rows do not have both kinds.",
    )
    random_accuracy: Estimate | None = Field(
        None, description="Accuracy on the rows with random distractors; null as above."
    )
    accuracies: dict[str, Estimate] = Field(
        description="Accuracy by normalization: acc (sum), acc_norm (per character), acc_bytes, "
        "acc_tokens. Only acc where scores are not log-likelihoods of texts."
    )
    chance: float = Field(description="Mean of one over the number of choices.")
    clusters: int = Field(description="Clusters with a scored row.")
    strict_accuracy: Estimate | None = Field(
        description="Share of the wholly scored clusters with every question right; null where "
        "rows have no cluster, or none is wholly scored."
    )
    strict_difference: Estimate | None = Field(
        description="Strict cluster accuracy minus accuracy, in percentage points."
    )
    strict_chance: float | None = Field(
        None,
        description="Strict cluster accuracy to expect from guessing: mean over the wholly scored "
        "clusters of the product of one over the number of choices; null where there is no strict "
        "accuracy.",
    )
    cluster_sizes: list[ClusterSize] = Field(description="Strict accuracy by cluster size.")
    table: list[Stratum] = Field(description="Accuracy by hops x distractor family x distance k'.")
    by_template: list[Group] = Field(description="Accuracy by wording.")
    by_pos: list[Group] = Field(description="Accuracy by part of speech.")
    by_content: list[Group] = Field(
        description="Accuracy on all scored rows, by what they ask about: common (words), taxon, "
        "person, place, name (any other). Empty where rows do not say."
    )
    ties: int = Field(description="Items whose top two scores lie within the tie tolerance.")
    ties_wrong: float = Field(description="Accuracy if every tie were counted as wrong.")
    tie_tolerance: float = Field(description="In units of the score compared.")
    calibration: list[Bin] = Field(
        description="How often predictions of a confidence are right, by the softmax of the scores "
        "compared."
    )
    calibration_error: float = Field(
        description="Expected calibration error: mean of |confidence - accuracy| over these bins, "
        "weighted by n. Not comparable between runs of different normalization: scores divided by "
        "length make flatter shares."
    )
    brier: float = Field(
        description="Brier score: mean over the rows of the sum over the choices of (probability - "
        "1 for the gold, 0 for others) squared, by the same softmax; 0 is best, 2 worst.",
    )
    baselines: dict[str, float] = Field(
        description="Accuracy of each baseline of the probe's audit, all families together, and "
        "of those recorded with the probe; that of similarity is on the rows evaluated. Empty "
        "where there are none."
    )
    baseline_intervals: dict[str, tuple[float, float]] = Field(
        default_factory=dict,
        description="The 95% interval of each of these, as the probe's manifest records it.",
    )
    similarity: Similarity | None = Field(
        None,
        description="What similarity alone reaches on the same rows, and the difference; null "
        "where all rows choose among the same few answers, or no choice is more similar than "
        "another.",
    )
    oracles: dict[str, dict[str, float]] = Field(
        default_factory=dict,
        description="Share of the audit's rows that each oracle of partial knowledge gets right, "
        "by what it knows: of all rows, of near ones, and by family. Empty where the probe's audit "
        "has none.",
    )

    @property
    def ranked_baselines(self) -> list[tuple[str, float]]:
        """The baselines, the strongest first; ties are in the order of their names."""
        return sorted(self.baselines.items(), key=lambda entry: (-entry[1], entry[0]))

    @property
    def strongest_baseline(self) -> tuple[str, float] | None:
        """The strongest baseline; None where there is none."""
        return next(iter(self.ranked_baselines), None)

    @property
    def strongest_shortcut(self) -> tuple[str, float] | None:
        """The strongest baseline other than the most similar choice; None where there is none.

        Similarity by an encoder that was recorded with the probe, and not measured on the same
        rows, is one of these.
        """
        own = {MOST_SIMILAR, self.similarity.name if self.similarity else MOST_SIMILAR}
        return next((entry for entry in self.ranked_baselines if entry[0] not in own), None)


class ProbeInfo(Model):
    """The probe that was evaluated."""

    name: str = Field(description="The probe's name.")
    source: str = Field(description="Folder, file or Hub id, as it was given.")
    split: str = Field(description="The split evaluated.")
    rows: int = Field(description="Rows evaluated: of the split, or as many as --limit kept.")
    clusters: int = Field(description="Clusters that these rows are of.")
    split_rows: int | None = Field(
        None, description="Rows that --limit drew from; null where all rows were evaluated."
    )
    split_clusters: int | None = Field(
        None, description="Clusters that --limit drew from; null where all rows were evaluated."
    )
    fingerprint: str = Field(description="sha256 of the rows evaluated.")
    request: dict[str, Any] | None = Field(description="From the probe's manifest: how to rebuild.")
    kbprobe_version: str | None = Field(description="The version that built the probe.")
    matched_on: list[EncoderDigest] = Field(
        [],
        description="Encoders by whose similarity the choices were put together: they do badly "
        "on the rows by construction. Empty: the choices are not matched.",
    )
    annotator_kind: str | None = Field(
        None,
        description="Who gave the answers: human, or language model; null where the knowledge base "
        "states them.",
    )

    def built_with(self, option: str) -> str:
        """Return an option of the build as text; empty where it is not known."""
        return str((self.request or {}).get("options", {}).get(option, ""))

    @property
    def wording(self) -> str:
        """The wording that all questions have, or that they have several, in words."""
        if self.request is None:
            return ""
        named = self.built_with("wording")
        return f"wording {named}" if named else "all wordings"


class AdapterInfo(Model):
    """An adapter, and the base model that it was merged into."""

    sha256: str = Field(description="Hash of the adapter's weights and configuration.")
    base: str = Field(description="Folder or Hub id of the base model, as the adapter names it.")
    base_revision: str | None = Field(description="Resolved commit of a base model on the Hub.")
    base_weights_sha256: str = Field(description="Hash of its weights and configuration.")


class ModelInfo(Model):
    """The model that was evaluated."""

    id: str = Field(
        description="Folder, file, Hub id or name at an endpoint, as given; of a loaded model, "
        "where it was loaded from, and that it was in memory."
    )
    revision: str | None = Field(description="Resolved commit of a Hub checkpoint.")
    architecture: str = Field(description="The class that wrote the weights.")
    parameters: int = Field(description="How many parameters it has; 0: not known.")
    weights_sha256: str = Field(
        description="Hash of weights and configuration; of a model behind an endpoint, of its "
        "log-probabilities of a fixed text."
    )
    tokenizer_sha256: str = Field(description="Hash of the tokenizer's files.")
    dtype: str = Field(description="Type that the weights were run in.")
    device: str = Field(description="Type of device that it ran on, or endpoint.")
    random_weights: int | None = Field(
        None,
        description="Seed that its weights were drawn with, instead of the checkpoint's own; null "
        "where they were not.",
    )
    adapter: AdapterInfo | None = Field(
        None, description="The adapter that it is, with its base model; null where it is none."
    )
    finetuning: dict[str, Any] | None = Field(
        description="How it was fine-tuned first; null where it was not."
    )


class Scoring(Model):
    """How it was scored."""

    scorer: str = Field(
        description="masked_lm, causal_lm, seq2seq_lm, multiple_choice, classifier, ..."
    )
    version: int = Field(description="Version of the scorer; raised whenever scores may change.")
    score: str = Field(description="What a score is: logit, or log-likelihood in nats, ...")
    options: dict[str, Any] = Field(description="Options that scores may depend on.")
    notes: dict[str, int] = Field(description="Counts worth knowing, such as prompts cut to fit.")
    key: str = Field(description="Key of the cached scores: hash of all that they depend on.")


class Timings(Model):
    """Where the time went, in seconds, and what was done in it."""

    load: float = Field(description="Loading weights and tokenizer.")
    train: float = Field(description="Fine-tuning, and loading what it made.")
    encode: float = Field(description="Tokenizing.")
    score: float = Field(description="Running the model, and writing scores.")
    total: float = Field(description="All of it, metrics included.")
    sequences: int = Field(description="Token sequences that all scores come from.")
    tokens: int = Field(description="Tokens of all sequences, padding left out.")
    scored_sequences: int = Field(description="Of these, run now and not found in the cache.")
    rows_per_second: float | None = Field(
        description="Items scored now over seconds of encoding and scoring; null where all were "
        "cached."
    )


_Block = TypeVar("_Block", bound=Model)


class Results(Model, Sealed):
    """All of ``results.json``."""

    schema_version: str = Field(SCHEMA_VERSION, description="Version of this schema.")
    probe: ProbeInfo = Field(description="What was evaluated on.")
    model: ModelInfo = Field(description="What was evaluated.")
    scoring: Scoring = Field(description="How it was scored.")
    metrics: Metrics = Field(description="Every number computed from the predictions.")
    seed: int = Field(description="Of everything drawn: limit, shots, fine-tuning, intervals.")
    timings: Timings = Field(description="Where the time went.")
    versions: dict[str, str] = Field(description="kbprobe, Python and the packages that matter.")
    analyses: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Numbers that apply to some probes only, by the analysis's name (see below).",
    )

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells it from other results: the rows, the weights, how they were scored."""
        probe, model = self.probe, self.model
        return (
            *(probe.name, probe.split, probe.fingerprint),
            *(model.id, model.weights_sha256, model.tokenizer_sha256),
            *(self.scoring.key, self.metrics.normalization, self.seed),
        )

    def analysis(self, name: str, block: type[_Block]) -> _Block | None:
        """Return the block of an analysis, which has this schema; None if there is none."""
        held = self.analyses.get(name)
        return None if held is None else block.model_validate(held)

    def with_analysis(self, name: str, block: Model) -> Results:
        """Return the results with an analysis's block added."""
        held = {**self.analyses, name: block.model_dump(mode="json")}
        return self.model_copy(update={"analyses": held})


class AllResults(Model):
    """The results of several runs."""

    results: list[Results]


def remarks(results: Results) -> list[str]:
    """Return the notes of a run in words: ``3 rows whose text was cut to fit the model``."""
    notes = results.scoring.notes
    return [f"{count:,} {NOTES.get(name, name)}" for name, count in sorted(notes.items())]


def predictions_schema() -> pa.Schema:
    """Return the columns of ``predictions.parquet``: one row per item, in the probe's order.

    ``scores`` are those of the scorer, ``tokens`` the number of tokens that each sums over;
    ``prediction`` is the index of the best score after normalization (the first of equals),
    ``margin`` its lead over the runner-up, ``probability`` its softmax share among the choices,
    and ``tie`` whether the margin is within numerical noise. An item that was set aside has empty
    lists, a null prediction and the reason. :data:`FURTHER_COLUMNS` and the columns of analyses
    (:mod:`evaluation.results.analyses`) may follow.
    """
    import pyarrow as pa

    return pa.schema(
        [
            ("id", pa.string()),
            ("question", pa.string()),
            ("choices", pa.list_(pa.string())),
            ("answer", pa.int32()),
            ("setup", pa.string()),
            ("scores", pa.list_(pa.float32())),
            ("tokens", pa.list_(pa.int32())),
            ("prediction", pa.int32()),
            ("correct", pa.bool_()),
            ("margin", pa.float32()),
            ("probability", pa.float32()),
            ("tie", pa.bool_()),
            ("set_aside", pa.string()),
            ("cluster", pa.string()),
            ("concept", pa.string()),
            ("hops", pa.int32()),
            ("distractor_family", pa.string()),
            ("distractor_hops", pa.int32()),
            ("pos", pa.string()),
            ("template", pa.string()),
            ("arguments", arguments_type()),
        ]
    )


_UNIQUE = (*UNIQUE, "question", "scores", "margin", "probability")
"""Columns whose values are rarely repeated."""

FURTHER_COLUMNS = {
    "premise": "string",
    "content": "string",
    "fold": "int32",
    "choice_hops": "list<item: int32>",
    "choice_families": "list<item: string>",
    "surface_form": "string",
}
"""Columns that follow if any row has a value: Arrow types by name."""


def write_results(results: Results, folder: Path) -> None:
    """Write ``results.json`` into a folder atomically, after its predictions.

    The file contains checksums of itself and of the predictions in the folder.
    """
    write_sealed(folder / RESULTS, results.model_dump_json(indent=2), [PREDICTIONS])


def write_predictions(predictions: pa.Table, folder: Path) -> None:
    """Write ``predictions.parquet`` atomically: the same bytes for the same rows."""
    with replacing_file(folder / PREDICTIONS) as path:
        write_parquet(predictions, path, unique=_UNIQUE)


def read_results(folder: Path) -> Results:
    """Read a folder's ``results.json``, and verify that neither it nor the predictions changed.

    Raises:
        UsageError: the folder contains no results, or damaged or edited ones, or ones of another
            schema version.
    """
    path = folder / RESULTS
    try:
        held = read_sealed(path, AGAIN, SCHEMA_VERSION)
    except FileNotFoundError:
        raise UsageError(
            f"{folder} holds no results (no {RESULTS}). Make them with: "
            "evaluate-probe PROBE --model MODEL -o DIR"
        ) from None
    return validated(held, Results, str(path), AGAIN)


def results_below(folder: Path) -> Iterator[Path]:
    """Yield the folders with results in or below a folder, in the order of their paths.

    Hidden folders are skipped, and those on the single facts that other results rest on.
    """
    places = {path.parent for path in folder.rglob(RESULTS)}
    for place in sorted(places, key=lambda path: path.relative_to(folder).parts):
        parts = place.relative_to(folder).parts
        of_facts = place.name == FACTS and place.parent in places
        if not of_facts and not any(part.startswith(".") for part in parts):
            yield place


def read_predictions(folder: Path) -> pa.Table:
    """Read a folder's ``predictions.parquet``: its columns, as typed by the schema.

    Raises:
        UsageError: there are none, or they are damaged, or a column is missing, has another type
            or unexpected nulls; the message names it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / PREDICTIONS
    schema = predictions_schema()
    try:
        table = pq.ParquetFile(regular_path(path)).read()
    except FileNotFoundError:
        raise UsageError(f"{folder} holds no {PREDICTIONS}. {AGAIN}") from None
    except (OSError, ValueError, TypeError, KeyError, pa.ArrowException) as error:
        first = (str(error).splitlines() or ["damaged"])[0]
        raise UsageError(f"{path} cannot be read: {first}. {AGAIN}") from error
    known = [pa.field(name, arrow_type(kind)) for name, kind in FURTHER_COLUMNS.items()]
    for field in (*schema, *(field for field in known if field.name in table.schema.names)):
        if table.schema.names.count(field.name) != 1:
            problem = "lacks" if field.name not in table.schema.names else "repeats"
            raise UsageError(f"{path} {problem} the column {field.name!r}. {AGAIN}")
        found = table.schema.field(field.name).type
        # Parquet names the values of lists differently.
        if str(found).replace("element: ", "item: ") != str(field.type):
            raise UsageError(
                f"{path}: the column {field.name!r} holds {found} instead of {field.type}. {AGAIN}"
            )
    further = [field for field in table.schema if field.name not in schema.names]
    schema = pa.schema([*schema, *(field.remove_metadata() for field in further)])
    try:
        table = table.select(schema.names).cast(schema)
        table.validate(full=True)
    except (ValueError, KeyError, pa.ArrowException) as error:
        first = (str(error).splitlines() or ["damaged"])[0]
        raise UsageError(f"{path} cannot be read: {first}. {AGAIN}") from error
    return table
