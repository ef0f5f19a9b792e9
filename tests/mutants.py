"""Faults that the suite must catch: `make test-mutants`.

Each mutant is one fault of the kind that breaks differential privacy and looks harmless (semantics §8.6, point
6), or leaves out what a party of an LKC run tests for itself (docs/security.md, Who can check a requirement). The
script copies the sources, once for each processor, applies one mutant at a time to a copy and runs the tests that are
to catch it: they must fail. A mutant that survives, or whose text is not in the sources any more, is an error. One
whose tests need a program that is not here is not run, and counted by itself: nothing is known of it.

    python -m tests.mutants [NAME ...]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.support.databases import binaries

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (
    "anonymize",
    "coordinator",
    "crypto",
    "jobs",
    "jointcut",
    "party",
    "protos",
    "tests",
    "pyproject.toml",
)
_NOT_COPIED = shutil.ignore_patterns("__pycache__", ".pytest_cache", ".hypothesis")


@dataclass(frozen=True)
class Mutant:
    """A fault: in ``file``, the one occurrence of ``old`` becomes ``new``; ``tests`` must notice.

    needs:  a program of :data:`PRESENT` without which the tests are skipped; empty: none.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    needs: str = ""

    def mutated(self, source: str) -> str:
        if source.count(self.old) != 1:
            raise ValueError(f"{self.name}: the text occurs {source.count(self.old)} times in {self.file}")
        return source.replace(self.old, self.new)


PRESENT: Mapping[str, Callable[[], bool]] = {
    "java": lambda: shutil.which("java") is not None,
    "initdb": lambda: binaries() is not None,
}
"""Whether a program is here, as the tests that need it find out."""

_FAULTS = "tests/attacks/test_faults.py"
_QUEUE = "tests/party/test_queue.py"
_LINKS = "tests/jobs/test_links.py"
_FORGED = "tests/attacks/test_forged_releases.py"
_SCORES = ("tests/anonymize/scores/test_tdr.py",)
_EXACT = ("tests/anonymize/dp/test_diffgen_exact.py",)
_SAMPLERS = ("tests/anonymize/dp/test_noise.py",)
_CIRCUITS = ("tests/anonymize/joint/dp/test_noise.py",)
_APPROVALS = ("tests/party/owner/test_approvals.py",)
_LOOKED_UP = ("tests/anonymize/joint/lkc/test_looked_up.py",)
_LOOKUP = ("tests/crypto/test_lookup.py",)
_POINTS = ("tests/crypto/test_point_function.py",)
_TABLES = ("tests/crypto/circuits/test_noise.py",)
_STRUCTURE = ("tests/anonymize/dp/test_diffgen.py",)
_RATES = ("tests/anonymize/joint/dp/test_rates.py",)
_LEDGER = ("tests/jobs/test_ledger.py", "tests/jobs/dp/test_charge.py")
_GUESS = ("tests/anonymize/joint/dp/test_guess.py",)
_MIXED = ("tests/jobs/lkc/test_mixed.py", "tests/jobs/lkc/test_release.py", "tests/party/test_costs.py")
_MIX = ("tests/crypto/test_mixing.py",)
_COMPILED = ("tests/crypto/compiled/test_gates.py",)
_WIDE = ("tests/crypto/ot/test_wide.py",)
_TRANSFERS = ("tests/crypto/ot/test_consistency.py",)
_TREES = ("tests/crypto/ot/test_trees.py",)
_CODE = ("tests/crypto/ot/test_code.py",)
_OKVS = ("tests/crypto/test_okvs.py",)
_OPRF = ("tests/crypto/test_oprf.py",)
_PSI = ("tests/crypto/test_intersection.py",)
_ZERO_SHARES = ("tests/crypto/test_zero_shares.py",)
_AUDIT = ("tests/party/owner/test_audit.py",)
_INVALID = ("tests/attacks/test_always_valid.py",)
_KD = ("tests/anonymize/joint/kd/test_sealed.py",)
_KD_JOBS = ("tests/jobs/lkc/test_kd.py",)
_KD_BLOCKS = ("tests/anonymize/joint/kd/test_blocks.py",)
_KD_HOSTILE = ("tests/anonymize/joint/kd/test_hostile.py",)
_LISTS = "tests/jobs/lkc/test_requirements.py"
_VERTICAL = "tests/anonymize/joint/lkc/test_confidence.py"
_RULED = "tests/anonymize/criteria/test_ruled_out.py"
_BLOCKS = "tests/jobs/lkc/test_blocks.py"
_OWNER = "tests/attacks/test_vertical_owner.py"
_OWN = ("tests/anonymize/joint/lkc/test_own_groups.py",)
_CHILD = ("tests/anonymize/test_one_by_one.py",)
_CUBES = (
    "tests/anonymize/lkc/test_cubes.py::test_one_violation_is_found_by_either",
    "tests/anonymize/lkc/test_cubes.py::test_what_was_taken_out_of_a_node_does_not_count",
    "tests/anonymize/lkc/test_cubes.py::test_a_run_is_the_same_whenever_cubes_take_over",
)
_NAMING = ("tests/anonymize/test_naming.py",)
_EXCLUSION = ("tests/anonymize/trajectory/test_exclusion.py",)
_KEPT = ("tests/anonymize/joint/trajectory/test_kept.py",)
_JOINT_SEQUENCES = tuple(f"tests/anonymize/joint/trajectory/test_{name}.py" for name in ("hostile", "sealed"))
_PEOPLE = ("tests/jobs/lkc/test_unit.py",)
_PATHS = (
    "tests/anonymize/trajectory/test_sweep.py::test_the_thesis_example_for_two_known",
    "tests/anonymize/trajectory/test_sweep.py::test_the_thesis_example_for_three_known",
    "tests/anonymize/trajectory/test_sweep.py::test_ties_go_by_what_is_public",
)
_PATHS_CHECKED = (
    "tests/anonymize/trajectory/test_verification.py::test_the_longest_sequences_are_looked_at",
    "tests/anonymize/trajectory/test_verification.py::test_exactly_C_and_one_more",
)
_READINGS = "tests/jobs/sequences/test_reading.py"
_RELEASES = "tests/jobs/sequences/test_alone.py"
_FIGURES = ("tests/jobs/sequences/test_figures.py::test_a_figure_that_cannot_be_is_named",)
_PATHS_EVERYWHERE = ("tests/anonymize/trajectory/test_everywhere.py::test_the_scores_of_the_thesis",)
_PUBLISHED = (f"{_GUESS[0]}::test_each_partys_own_noise_subtracted_from_a_published_release",)

_SYNTHETIC_SAME = (
    "tests/anonymize/joint/synthetic/test_holder.py::test_with_the_same_coins_any_number_of_holders_opens_the_same",
)
_SYNTHETIC_RATES = (
    "tests/anonymize/joint/synthetic/test_holder.py::test_noise_is_drawn_at_the_rates_that_were_asked_for",
)
_SYNTHETIC_HOSTILE = (
    "tests/anonymize/joint/synthetic/test_holder.py::test_hostile_messages_name_the_culprit",
)
_SYNTHETIC_IMPOSSIBLE = (
    "tests/anonymize/joint/synthetic/test_holder.py::test_of_a_count_that_cannot_be_all_others_are_suspects",
)
_SYNTHETIC = ("tests/anonymize/synthetic/test_loop.py",)
_KD_BOXES = ("tests/anonymize/kd/test_release.py::test_what_cuts_leave",)
_LOSS = (
    "tests/anonymize/lkc/test_loss_check.py::test_what_is_no_cut_is_refused",
    "tests/anonymize/lkc/test_loss_check.py::test_steps_that_no_run_makes_are_refused",
)
_REPORTS = ("tests/jobs/lkc/test_checked.py::test_a_report_that_says_otherwise_is_refused_by_key",)
_ACCOUNTS = ("tests/party/test_delivery.py::test_a_run_that_fails_looks_at_no_own_records",)

MUTANTS = (
    Mutant(
        "a folder that cannot be listed is left out of a table",
        "jobs/data/sql/matching.py",
        "        raise _refused(folder, os.strerror(error.errno or errno.EIO)) from error\n",
        "        return []\n",
        ("tests/jobs/data/sql/test_duck_tables.py::test_a_folder_that_cannot_be_listed_is_refused",),
    ),
    Mutant(
        "runs that were approved are not counted down",
        "party/owner/approvals.py",
        "left = approved.runs - 1",
        "left = approved.runs",
        _APPROVALS,
    ),
    Mutant(
        "decisions are not in the audit",
        "party/owner/approvals.py",
        "            if line is not None:\n",
        "            if line is None:\n",
        _APPROVALS,
    ),
    Mutant(
        "an approval holds whatever certificate changed",
        "party/owner/approvals.py",
        "if early or self.binding != binding.encoded else",
        "if early else",
        _APPROVALS,
    ),
    Mutant(
        "what was never shown can be approved",
        "party/owner/approvals.py",
        "AND revision = ? AND shown = coalesce(?, shown)",
        "AND revision = ? AND ? IS NOT 0",
        _APPROVALS,
    ),
    Mutant(
        "an approval whose date is over comes back with the clock",
        "party/owner/approvals.py",
        "WHERE state = 'approved' AND until < ?",
        "WHERE 0 AND until < ?",
        _APPROVALS,
    ),
    Mutant(
        "a run begins without a look at its approval",
        "party/approval.py",
        "_approvals(session).begin, _binding(session), session.key.run, session.me",
        "_approvals(session).standing, _binding(session)",
        ("tests/end_to_end/test_approval.py::test_an_approval_taken_back_after_admission_stops_the_start",),
    ),
    Mutant(
        "what an Arrow file says of its texts is trusted",
        "jobs/data/arrow_file.py",
        "whole.validate(full=True)",
        "whole.validate()",
        ("tests/jobs/data/test_arrow_file.py::test_a_text_that_is_no_utf_8_is_refused",),
    ),
    Mutant(
        "an address may have what is left of a password in its host",
        "jobs/data/postgres_address.py",
        r"""_UNSAFE = re.compile(r"[@\s'\"\\?#]")""",
        r"""_UNSAFE = re.compile(r"[\s'\"\\?#]")""",
        ("tests/jobs/data/test_postgres_address.py",),
    ),
    Mutant(
        "a table leaves out the other child",
        "anonymize/joint/lkc/scores/looked_up.py",
        "            table[: total + 1] += values[total::-1]",
        "            pass",
        _LOOKED_UP,
    ),
    Mutant(
        "large counts are looked up modulo the largest table",
        "anonymize/joint/lkc/scores/looked_up.py",
        "and most.bit_length() <= MOST_BITS",
        "and most >= 0",
        _LOOKED_UP,
    ),
    Mutant(
        "an index is opened as it is",
        "crypto/lookup.py",
        "self._opened(shares - keys.points, bits, questions)",
        "self._opened(shares, bits, questions)",
        _LOOKUP,
    ),
    Mutant(
        "unit vectors are used again",
        "crypto/lookup.py",
        "stock.held = [joined[count:]]",
        "stock.held = [joined]",
        _LOOKUP,
    ),
    Mutant(
        "other tables than the peer's are looked up in",
        "crypto/lookup.py",
        "if payload[:DIGEST_BYTES] != digest:",
        "if False:",
        _LOOKUP,
    ),
    Mutant(
        "points are known to their parties",
        "crypto/point_function.py",
        "return np.unpackbits(octets, count=count",
        "return 0 * np.unpackbits(octets, count=count",
        _POINTS,
    ),
    Mutant(
        "a correction shows the bit of the point",
        "crypto/point_function.py",
        "own = np.stack([trees.sum() ^ shares[bit] for trees, bit in growing])",
        "own = np.stack([0 * trees.sum() ^ shares[bit] for trees, bit in growing])",
        _POINTS,
    ),
    Mutant(
        "both trees of a point hash under the same tweaks",
        "crypto/point_function.py",
        "for _ in range(2))\n    levels",
        "for forest in [engine.in_force().forest(bytes(16)) for _ in range(2)])\n    levels",
        _POINTS,
    ),
    Mutant(
        "every batch of points hashes under one key",
        "crypto/point_function.py",
        'transfers.key(b"nodes")',
        'derive_key(bytes(16), b"nodes")',
        _POINTS,
    ),
    Mutant(
        "the offsets' sum has its lowest bit 0",
        "crypto/ot/extension.py",
        "    choice_bits[0] = 0\n",
        "    choice_bits[0] = 1\n",
        _POINTS,
    ),
    # a synthetic table of several holders
    Mutant(
        "joint-synthetic-half-the-noise",
        "anonymize/joint/synthetic/holder.py",
        "plan = self._plans.laplace(rate, sum(sizes))",
        "plan = self._plans.laplace(2 * rate, sum(sizes))",
        _SYNTHETIC_SAME,
    ),
    Mutant(
        "joint-synthetic-choice-at-twice-the-rate",
        "anonymize/joint/synthetic/holder.py",
        "plan = self._plans.geometric(rate, len(pairs))",
        "plan = self._plans.geometric(2 * rate, len(pairs))",
        _SYNTHETIC_RATES,
    ),
    Mutant(
        "joint-synthetic-noise-for-one-table-of-many",
        "anonymize/joint/synthetic/holder.py",
        "plan = self._plans.laplace(rate, sum(sizes))",
        "plan = self._plans.laplace(rate, sizes[0])",
        (
            "tests/anonymize/joint/synthetic/test_holder.py::test_noise_is_drawn_at_the_rates_that_were_asked_for",
        ),
    ),
    Mutant(
        "joint-synthetic-measures-what-was-not-scored",
        "anonymize/joint/synthetic/holder.py",
        "yield from self._share([m for m in marginals if m not in self._shares], self._width)",
        "yield from self._share(marginals, self._width)",
        (
            "tests/anonymize/joint/synthetic/test_holder.py::test_a_party_outside_the_pair_sends_shares_once_and_nothing_else",
        ),
    ),
    Mutant(
        "joint-synthetic-takes-any-count",
        "anonymize/joint/synthetic/holder.py",
        "if counts.min() < -most or counts.max() > self._tables.most_records + most:",
        "if False:",
        _SYNTHETIC_IMPOSSIBLE,
    ),
    Mutant(
        "joint-synthetic-takes-any-forest",
        "anonymize/joint/synthetic/holder.py",
        "if not is_forest([pair.columns for pair in pairs], chosen):",
        "if False:",
        _SYNTHETIC_HOSTILE,
    ),
    Mutant(
        "joint-synthetic-takes-any-winner",
        "anonymize/joint/synthetic/choice.py",
        'return left[expect_outcome(ranks.get(found["tag"], len(left)), len(left), self._engine.peer)]',
        'return found["tag"]',
        ("tests/anonymize/joint/synthetic/test_choice.py::test_a_winner_that_is_not_left_names_the_peer",),
    ),
    Mutant(
        "joint-synthetic-both-expect",
        "anonymize/joint/synthetic/choice.py",
        "if engine.role is Held.GARBLER:",
        "if True:",
        ("tests/anonymize/joint/synthetic/test_choice.py::test_choices_are_those_of_the_definition",),
    ),
    Mutant(
        "joint-synthetic-penalties-as-rewards",
        "anonymize/joint/synthetic/choice.py",
        "[most - penalty for penalty in self.penalties]",
        "list(self.penalties)",
        ("tests/anonymize/joint/synthetic/test_choice.py::test_choices_are_those_of_the_definition",),
    ),
    Mutant(
        "joint-synthetic-plays-nothing-anew",
        "anonymize/joint/synthetic/choice.py",
        "changed = np.flatnonzero(standing != self._levels[0])",
        "changed = np.flatnonzero(self._levels[0] == _NOBODY)",
        ("tests/anonymize/joint/synthetic/test_choice.py::test_choices_are_those_of_the_definition",),
    ),
    Mutant(
        "joint-synthetic-records-in-no-order-of-classes",
        "anonymize/joint/synthetic/vertical.py",
        "codes = self._own.table.qid[number][self._by_class]",
        "codes = self._own.table.qid[number]",
        _SYNTHETIC_SAME,
    ),
    Mutant(
        "joint-synthetic-delta-of-large-epsilons",
        "anonymize/joint/dp/noise.py",
        "return min(self.most, distance_for(DELTA, self.epsilon)) / self.steps",
        "return self.most / self.steps",
        ("tests/anonymize/joint/synthetic/test_run.py::test_delta_is_computed_from_what_was_drawn",),
    ),
    Mutant(
        "joint-synthetic-charged-after-the-first-table",
        "anonymize/joint/synthetic/run.py",
        "Synthesis(request.schema, request.requirement, holder, observer).run()",
        "Synthesis(request.schema, request.requirement, holder, Observer()).run()",
        (
            "tests/anonymize/joint/synthetic/test_run.py::test_the_charge_is_final_before_anything_but_keys_is_sent",
        ),
    ),
    # jobs of a synthetic table
    Mutant(
        "synthetic-drops-rows-without-a-number",
        "jobs/synthetic/coders.py",
        "missing=values.n_cells)",
        "missing=-1)",
        ("tests/jobs/synthetic/test_coders.py",),
    ),
    Mutant(
        "synthetic-drops-rows-with-a-missing-cell",
        "jobs/synthetic/coders.py",
        "taxonomy_coder(values, drop=False)",
        "taxonomy_coder(values, drop=True)",
        ("tests/jobs/synthetic/test_coders.py",),
    ),
    Mutant(
        "synthetic-takes-any-rows",
        "jobs/synthetic/table.py",
        "    if content != drawn_csv(task, outcome, model):\n",
        "    if len(content) != len(drawn_csv(task, outcome, model)):\n",
        ("tests/jobs/synthetic/test_verify.py::test_tables_that_were_changed",),
    ),
    Mutant(
        "synthetic-draws-for-tables-of-any-size",
        "jobs/synthetic/table.py",
        "    if table.n_rows != model.n_rows:\n",
        "    if False:\n",
        ("tests/jobs/synthetic/test_verify.py::test_nothing_is_drawn_to_compare_a_table_of_another_size",),
    ),
    Mutant(
        "synthetic-holds-its-own-rows-to-no-domain",
        "jobs/synthetic/table.py",
        "    _require_domains(outcome.schema, table)\n",
        "",
        ("tests/jobs/synthetic/test_verify.py::test_what_this_machine_draws_is_held_to_the_domains_too",),
    ),
    Mutant(
        "synthetic-takes-any-bins",
        "jobs/synthetic/marginals.py",
        "    if marginals_csv(outcome) != content:\n",
        "    if False:\n",
        ("tests/jobs/synthetic/test_verify.py::test_marginals_that_were_changed",),
    ),
    Mutant(
        "synthetic-fills-memories",
        "jobs/synthetic/replay.py",
        "if abs(int(found.sum())) > ",
        "if False and abs(int(found.sum())) > ",
        ("tests/jobs/synthetic/test_verify.py::test_nobody_can_make_a_table_that_fills_memories",),
    ),
    Mutant(
        "synthetic-table-of-any-deliverer",
        "jobs/synthetic/files.py",
        "        require_drawn(task, result.outcome, files[SYNTHETIC_TABLE])\n",
        "        pass\n",
        ("tests/jobs/synthetic/test_joint.py::test_another_table_or_other_marginals_are_refused",),
    ),
    Mutant(
        "synthetic-notes-no-noise",
        "jobs/synthetic/report.py",
        "if n_rows < rows_above_noise(m.marginal, m.rate)]",
        "if n_rows < m.marginal.size]",
        ("tests/jobs/synthetic/test_verify.py::test_tables_with_more_noise_than_records_are_noted",),
    ),
    Mutant(
        "dp-believes-a-delta",
        "jobs/dp/result.py",
        "    if encode_result(joint) != encoded:\n",
        "    if len(encode_result(joint)) != len(encoded):\n",
        ("tests/jobs/dp/test_result.py::test_what_does_not_fit_the_job_is_refused",),
    ),
    Mutant(
        "dp-counts-the-plans-of-splits-for-nothing",
        "jobs/dp/replay.py",
        "            self.plans.geometric(rate, points)\n",
        "            pass\n",
        ("tests/jobs/dp/test_result.py::test_what_is_encoded_is_what_is_read",),
    ),
    Mutant(
        "synthetic-believes-a-delta",
        "jobs/synthetic/result.py",
        "        if result.encoded != encoded:\n",
        "        if result.encoded[-8 * len(counts) :] != encoded[-8 * len(counts) :]:\n",
        ("tests/jobs/synthetic/test_joint.py::test_a_result_that_no_run_has_is_malformed",),
    ),
    Mutant(
        "synthetic-counts-a-plan-for-less",
        "jobs/synthetic/replay.py",
        "        self.plans.geometric(rate, len(question.pairs))\n",
        "",
        ("tests/jobs/synthetic/test_joint.py",),
    ),
    Mutant(
        "synthetic-sums-in-any-order",
        "anonymize/synthetic/fit.py",
        "np.cumsum(values, axis=axis).take(-1, axis=axis)",
        "values.sum(axis=axis)",
        ("tests/anonymize/synthetic/test_fit.py",),
    ),
    # a synthetic table
    Mutant(
        "synthetic-numbers-of-any-digits",
        "anonymize/synthetic/requirement.py",
        "    if max(map(abs, grid.units)) > 10**MAX_DIGITS:\n",
        "    if False:\n",
        ("tests/anonymize/synthetic/test_loop.py::test_grids_whose_numbers_doubles_cannot_tell_apart",),
    ),
    Mutant(
        "half-scale-marginals",
        "anonymize/synthetic/single.py",
        "self._noise.laplace(rate, marginal.size)",
        "self._noise.laplace(2 * rate, marginal.size)",
        _SYNTHETIC,
    ),
    Mutant(
        "half-scale-marginals-of-a-step",
        "anonymize/synthetic/loop.py",
        "return self._requirement.of_a_record(epsilon) / n_tables",
        "return 2 * self._requirement.of_a_record(epsilon) / n_tables",
        _SYNTHETIC,
    ),
    Mutant(
        "half-scale-forest",
        "anonymize/synthetic/loop.py",
        "rate = self._rate(spent, 2 * n_edges)",
        "rate = self._rate(spent, n_edges)",
        _SYNTHETIC,
    ),
    Mutant(
        "synthetic-noise-of-a-record-for-a-person",
        "anonymize/dp/accounting.py",
        "return epsilon / self.per_person",
        "return epsilon",
        _SYNTHETIC,
    ),
    Mutant(
        "synthetic-bins-from-the-data",
        "anonymize/synthetic/loop.py",
        "marginals = bin_marginals(self._schema, self._requirement, leaves)",
        "marginals = bin_marginals(self._schema, self._requirement, [\n"
        "            Measured(m.marginal, m.marginal.counts(self._holder._table), m.rate) for m in leaves])",
        _SYNTHETIC,
    ),
    Mutant(
        "synthetic-rows-from-the-data",
        "anonymize/synthetic/loop.py",
        "self._requirement.n_edges(self._schema, n_rows(leaves))",
        "self._requirement.n_edges(self._schema, self._holder._table.n_records)",
        _SYNTHETIC,
    ),
    Mutant(
        "synthetic-expectations-from-the-data",
        "anonymize/synthetic/loop.py",
        "asked = question(bins, self._rate(self.accountant.rest, n_edges))",
        "asked = question([Measured(m.marginal, m.marginal.counts(self._holder._table), m.rate) for m in bins],\n"
        "                         self._rate(self.accountant.rest, n_edges))",
        _SYNTHETIC,
    ),
    Mutant(
        "synthetic-penalties-from-the-data",
        "anonymize/synthetic/loop.py",
        "self._holder.choose(asked, rate, n_edges)",
        "self._holder.choose(Question(asked.pairs, asked.expected,\n"
        "            [int((p.counts(self._holder._table) > 0).sum()) for p in asked.pairs]), rate, n_edges)",
        _SYNTHETIC,
    ),
    Mutant(
        "reused-coins-of-marginals",
        "anonymize/synthetic/single.py",
        "drawn = np.array(self._noise.laplace(rate, marginal.size), dtype=np.int64)",
        "drawn = np.array(self._noise.laplace(rate, marginal.n_classes) * (marginal.size // marginal.n_classes))",
        _SYNTHETIC,
    ),
    Mutant(
        "reused-coins-of-pairs",
        "anonymize/synthetic/choice.py",
        "drawn = noise.geometric(rate, len(scores))",
        "drawn = noise.geometric(rate, 1) * len(scores)",
        ("tests/anonymize/synthetic/test_choice.py::test_the_program_takes_the_best_that_close_no_cycle",),
    ),
    Mutant(
        "a-pair-that-closes-a-cycle",
        "anonymize/synthetic/marginals.py",
        "(number for number in best_first if forest.add(pairs[number]))",
        "best_first",
        ("tests/anonymize/synthetic/test_choice.py::test_the_program_takes_the_best_that_close_no_cycle",),
    ),
    # children that leave one by one
    Mutant(
        "answers-any-number-of-tests",
        "anonymize/joint/lkc/validity.py",
        "if self._answered[number, node.first] == len(ways):",
        "if self._answered[number, node.first] > 9 * len(ways):",
        _CHILD,
    ),
    Mutant(
        "counts-what-was-taken-out",
        "anonymize/cut.py",
        "child = np.full(node.last - node.first, -1, dtype=np.int64)",
        "child = np.zeros(node.last - node.first, dtype=np.int64)",
        _CHILD,
    ),
    Mutant(
        "settles-a-cube-that-one-entry-allows",
        "anonymize/lkc/cubes.py",
        "settled = all(judge",
        "settled = any(judge",
        _CUBES,
    ),
    Mutant(
        "counts-a-rest-with-what-was-taken-out",
        "anonymize/lkc/cubes.py",
        "if not child.without",
        "if child",
        _CUBES,
    ),
    Mutant(
        "looks-at-the-first-columns-only",
        "anonymize/lkc/cubes.py",
        "return combinations(telling, min(n_others, len(telling)))",
        "return combinations(telling[:3], min(n_others, len(telling[:3])))",
        _CUBES,
    ),
    Mutant(
        "calls-a-node-by-one-of-several-values",
        "anonymize/naming.py",
        "if len(occupied) == 1 else None",
        "if len(occupied) >= 1 else None",
        _NAMING,
    ),
    Mutant(
        "believes-of-its-own-records-what-others-say",
        "anonymize/joint/messages.py",
        "if told.any() and (told.sum() > 1 or sizes[told == 0].any()):",
        "if told.sum() > 1:",
        _NAMING,
    ),
    Mutant(
        "takes-any-counts-for-those-of-children",
        "anonymize/joint/lkc/led.py",
        "if (of_all < of_us).any() or of_all.sum() != size:",
        "if (of_all < of_us).any():",
        _NAMING,
    ),
    # half scale
    Mutant(
        "half-scale-choice",
        "anonymize/dp/utility.py",
        "return epsilon / (self.sensitivity",
        "return 2 * epsilon / (self.sensitivity",
        _EXACT,
    ),
    Mutant(
        "half-scale-counts",
        "anonymize/dp/diffgen.py",
        "np.array(self._noise.laplace(rate, len(counts)))",
        "np.array(self._noise.laplace(2 * rate, len(counts)))",
        _EXACT,
    ),
    Mutant(
        "half-scale-sampler",
        "anonymize/dp/noise.py",
        "return (u + t * v) // s",
        "return (u + t * v) // (2 * s)",
        _SAMPLERS,
    ),
    Mutant(
        "half-scale-joint-choice",
        "anonymize/joint/dp/horizontal.py",
        "plan = self._plans.geometric(rate, len(places))",
        "plan = self._plans.geometric(2 * rate, len(places))",
        _RATES,
    ),
    Mutant(
        "half-scale-joint-split",
        "anonymize/joint/dp/horizontal.py",
        "plan = self._plans.geometric(rate, points) if points else None",
        "plan = self._plans.geometric(2 * rate, points) if points else None",
        _RATES,
    ),
    Mutant(
        "half-scale-joint-counts",
        "anonymize/joint/dp/vertical.py",
        "plan = self._plans.laplace(rate, n_cells)",
        "plan = self._plans.laplace(2 * rate, n_cells)",
        _RATES,
    ),
    Mutant(
        "half-scale-published-horizontal-counts",
        "anonymize/joint/dp/thesis/horizontal.py",
        "np.array(self._noise.laplace(rate, domain.size))",
        "np.array(self._noise.laplace(2 * rate, domain.size))",
        _RATES,
    ),
    Mutant(
        "half-scale-published-vertical-counts",
        "anonymize/joint/dp/thesis/vertical.py",
        "as_words(self._noise.laplace(rate, len(share)))",
        "as_words(self._noise.laplace(2 * rate, len(share)))",
        _RATES,
    ),
    # R ≤ L
    Mutant(
        "r-at-most-l-in-the-circuit",
        "crypto/circuits/selection.py",
        "below = [less(b, r, bound) for bound in sums]",
        "below = [less(b, bound, r) ^ 1 for bound in sums]",
        ("tests/anonymize/joint/dp/thesis/test_thesis.py::test_the_law_of_a_joint_choice",),
    ),
    Mutant(
        "r-at-most-l-alone",
        "anonymize/joint/dp/thesis/weights.py",
        "        if r < 0:\n",
        "        if r <= 0:\n",
        ("tests/anonymize/joint/dp/thesis/test_weights.py",),
    ),
    # empty cells
    Mutant(
        "dropped-empty-cells",
        "anonymize/dp/diffgen.py",
        "domain.table(counts + np.array(self._noise.laplace(rate, len(counts))))",
        "domain.listed({int(c): int(counts[c]) + self._noise.laplace(rate, 1)[0] "
        "for c in np.flatnonzero(counts)}, 0)",
        _STRUCTURE,
    ),
    Mutant(
        "no-release-of-an-empty-table",
        "anonymize/dp/diffgen.py",
        "np.array(c.value_of_sets, dtype=np.int64)",
        "np.array(c.value_of_sets)",
        _STRUCTURE,
    ),
    # min and max from the data
    Mutant(
        "domain-from-the-data",
        "anonymize/dp/diffgen.py",
        "        return self._counts[place.column][place.node.first : place.node.last]",
        "        found = self._counts[place.column][place.node.first : place.node.last]\n"
        "        return found[: max(2, len(found) - int(found.any(axis=1)[::-1].argmax()))]",
        _EXACT,
    ),
    # unequal thresholds
    Mutant(
        "lower-threshold-for-occupied-cells",
        "anonymize/dp/sparse.py",
        "if count + z >= test.threshold}",
        "if count + z >= 1}",
        ("tests/anonymize/dp/test_sparse.py",),
    ),
    # clamped counts
    Mutant(
        "clamped-counts",
        "anonymize/dp/noisy_table.py",
        "return NoisyTable(self._release(labels, positions), counts, self.size)",
        "return NoisyTable(self._release(labels, positions), np.maximum(counts, 0), self.size)",
        _STRUCTURE,
    ),
    Mutant(
        "clamped-joint-counts",
        "anonymize/joint/dp/noise.py",
        "return opened - ((opened >> (bits - 1)) << bits)",
        "return np.maximum(opened - ((opened >> (bits - 1)) << bits), 0)",
        _CIRCUITS,
    ),
    # reused coins
    Mutant(
        "one-draw-for-all",
        "anonymize/dp/noise.py",
        "return [discrete_laplace(rate, self.coins) for _ in range(count)]",
        "return [discrete_laplace(rate, self.coins)] * count",
        _SAMPLERS,
    ),
    Mutant(
        "one-coin-for-all-tables",
        "crypto/circuits/noise.py",
        "drawn(b, table, random[i * c : (i + 1) * c])",
        "drawn(b, table, random[:c])",
        _CIRCUITS,
    ),
    Mutant(
        "columns-without-their-aliases",
        "crypto/circuits/noise.py",
        "table.stays, len(rest))) ^ 1",
        "table.stays, len(rest))) & 0",
        _TABLES,
    ),
    Mutant(
        "noise-that-is-never-negative",
        "crypto/circuits/noise.py",
        "return [*(b.xor(digit, sign) for digit in digits), sign]",
        "return [*digits, 0]",
        _TABLES,
    ),
    Mutant(
        "coins-of-one-side-only",
        "crypto/two_party.py",
        "rows.append(self._coins(group.bits, n) if coins else run.bits(group.name, chunk))",
        "rows.append(0 * self._coins(group.bits, n) if coins else run.bits(group.name, chunk))",
        _GUESS,
    ),
    Mutant(
        "noise-of-one-party-only",
        "anonymize/joint/dp/horizontal.py",
        "        if share is not None:\n            share = share + as_words",
        "        if share is not None and self._pair.roster.leads:\n            share = share + as_words",
        _GUESS,
    ),
    Mutant(
        "noise-of-the-key-holder-only",
        "anonymize/joint/dp/thesis/vertical.py",
        "own = share + as_words(self._noise.laplace(rate, len(share)))",
        "own = share + as_words(self._noise.laplace(rate, len(share))) * isinstance(key, PrivateKey)",
        _PUBLISHED,
    ),
    Mutant(
        "noise-of-the-leader-only",
        "anonymize/joint/dp/thesis/horizontal.py",
        "np.array(self._noise.laplace(rate, domain.size))",
        "np.array(self._noise.laplace(rate, domain.size)) * (not isinstance(self._weighing._key, PrivateKey))",
        _PUBLISHED,
    ),
    # the account
    Mutant(
        "overdraft",
        "anonymize/dp/accounting.py",
        "if epsilon <= 0 or epsilon > self.rest:",
        "if epsilon <= 0:",
        ("tests/anonymize/dp/test_accounting.py",),
    ),
    Mutant(
        "uncharged-split-points",
        "anonymize/dp/diffgen.py",
        'self.accountant.charge(f"split points of {name}", self._epsilon, self._round)',
        "pass",
        _STRUCTURE,
    ),
    Mutant(
        "two-sided-sensitivity-forgotten",
        "anonymize/dp/utility.py",
        "if self.monotone else 2 * self.sensitivity)",
        "if self.monotone else self.sensitivity)",
        ("tests/anonymize/dp/test_utility.py",),
    ),
    Mutant(
        "rounding-of-the-gain-forgotten",
        "anonymize/dp/utility.py",
        "greatest - least + drop",
        "greatest - least",
        ("tests/anonymize/dp/test_utility.py",),
    ),
    Mutant(
        "more-noise-plans-than-delta-allows",
        "anonymize/joint/dp/noise.py",
        "if self.distance + plan.distance > self.steps * self._share():",
        "if False:",
        _CIRCUITS,
    ),
    Mutant(
        "weights-taken-on-trust",
        "anonymize/joint/dp/thesis/weights.py",
        "high**2 <= bound * low**2",
        "True",
        ("tests/anonymize/joint/dp/thesis/test_weights.py",),
    ),
    # the ledger
    Mutant(
        "charged-after-the-shares",
        "anonymize/joint/dp/horizontal.py",
        "observer.opening()  #",
        "pass  #",
        _LEDGER,
    ),
    Mutant(
        "refund-after-the-opening",
        "jobs/ledger.py",
        "WHERE id = ? AND state = 'reserved' \"\n",
        "WHERE id = ? AND state <> 'finished' \"\n",
        _LEDGER,
    ),
    Mutant(
        "checked-and-charged-apart",
        "jobs/ledger.py",
        "self._check(self._entries(connection), job, limit)",
        "pass",
        _LEDGER,
    ),
    Mutant(
        "own-bound-on-rows-of-a-person",
        "jobs/dp/budget.py",
        "if table.rows.usable > bound:",
        "if table.rows.used > bound:",
        ("tests/jobs/dp/test_persons.py::test_what_a_party_checks_says_it_and_its_bound_is_on_all_rows",),
    ),
    Mutant(
        "rows-beyond-count-as-used",
        "jobs/data/rows_read.py",
        "used=self.used - beyond, ",
        "used=self.used, ",
        ("tests/jobs/dp/test_persons.py::test_a_single_holder_is_told_alone_how_many_rows_are_beyond",),
    ),
    Mutant(
        "two-releases-without-a-warning",
        "coordinator/rows_told.py",
        "if len(charged) > 1:",
        "if len(charged) > 2:",
        ("tests/jobs/dp/test_verify.py::test_a_single_holder_is_told_what_all_releases_add_up_to",),
    ),
    Mutant(
        "kept-for-any-job",
        "jobs/ledger.py",
        "WHERE data = ? AND job_sha256 = ? AND result IS NOT NULL ",
        "WHERE data = ? AND job_sha256 <> ? || '-' AND result IS NOT NULL ",
        _LEDGER,
    ),
    # what leaves a party
    Mutant(
        "an-error-for-a-value-outside",
        "jobs/dp/coders.py",
        "return Numeric(values, clamp=True, missing=nowhere)",
        "return Numeric(values, missing=nowhere)",
        ("tests/jobs/dp/test_coders.py",),
    ),
    Mutant(
        "the-number-of-common-records",
        "jobs/dp/again.py",
        'frozenset({"common_records"})',
        "frozenset[str]()",
        ("tests/jobs/dp/test_result.py",),
    ),
    # what a party tests for itself
    Mutant(
        "whatever-is-opened",
        "anonymize/joint/lkc/horizontal.py",
        "        self._require(plan.violation_of_cells(counts) is None)\n",
        "",
        _INVALID,
    ),
    Mutant(
        "whatever-root-is-opened",
        "anonymize/joint/lkc/horizontal.py",
        "        self._require(check_root_of_cells(of_root, self._entries, counts) is None)\n",
        "",
        _INVALID,
    ),
    Mutant(
        "whatever-an-owner-applies",
        "anonymize/joint/lkc/vertical.py",
        "        if candidate.column not in self._own:\n            self._validity",
        "        if False:\n            self._validity",
        (f"{_OWNER}::test_it_is_named_at_the_first_candidate_that_is_not_valid",),
    ),
    Mutant(
        "nobody-wins-whoever-has-a-candidate",
        "anonymize/joint/lkc/vertical.py",
        "            if best is not None:\n",
        "            if False:\n",
        tuple(
            f"tests/anonymize/joint/lkc/test_vertical.py::{name}"
            for name in (
                "test_a_false_winner_names_all_others",
                "test_nobody_as_winner_is_refused_by_an_evaluator_with_a_candidate",
            )
        ),
    ),
    Mutant(
        "sizes-tested-by-holders-only",
        "anonymize/joint/lkc/vertical.py",
        "        if candidate.column not in self._own:\n            self._validity",
        "        if candidate.column not in self._own and self._records.schema.sensitive:\n"
        "            self._validity",
        (f"{_OWNER}::test_a_party_that_holds_nothing_sensitive_tests_sizes",),
    ),
    Mutant(
        "columns-sent-as-they-are",
        "jobs/lkc/parts.py",
        "    require_verified(known_of(result, columns), task, held=columns_held(task, me))\n",
        "",
        (f"{_OWNER}::test_columns_are_verified_once_more_before_they_leave",),
    ),
    Mutant(
        "covered-by-a-smaller-k",
        "jobs/lkc/entries.py",
        "            and self.said.K <= other.said.K\n",
        "",
        (f"{_LISTS}::test_an_entry_is_covered_by_one_that_asks_no_less",),
    ),
    Mutant(
        "entries-verified-for-rows",
        "anonymize/lkc/verification.py",
        "np.bincount(place, weights, len(first))",
        "np.bincount(place, None, len(first))",
        ("tests/anonymize/lkc/test_weights.py::test_what_is_verified_by_hand",),
    ),
    Mutant(
        "entries-compared-for-rows",
        "jobs/release_csv.py",
        "    ours = tally(row[: one.n_entries], one.weights, len(rows))\n",
        "    ours = tally(row[: one.n_entries], other.weights[: one.n_entries], len(rows))\n",
        ("tests/anonymize/lkc/test_weights.py::test_as_many_rows_of_other_kinds_are_not_the_same_rows",),
    ),
    Mutant(
        "rows-in-the-order-of-the-table",
        "jobs/lkc/forms/rows.py",
        "    return {TABLE: rows.ordered(job.published).in_label_order()}\n",
        "    return {TABLE: rows.ordered(job.published)}\n",
        ("tests/jobs/lkc/test_release.py::test_rows_are_in_the_order_of_their_labels",),
    ),
    Mutant(
        "parts-that-nobody-listed",
        "jobs/sums.py",
        '        if name.endswith(".csv") and parts.is_dir():\n',
        '        if name.endswith(".none") and parts.is_dir():\n',
        ("tests/jobs/test_sums.py::test_nothing_lies_beside_parts",),
    ),
    Mutant(
        "two-tables-of-which-one-is-verified",
        "jobs/release_files.py",
        "    if (folder / table).exists():\n",
        "    if (folder / table).is_dir():\n",
        ("tests/jobs/test_release_files.py::test_what_is_no_table_of_ours",),
    ),
    Mutant(
        "batches-of-equal-rows-counted-once",
        "jobs/rows_counted.py",
        "np.concatenate([weights for _, weights in kept])",
        "np.ones(len(columns[0]), dtype=np.int64)",
        ("tests/jobs/test_rows_counted.py::test_equal_rows_of_many_batches_are_kept_once",),
    ),
    Mutant(
        "records-that-are-matched-joined",
        "jobs/data/streaming.py",
        "        if self._n_apart > self._most_apart and not self._compares_ids:\n",
        "        if self._n_apart > self._most_apart:\n",
        ("tests/jobs/data/test_streaming.py::test_equal_rows_are_joined_while_they_are_read",),
    ),
    Mutant(
        "blocks-shuffled-together",
        "anonymize/lkc/blocks.py",
        "    for block in blocks:\n        order = random_order(release.n_rows, rng)\n",
        "    order = random_order(release.n_rows, rng)\n    for block in blocks:\n",
        (f"{_BLOCKS}::test_every_order_inside_a_group_is_as_likely",),
    ),
    Mutant(
        "boxes-that-no-cut-parts-taken-as-cut",
        "anonymize/kd/verification.py",
        "        if cut is None:\n            return False\n",
        "        if cut is None:\n            continue\n",
        _KD_BOXES,
    ),
    Mutant(
        "medians-that-leave-something-out",
        "anonymize/kd/verification.py",
        "            if whole and not (",
        "            if not whole and not (",
        _KD_BOXES,
    ),
    Mutant(
        "overlapping-boxes-of-a-table-taken",
        "jobs/lkc/kd/checked.py",
        "n_leaves, whole=is_median):",
        "n_leaves, whole=is_median) and is_median:",
        (f"{_KD_JOBS[0]}::test_groups_that_overlap_are_found",),
    ),
    Mutant(
        "loss-of-labels-that-are-no-cut",
        "anonymize/lkc/loss_check.py",
        "    if (times != 1).any() or 0 in widths.values() or len(widths) < len(labels):\n",
        "    if (times > 1).any():\n",
        _LOSS,
    ),
    Mutant(
        "loss-not-compared",
        "jobs/lkc/cuts.py",
        "        lost[column.name] = loss_of(column, widths, release)\n",
        "        lost.setdefault(column.name, loss_of(column, widths, release))\n",
        _REPORTS,
    ),
    Mutant(
        "steps-that-lead-elsewhere",
        "jobs/lkc/cuts.py",
        "    _check_steps(task, labels, report, path)\n\n\n",
        "\n\n",
        _REPORTS,
    ),
    Mutant(
        "children-with-less-than-a-node",
        "anonymize/lkc/loss_check.py",
        "        if len(left) or len(nodes)",
        "        if len(nodes)",
        _LOSS,
    ),
    Mutant(
        "rows-that-nobody-dropped",
        "jobs/lkc/checked.py",
        "    if not _adds_up(data):\n",
        "    if False:\n",
        _REPORTS,
    ),
    Mutant(
        "account-of-a-run-that-nobody-kept",
        "party/delivery.py",
        "        await agreement.reached()\n",
        "        await _kept(session, checked.run)\n        await agreement.reached()\n",
        _ACCOUNTS,
    ),
    Mutant(
        "what-an-earlier-run-left-stays",
        "party/delivery.py",
        "sweep, _folder(session).parent)",
        "lambda folder: 0, _folder(session).parent)",
        (f"{_FAULTS}::test_what_could_not_be_taken_away_goes_with_the_next_release",),
    ),
    Mutant(
        "links-of-one-class-not-counted",
        "jobs/lkc/blocks.py",
        "    parts = (*((name,) for name in beside), *blocks_of(job))\n",
        "    parts = blocks_of(job)\n",
        (f"{_BLOCKS}::test_the_class_of_a_group_that_has_one_is_each_record_s",),
    ),
    Mutant(
        "own-links-of-all-records",
        "jobs/lkc/result.py",
        "self.links.fields(self.own_counted(self.links.table))",
        "self.links.fields(self.counted)",
        ("tests/jobs/lkc/test_blocks_joint.py::test_the_others_link_what_they_leave_of_a_group",),
    ),
    Mutant(
        "links-counted-in-the-whole-table",
        "anonymize/lkc/blocks.py",
        "kind != kind[first][group]",
        "kind != kind[0]",
        (f"{_BLOCKS}::test_the_class_of_a_group_that_has_one_is_each_record_s",),
    ),
    Mutant(
        "links-not-counted-by-the-holder",
        "jobs/lkc/files.py",
        "        require_linked(grouped, task)\n",
        "",
        (f"{_BLOCKS}::test_what_links_break_is_found_before_it_is_written",),
    ),
    Mutant(
        "classes-counted-beside-values-that-are-not-linked",
        "jobs/lkc/settings.py",
        'apart = fields.get("partition") == "vertical" or any(',
        'apart = fields.get("partition") == "vertical" and any(',
        (f"{_BLOCKS}::test_scores_count_nothing_that_the_release_does_not_link",),
    ),
    Mutant(
        "anatomy-groups-as-its-labels-say",
        "jobs/lkc/forms/anatomy.py",
        "    for names in (qid, [GROUP, *qid]):\n",
        "    for names in ([GROUP, *qid],):\n",
        ("tests/jobs/lkc/test_anatomy.py::test_a_folder_that_does_not_fit_together_is_refused",),
    ),
    Mutant(
        "partial-requirements-for-all",
        "jobs/lkc/asked.py",
        "    if policy.partial_requirements:\n",
        "    if True:\n",
        (f"{_LISTS}::test_partial_requirements_are_refused_unless_allowed",),
    ),
    Mutant(
        "ruled-out-values-beyond-reach",
        "anonymize/criteria/search.py",
        "in_reach = self._q * held > self._p * rest[:, None]",
        "in_reach = self._q * held > self._p * n[:, None]",
        (f"{_RULED}::test_what_is_held_at_a_time_changes_nothing",),
    ),
    Mutant(
        "ruled-out-in-pairs-left-out",
        "anonymize/criteria/ruled_out.py",
        "for size in range(1, self.least) for values",
        "for size in range(1, self.least - 1) for values",
        (f"{_RULED}::test_an_unprotected_value_covers_for_the_last_one_ruled_out",),
    ),
    Mutant(
        "pairs-of-unprotected-values-stand-for-others",
        "anonymize/criteria/ruled_out.py",
        "instead[a, b] = self.protected[a]",
        "instead[a, b] = True",
        (f"{_RULED}::test_an_unprotected_value_that_all_have_stands_for_no_other",),
    ),
    Mutant(
        "one-value-less",
        "anonymize/criteria/distinct.py",
        "on.at_least(present, self.least)",
        "on.at_least(present, self.least - 1)",
        ("tests/anonymize/criteria/test_criterion.py::test_as_many_values_as_asked_are_enough",),
    ),
    Mutant(
        "one-value-of-all",
        "anonymize/criteria/mixed.py",
        "on.any_of([on.is_empty(size), on.negation(on.is_zero(without))])",
        "on.negation(on.is_zero(size))",
        ("tests/anonymize/criteria/test_criterion.py::test_no_protected_value_may_be_all_there_is",),
    ),
    Mutant(
        "published-values-tested",
        "anonymize/criteria/views.py",
        "    tested = (column.tests(codes) for column, codes in zip(schema.sensitive, axes, strict=True))\n",
        "    tested = axes\n",
        ("tests/jobs/test_values.py::test_every_mode_makes_the_table_of_one_holder",),
    ),
    Mutant(
        "entries-that-no-test-concerns",
        "anonymize/lkc/requirement.py",
        "    return tuple(entry for entry in entries if column in entry.scope.columns)\n",
        "    return tuple(entry for entry in entries if column in entry.scope.columns)[:1]\n",
        ("tests/anonymize/lkc/test_entries.py::test_a_column_concerns_every_entry_that_names_it",),
    ),
    Mutant(
        "costs-of-joined-records-told",
        "jobs/modes.py",
        'Withheld(frozenset({"align", "measure", "choose"}), None, links=True)',
        'Withheld(frozenset({"align", "measure"}), None, links=True)',
        ("tests/party/test_costs.py",),
    ),
    Mutant(
        "signed-results-of-other-files",
        "coordinator/verify.py",
        "    if statement.result != result:\n",
        "    if False:\n",
        (
            f"{_FORGED}::test_a_synthetic_table_of_other_marginals_than_were_signed",
            f"{_FORGED}::test_counts_other_than_were_signed",
        ),
    ),
    Mutant(
        "dp-cells-in-any-order",
        "jobs/dp/reread.py",
        "        if counts_csv(table, task.job.published) != counts:\n",
        "        if False:\n",
        (f"{_FORGED}::test_cells_in_another_order_than_were_signed",),
    ),
    Mutant(
        "a-folder-whose-maker-says-anything",
        "coordinator/verify.py",
        "    if (key := first_malformed(report, task.job.roster)) is not None:\n",
        "    if False:\n",
        ("tests/jobs/test_maker.py::test_a_folder_whose_maker_says_more",),
    ),
    Mutant(
        "a-delivery-whose-maker-says-anything",
        "jobs/compared.py",
        "    if (key := first_malformed(report, task.job.roster)) is not None:\n",
        "    if False:\n",
        ("tests/jobs/dp/test_files.py::test_the_coordinator_says_nothing_else_there",),
    ),
    Mutant(
        "json-with-a-key-twice",
        "jobs/json_text.py",
        "    if len(found) < len(pairs):\n",
        "    if False:\n",
        ("tests/jobs/test_json_text.py", f"{_FORGED}::test_what_a_report_says_twice_is_believed_by_nobody"),
    ),
    Mutant(
        "results-not-compared",
        "jobs/signatures.py",
        "        if theirs.result != ours.result:\n",
        "        if False:\n",
        ("tests/jobs/test_signatures.py::test_what_two_statements_say_differently_is_named",),
    ),
    Mutant(
        "opened-without-consent",
        "anonymize/joint/lkc/sealed.py",
        '        yield from self._pair.hear_consent("sealed/consent")\n',
        "",
        _OWN,
    ),
    Mutant(
        "split-tells-of-small-children",
        "anonymize/joint/lkc/scores/opened.py",
        "                found.setdefault(criterion, []).append(option)\n",
        "                pass\n",
        (f"{_SCORES[0]}::test_a_split_into_a_small_child_is_no_candidate",),
    ),
    Mutant(
        "sums-of-candidates-taken-as-they-come",
        "anonymize/joint/lkc/led.py",
        "if (sums < own).any() or (sums.sum(axis=1) > wanted.totals).any():",
        "if (sums < own).any():",
        (f"{_SCORES[0]}::test_sums_that_no_table_has_are_refused_by_the_leader",),
    ),
    Mutant(
        "own-records-of-the-last-child",
        "anonymize/lkc/plan.py",
        "return self._by_group(counts, self._counted[0], ",
        "return self._by_group(counts[:, :-1], self._counted[0], ",
        ("tests/anonymize/lkc/test_plan.py::test_own_records_are_those_of_every_child",),
    ),
    Mutant(
        "own-records-of-all-together",
        "anonymize/joint/lkc/horizontal.py",
        "        self._observer.opening_groups(self._own_of_the_whole(own))\n",
        "",
        _OWN,
    ),
    Mutant(
        "consent-before-the-question",
        "anonymize/joint/lkc/horizontal.py",
        "        self._observer.opening_groups(self._own_of_groups(candidate))\n"
        "        counts = yield from self._referee.open_judged(own, totals, ways)\n",
        "        counts = yield from self._referee.open_judged(own, totals, ways)\n"
        "        self._observer.opening_groups(self._own_of_groups(candidate))\n",
        _OWN,
    ),
    Mutant(
        "a-peer-that-never-answered-is-known",
        "party/net/client.py",
        "if channel in self._answered and channel.get_state() == grpc.ChannelConnectivity.READY:",
        "if channel in self._answered:",
        ("tests/party/net/test_client.py",),
    ),
    Mutant(
        "own-k-that-nobody-asks",
        "jobs/charge.py",
        "protocol(OwnGroups(shown, self._own_k, *_counted(task)))",
        "protocol(shown)",
        ("tests/jobs/test_charge.py",),
    ),
    # clusters: labels of raw records
    Mutant(
        "clusters-that-nobody-allowed",
        "jobs/lkc/asked.py",
        "if not policy.cluster_labels:",
        "if False:",
        ("tests/jobs/test_clusters.py",),
    ),
    Mutant(
        "scores-of-clusters-that-are-not-published",
        "jobs/lkc/report.py",
        "told = outcome.schema.class_name is not None or not score.needs_class",
        "told = True",
        ("tests/jobs/test_clusters.py",),
    ),
    Mutant(
        "models-of-a-few-records",
        "coordinator/evaluation/cluster_commands.py",
        "if int(sizes.min()) < min_cluster:",
        "if int(sizes.max()) < min_cluster:",
        ("tests/coordinator/evaluation/test_clusters.py",),
    ),
    Mutant(
        "models-of-a-few-people",
        "coordinator/evaluation/cluster_commands.py",
        "return tally(labels[first], None, count)",
        "return tally(labels, loaded.table.weights, count)",
        ("tests/coordinator/evaluation/test_clusters.py",),
    ),
    # rows that are withheld
    Mutant(
        "more-withheld-than-the-limit",
        "anonymize/lkc/withholding.py",
        "            if gone + found.records > most:\n                return\n",
        "",
        ("tests/anonymize/lkc/test_withholding.py",),
    ),
    Mutant(
        "withheld-rows-published-all-the-same",
        "jobs/lkc/run_alone.py",
        "made_alone(task, loaded, shown)",
        "made_alone(task, read, shown)",
        ("tests/jobs/lkc/test_withhold.py",),
    ),
    # people with several records
    Mutant(
        "records-counted-for-people",
        "anonymize/criteria/persons.py",
        "pairs = np.unique(keys * n_people + self.person[rows])",
        "pairs = keys * n_people + self.person[rows]",
        _PEOPLE,
    ),
    Mutant(
        "people-not-tested-in-circuits",
        "anonymize/criteria/persons.py",
        "return np.full((len(totals[RECORDS]), 1), self.least > 1)",
        "return np.full((len(totals[RECORDS]), 1), False)",
        (f"{_PEOPLE[0]}::test_the_parties_come_to_what_one_holder_of_all_rows_comes_to",),
    ),
    Mutant(
        "noise-of-one-record-for-people-of-several",
        "anonymize/dp/accounting.py",
        "return epsilon / self.per_person",
        "return epsilon",
        (*_EXACT, *_RATES),
    ),
    Mutant(
        "all-records-of-a-person-counted",
        "anonymize/dp/persons.py",
        "row[order[place < most]]",
        "row[order]",
        ("tests/anonymize/dp/test_persons.py",),
    ),
    Mutant(
        "records-of-people-not-drawn-in-joint-runs",
        "jobs/dp/run.py",
        "counting(task, table, rng)",
        "table.table",
        ("tests/jobs/dp/test_persons.py",),
    ),
    Mutant(
        "people-not-counted-again",
        "jobs/lkc/verify.py",
        "    if known.person is not None:\n",
        "    if known.person is None:\n",
        _PEOPLE,
    ),
    Mutant(
        "values-of-two-holders-side-by-side",
        "jobs/lkc/blocks.py",
        'job.relinkable is False or job.partition == "vertical"',
        "job.relinkable is False",
        ("tests/jobs/lkc/test_ruled_out.py::test_holders_of_a_vertical_job_are_its_blocks",),
    ),
    Mutant(
        "values-ruled-out-not-tested-with-holders",
        "anonymize/joint/lkc/confidence.py",
        "<= set(columns)",
        "< {*columns, -1} and criterion.column is not None",
        (f"{_VERTICAL}::test_columns_of_one_holder_are_looked_at_together",),
    ),
    Mutant(
        "kd-without-leave",
        "jobs/lkc/asked.py",
        "if job.method not in policy.methods:",
        "if False:",
        _KD_JOBS,
    ),
    Mutant(
        "kd-labels-unread",
        "jobs/lkc/kd/checked.py",
        "return box_test(column.values)",
        "return lambda label: True",
        _KD_JOBS,
    ),
    Mutant(
        "kd-median-joint",
        "jobs/lkc/kd/asked.py",
        'if job.split == MEDIAN and job.partition != "single":',
        "if False:",
        _KD_JOBS,
    ),
    Mutant(
        "kd-one-side-judged",
        "anonymize/joint/kd/circuits.py",
        "all_of(b, [rule.met(on, left), rule.met(on, right)])",
        "all_of(b, [rule.met(on, left), rule.met(on, left)])",
        _KD,
    ),
    Mutant(
        "kd-right-hand-zeros-left-out",
        "anonymize/joint/kd/circuits.py",
        "[[equal(b, right, others[-1])]]",
        "[[equal(b, left, others[-1])]]",
        ("tests/anonymize/joint/kd/test_circuits.py",),
    ),
    Mutant(
        "kd-shared-right-hand-side-left-out",
        "anonymize/joint/kd/judging.py",
        "np.concatenate([left, whole - left], axis=1)",
        "np.concatenate([left, left], axis=1)",
        _KD_BLOCKS,
    ),
    Mutant(
        "kd-shared-right-hand-zeros-left-out",
        "anonymize/joint/kd/judging.py",
        "[np.uint64(0) - share, whole - share]",
        "[np.uint64(0) - share, np.uint64(0) - share]",
        _KD_BLOCKS,
    ),
    Mutant(
        "kd-linked-tallies-opened",
        "anonymize/blocks.py",
        "return any(block.tells(measure) for block in blocks)",
        "return bool(blocks)",
        _KD_BLOCKS,
    ),
    Mutant(
        "kd-blocks-of-different-sizes",
        "anonymize/joint/kd/sealed.py",
        "if len({int(counts.sum()) for counts in by_block}) > 1:",
        "if not by_block:",
        _KD_BLOCKS,
    ),
    Mutant(
        "kd-blocks-linked-in-any-way",
        "jobs/lkc/kd/result.py",
        "table=BoxedTable(table.boxes, *linked))",
        "table=table)",
        ("tests/jobs/lkc/test_blocks_joint.py",),
    ),
    Mutant(
        "blocks-of-other-tables",
        "anonymize/joint/lkc/told.py",
        "return all(np.array_equal(sizes[0], other) for other in sizes[1:])",
        "return True",
        ("tests/anonymize/joint/lkc/test_blocks.py",),
    ),
    Mutant(
        "untold-counts-as-none",
        "anonymize/lkc/untold.py",
        "return self.asked.at_stake(tally_bounds(known, self.untold), least)",
        "return self.asked.at_stake(known, least)",
        ("tests/anonymize/joint/lkc/test_blocks.py",),
    ),
    Mutant(
        "kd-opened-unjudged",
        "anonymize/joint/kd/sealed.py",
        "all(met.all() for _, met in self._judge.met(np.concatenate(list(by_side), axis=1)))",
        "True",
        _KD_HOSTILE,
    ),
    Mutant(
        "kd-cells-not-bound",
        "anonymize/joint/kd/cells.py",
        'if not ledger.reveal("same_counts", not differences.any(), "all"):',
        'if not ledger.reveal("same_counts", True, "all"):',
        _KD_HOSTILE,
    ),
    Mutant(
        "kd-opened-without-consent",
        "anonymize/joint/kd/sealed.py",
        "        self._observer.opening_groups(own[self._records].reshape(-1))\n",
        "",
        _KD,
    ),
    # sequences of several holders
    Mutant(
        "sequences-of-fewer-than-k",
        "anonymize/joint/trajectory/kept.py",
        "excess = of[RECORDS] - (self.least if leads else 0)",
        "excess = of[RECORDS] - (self.least - 1 if leads else 0)",
        _KEPT,
    ),
    Mutant(
        "sequences-that-our-records-contradict",
        "anonymize/joint/trajectory/kept.py",
        "if not asked.forms and (counts[0, ~kept] >= asked.least).any():",
        "if False:",
        _KEPT,
    ),
    Mutant(
        "sequences-not-compared-with-the-answers",
        "anonymize/joint/trajectory/sealed.py",
        "if len(found) != len(told) or not all(map(np.array_equal, found, told)):",
        "if len(found) != len(told):",
        _JOINT_SEQUENCES,
    ),
    Mutant(
        "sequences-without-end",
        "anonymize/joint/trajectory/sealed.py",
        "if self.ledger.iteration > MOST_SWEEPS:",
        "if False:",
        _JOINT_SEQUENCES,
    ),
    Mutant(
        "sequences-with-other-values",
        "anonymize/joint/trajectory/sealed.py",
        "if (tally(table.cells, table.weights, len(self._counts)) != self._counts).any():",
        "if table.n_records != self._counts.sum():",
        _JOINT_SEQUENCES,
    ),
    # set intersection of two
    Mutant(
        "wide-transfers-unchecked",
        "crypto/ot/wide.py",
        "        if not consistency.holds(",
        "        if 0 * consistency.holds(",
        _WIDE,
    ),
    Mutant(
        "one-block-of-coins-for-two-hashes",
        "crypto/ot/consistency.py",
        "    return width + hashes * _COINS + width % 2\n",
        "    return width + _COINS + width % 2\n",
        _WIDE,
    ),
    Mutant(
        "a-challenge-of-no-message",
        "crypto/ot/consistency.py",
        ".update(corrections)",
        "",
        _WIDE,
    ),
    Mutant(
        "a-challenge-that-leaves-out-the-trees",
        "crypto/ot/consistency.py",
        'position.to_bytes(8, "little") + sums)',
        'position.to_bytes(8, "little"))',
        _TRANSFERS,
    ),
    Mutant(
        "sums-of-trees-without-a-mask",
        "crypto/ot/trees.py",
        "        sums += _sum(zero, *nodes[::2]) + _sum(one, *nodes[1::2])\n",
        "        sums += _sum(*nodes[::2]) + _sum(*nodes[1::2])\n",
        _TREES,
    ),
    Mutant(
        "choices-hashed-without-coins",
        "crypto/ot/wide.py",
        '        drawn = np.frombuffer(coins, dtype="<u8")',
        '        drawn = np.frombuffer(bytes(len(coins)), dtype="<u8")',
        _WIDE,
    ),
    Mutant(
        "a-code-without-parity",
        "crypto/ot/code.py",
        "    words = [polynomial << i | (polynomial.bit_count() & 1) << _ORDER for i in range(DIMENSION)]\n",
        "    words = [polynomial << i for i in range(DIMENSION)]\n",
        _CODE,
    ),
    Mutant(
        "two-places-for-one",
        "crypto/okvs.py",
        "    return Keys(places + third * np.arange(PLACES), dense, third)\n",
        "    return Keys(places + third * np.array([0, 0, 2]), dense, third)\n",
        _OKVS,
    ),
    Mutant(
        "fewer-places-than-the-bound-asks-for",
        "crypto/okvs.py",
        "    return -(-13 * capacity // 30) + 8\n",
        "    return -(-13 * capacity // 30) + 4\n",
        _OKVS,
    ),
    Mutant(
        "bins-that-overflow",
        "crypto/oprf.py",
        "_SPILL_BITS = 42\n",
        "_SPILL_BITS = 20\n",
        _OPRF,
    ),
    Mutant(
        "a-tag-of-the-rows-alone",
        "crypto/oprf.py",
        "[hashed.words, sums]",
        "[0 * hashed.words, sums]",
        _OPRF,
    ),
    Mutant(
        "identifiers-hashed-alike-in-every-job",
        "crypto/oprf.py",
        'derive_key(session_key, b"oprf/id", job_hash)',
        'derive_key(b"", b"oprf/id", b"")',
        _OPRF,
    ),
    Mutant(
        "tags-in-the-order-of-records",
        "crypto/intersection.py",
        "    order = ranking(ours.tags)\n",
        "    order = np.arange(len(ours.tags))\n",
        _PSI,
    ),
    Mutant(
        "tags-in-any-order-taken",
        "crypto/intersection.py",
        "    if not ascending(tags):\n",
        "    if len(tags) > len(tags):\n",
        _PSI,
    ),
    Mutant(
        "common-tags-not-counted",
        "crypto/intersection.py",
        "    if np.count_nonzero(common) != count:\n",
        "    if count < 0:\n",
        _PSI,
    ),
    Mutant(
        "matched-by-the-first-word",
        "crypto/tags.py",
        "        common[open_[equal.all(axis=1)]] = 1\n",
        "        common[open_[equal[:, 0]]] = 1\n",
        ("tests/crypto/test_tags.py",),
    ),
    # set intersection of three and more
    Mutant(
        "hints-of-no-shares",
        "crypto/zero_shares.py",
        "[each.tags for each in tagged]",
        "[each.tags for each in tagged[:1]]",
        _ZERO_SHARES,
    ),
    Mutant(
        "hints-with-empty-rows",
        "crypto/zero_shares.py",
        "free = uniform_words(",
        "free = 0 * uniform_words(",
        _ZERO_SHARES,
    ),
    Mutant(
        "hints-laid-out-as-the-collector-likes",
        "crypto/zero_shares.py",
        "toward.hashed.salted(salt).by_bin(shape)",
        "toward.hashed.by_bin(shape)",
        _ZERO_SHARES,
    ),
    Mutant(
        "salts-that-nobody-draws",
        "crypto/zero_shares.py",
        "rng.bytes(SEED_BYTES)",
        "bytes(SEED_BYTES)",
        _ZERO_SHARES,
    ),
    Mutant(
        "free-rows-that-are-left-out",
        "crypto/okvs.py",
        "        if len(left) or free is not None:",
        "        if len(left):",
        _OKVS,
    ),
    Mutant(
        "common-in-the-order-of-the-collector",
        "crypto/zero_shares.py",
        "common[uniform_permutation(rng, len(common))]",
        "common[np.sort(uniform_permutation(rng, len(common)))]",
        _ZERO_SHARES,
    ),
    Mutant(
        "numbers-told-not-compared",
        "crypto/zero_shares.py",
        "        if inbox[peer] != header:\n",
        "        if len(inbox[peer]) != len(header):\n",
        _ZERO_SHARES,
    ),
    Mutant(
        "common-tags-of-nobody",
        "crypto/zero_shares.py",
        "    if not known.all():\n",
        "    if not known.any():\n",
        _ZERO_SHARES,
    ),
    Mutant(
        "common-tags-told-twice",
        "crypto/zero_shares.py",
        "    if not ascending(told[order]):\n",
        "    if len(told) > len(order):\n",
        _ZERO_SHARES,
    ),
    Mutant(
        "transfers-that-may-be-said-back",
        "crypto/ot/base.py",
        "    for part in (sender.encode(), receiver.encode(), offer, answers):\n",
        "    for part in (offer, answers):\n",
        _ZERO_SHARES,
    ),
    # the mix
    Mutant(
        "mix-in-the-order-of-parties",
        "crypto/mixing.py",
        "    return _sorted(np.concatenate(found))\n",
        "    return np.concatenate(found)\n",
        _MIX,
    ),
    Mutant(
        "mixed-in-slots-in-order",
        "crypto/mixing.py",
        "    order = uniform_permutation(rng, total)\n",
        "    order = np.arange(total)\n",
        _MIX,
    ),
    Mutant(
        "sheets-without-keystreams",
        "crypto/mixing.py",
        "        for mask in self._masks:\n",
        "        for mask in self._masks[:0]:\n",
        _MIX,
    ),
    Mutant(
        "a-mixed-slot-twice",
        "crypto/mixing.py",
        "        if (slots >= total).any() or len(np.unique(slots)) < count:\n",
        "        if (slots >= total).any():\n",
        _MIX,
    ),
    Mutant(
        "mixed-rows-not-vouched-for",
        "crypto/mixing.py",
        "    if (_digests(said) != found[:, -_DIGEST_BYTES:]).any():\n",
        "    if (_digests(said) != found[:, -_DIGEST_BYTES:]).all():\n",
        _MIX,
    ),
    Mutant(
        "mix-under-several-keys",
        "crypto/mixing.py",
        "        if theirs != ours:\n",
        "        if len(theirs) != len(ours):\n",
        _MIX,
    ),
    Mutant(
        "mixed-boxes-twice",
        "crypto/mixing.py",
        "        if (keys[1:] <= keys[:-1]).any():\n",
        "        if (keys[1:] < keys[:-1]).any():\n",
        _MIX,
    ),
    Mutant(
        "own-rows-not-looked-for",
        "crypto/mixing.py",
        "    return bool((times > 0).all())\n",
        "    return bool((times > 0).any())\n",
        _MIX,
    ),
    Mutant(
        "own-rows-known-by-their-content",
        "crypto/mixing.py",
        "    return np.hstack([rows, _rows(rng.bytes(_COIN_BYTES * len(rows)), _COIN_BYTES)])\n",
        "    return np.hstack([rows, _rows(bytes(_COIN_BYTES * len(rows)), _COIN_BYTES)])\n",
        _MIX,
    ),
    Mutant(
        "mixed-rows-told-otherwise-to-one",
        "crypto/mixing.py",
        "        is_settled = is_complete and all(inbox[peer] == digest for peer in heard)\n",
        "        is_settled = is_complete and len(heard) == len(inbox)\n",
        _MIX,
    ),
    Mutant(
        "who-misses-rows-speaks-alone",
        "crypto/mixing.py",
        "digest if is_complete else rng.bytes(_DIGEST_BYTES)",
        "digest",
        _MIX,
    ),
    Mutant(
        "other-boxes-than-the-parties-know",
        "jobs/lkc/release.py",
        "    if hashlib.sha256(slips_of(boxes).tobytes()).hexdigest() != mixed.slips:\n",
        "    if not mixed.slips:\n",
        _MIXED,
    ),
    Mutant(
        "other-rows-than-were-counted",
        "jobs/lkc/mixed.py",
        "    if not same_rows(release, counted, list(counted.columns)):\n        raise changed(source.identity)\n",
        "",
        _MIXED,
    ),
    Mutant(
        "costs-of-a-mix-told",
        "party/costs.py",
        "    kept_back = withheld.links or not withheld.phases.isdisjoint(meter.phases)\n",
        "    kept_back = withheld.links\n",
        _MIXED,
    ),
    Mutant(
        "report-not-compared",
        "jobs/report.py",
        "if n not in told or as_text(told[n]) != as_text(value)), None)",
        "if n not in told), None)",
        ("tests/jobs/lkc/test_checked.py",),
    ),
    Mutant(
        "exclusion-skipped",
        "anonymize/trajectory/exclusion.py",
        "        return ~self._bounds.kept(counts)\n",
        "        return ~self._bounds.kept(counts) & False\n",
        _EXCLUSION,
    ),
    Mutant(
        "exclusion-of-nobody",
        "anonymize/trajectory/exclusion.py",
        "            can_be[self._elsewhere(item)] = False\n",
        "            can_be[self._elsewhere(item)[:0]] = False\n",
        _EXCLUSION,
    ),
    Mutant(
        "exclusion-of-what-is-left",
        "anonymize/trajectory/exclusion.py",
        "                known = gone[at].any(axis=2)\n",
        "                known = gone[at].all(axis=2)\n",
        _EXCLUSION,
    ),
    Mutant(
        "repair-after-one-turn",
        "anonymize/trajectory/repair.py",
        "        if found is None or not found.exposed:\n",
        "        if found is None or not found.exposed or turns:\n",
        _EXCLUSION,
    ),
    # sequences
    Mutant(
        "sequences-of-one-record-less",
        "anonymize/criteria/size.py",
        "on.at_least(size, self.least)",
        "on.at_least(size, self.least - 1)",
        _PATHS,
    ),
    Mutant(
        "sequences-below-C",
        "anonymize/criteria/clear.py",
        "return np.asarray(word >= 0)",
        "return np.asarray(word > 0)",
        _PATHS,
    ),
    Mutant(
        "sequences-last-sweep-skipped",
        "anonymize/trajectory/sweep.py",
        "        if search.n_alive == before:\n",
        "        if search.n_alive <= before:\n",
        _PATHS,
    ),
    Mutant(
        "sequences-that-need-not-be-minimal",
        "anonymize/trajectory/levels.py",
        "        whole &= (subsets[:, i] != NONE) & (subsets[:, i] < len(level))\n",
        "        subsets[:, i] = np.clip(subsets[:, i], 0, len(level) - 1)\n",
        _PATHS,
    ),
    Mutant(
        "sequences-tie-by-own-counts",
        "anonymize/trajectory/sweep.py",
        "order_of(self._kept_with())",
        "order_of(np.bincount(self._rows.items, minlength=self._domain))",
        _PATHS,
    ),
    Mutant(
        "sequences-checked-one-item-short",
        "anonymize/trajectory/verification.py",
        "if size == self._claim.max_known:",
        "if size == self._claim.max_known - 1:",
        _PATHS_CHECKED,
    ),
    Mutant(
        "sequences-checked-for-one-record-less",
        "anonymize/trajectory/verification.py",
        "if fewest < claim.least:",
        "if fewest < claim.least - 1:",
        _PATHS_CHECKED,
    ),
    Mutant(
        "sequences-checked-below-C",
        "anonymize/trajectory/verification.py",
        "(with_it * confidence.denominator > records",
        "(with_it * confidence.denominator >= records",
        _PATHS_CHECKED,
    ),
    Mutant(
        "maximal-sequences-without-rests",
        "anonymize/trajectory/frequent.py",
        "if rest and not any(",
        "if not rest and not any(",
        _PATHS_EVERYWHERE,
    ),
    Mutant(
        "sequences-of-records-that-vary",
        "jobs/sequences/reading.py",
        "if varies.any():",
        "if False:",
        (f"{_READINGS}::test_plain_columns_as_they_stand_and_the_same_in_all_rows_of_a_record",),
    ),
    Mutant(
        "sequences-from-a-reading-that-does-not-count",
        "jobs/sequences/reading.py",
        "        ticks = ticks - first[person]",
        "        ticks = ticks - first.min()",
        (f"{_READINGS}::test_relative_times_count_from_the_first_reading_that_counts",),
    ),
    Mutant(
        "sequences-found-by-exclusion-released",
        "jobs/sequences/alone.py",
        "if isinstance(out, Exclusion) and out.n_exposed:",
        "if isinstance(out, Exclusion) and out.n_exposed > 9:",
        (f"{_RELEASES}::test_exclusion_is_refused_reported_or_repaired",),
    ),
    Mutant(
        "sequences-in-the-order-of-the-table",
        "jobs/sequences/release.py",
        "    order = np.lexsort(keys)",
        "    order = np.arange(len(path_of))",
        (f"{_RELEASES}::test_records_are_numbered_in_canonical_order_whatever_the_order_of_the_table",),
    ),
    Mutant(
        "sequences-read-back-as-they-stand",
        "jobs/sequences/reread.py",
        "        if not _same(again.columns[name], columns[name]):",
        "        if False:",
        (f"{_RELEASES}::test_a_wide_table_is_checked_as_a_long_one",),
    ),
    Mutant(
        "sequences-with-exclusion-that-cannot-be-tested",
        "jobs/sequences/alone.py",
        "if found is None and vocabulary.timed:",
        "if False:",
        (f"{_RELEASES}::test_exclusion_that_cannot_be_tested_is_not_met",),
    ),
    Mutant(
        "sequences-with-the-last-sweep-of-another-table",
        "jobs/sequences/figures.py",
        "return _in_turn(on.sweeps) and on.sweeps[-1].kept == left",
        "return _in_turn(on.sweeps)",
        _FIGURES,
    ),
    Mutant(
        "sequences-with-items-suppressed-that-none-had",
        "jobs/sequences/figures.py",
        "if type(n) is not int or not 0 <= n <= (on.lost.instances if on.everywhere else 0):",
        "if type(n) is not int:",
        _FIGURES,
    ),
    Mutant(
        "sequences-with-other-losses",
        "jobs/sequences/figures.py",
        "lost.of_instances - lost.instances == on.paths.n_instances",
        "lost.of_instances >= on.paths.n_instances",
        _FIGURES,
    ),
    Mutant(
        "sequences-with-something-found-by-exclusion",
        "jobs/sequences/figures.py",
        "if asked.exclusion != SAID and exposed:",
        "if False:",
        _FIGURES,
    ),
    Mutant(
        "sequences-with-gaps-that-were-not-sampled",
        "jobs/sequences/figures.py",
        "sampled = SAMPLE if on.lost.instances else 0",
        'sampled = said["sampled"]',
        _FIGURES,
    ),
    Mutant(
        "sequences-with-reveals-of-another-size",
        "jobs/sequences/figures.py",
        'ledger.reveal("kept", None, "all", (n,))',
        'ledger.reveal("kept", None, "all", tuple(said[len(ledger.reveals)]["shape"]))',
        ("tests/jobs/sequences/test_joint.py::test_reveals_and_sweeps_of_another_run_are_named",),
    ),
    Mutant(
        "compiled-tweaks-that-come-again-in-the-next-piece",
        "crypto/compiled/engine.py",
        "self._tweak += 2 * self._n * piece.and_gates",
        "self._tweak += self._n * piece.and_gates",
        _COMPILED,
    ),
    Mutant(
        "compiled-tweaks-that-instances-share",
        "crypto/compiled/aes.py",
        "(first + (k >> 1)).spread(lanes)",
        "first.spread(lanes)",
        _COMPILED,
    ),
    Mutant(
        "compiled-table-that-shows-a-permute-bit",
        "crypto/compiled/gates.py",
        "h_a_0 ^ h_a_1 ^ (p_b & delta)",
        "h_a_0 ^ h_a_1",
        _COMPILED,
    ),
    Mutant(
        "compiled-aes-of-one-round-more",
        "crypto/compiled/aes.py",
        "aesenclast{",
        "aesenc{",
        _COMPILED,
    ),
    Mutant(
        "compiled-transfers-of-half-a-block",
        "crypto/compiled/transpose.py",
        "low.pick(lane, lanes + lane, other=high)",
        "low.pick(lane, lane, other=high)",
        _COMPILED,
    ),
    Mutant(
        "compiled-trees-whose-levels-share-tweaks",
        "crypto/compiled/engine.py",
        "self._tweak += nodes.size // 2",
        "pass",
        _COMPILED,
    ),
    Mutant(
        "compiled-look-ups-that-read-other-memory",
        "crypto/compiled/engine.py",
        "of.max() < len(tables)",
        "of.max() < 1 << 62",
        _COMPILED,
    ),
    Mutant(
        "figures-that-tell-refusals-for-what-the-table-has",
        "party/operations/tally.py",
        "REFUSED if phase in BEFORE_THE_TABLE else OTHER",
        "REFUSED",
        ("tests/party/operations/test_tally.py",),
    ),
    Mutant(
        "pages-for-browsers-that-somebody-else-sends",
        "party/operations/pages.py",
        'not _names_loopback(head.headers.get("Host", ""))',
        "False",
        ("tests/party/operations/test_pages.py",),
    ),
    Mutant(
        "the owner's page answers to any name",
        "party/web/guard.py",
        '    if request.headers.get("host") not in names:\n',
        '    if request.headers.get("host") is None:\n',
        ("tests/party/web/test_guard.py",),
    ),
    Mutant(
        "forms of other sites are taken",
        "party/web/guard.py",
        "        if not ours or site not in _OURS:\n",
        "        if site not in _OURS:\n",
        ("tests/party/web/test_guard.py",),
    ),
    Mutant(
        "forms need no field that only our pages know",
        "party/web/guard.py",
        'not signed_in.brought(fields.get("form", ""))',
        '"form" not in fields',
        ("tests/party/web/test_guard.py",),
    ),
    Mutant(
        "a page that is fetched by itself keeps a session alive",
        "party/web/guard.py",
        "self._sessions.found(cookie, used=used)",
        "self._sessions.found(cookie)",
        ("tests/party/web/test_guard.py",),
    ),
    Mutant(
        "a sign-in token is good again",
        "party/web/tokens.py",
        "            path.unlink()\n",
        "            path.stat()\n",
        ("tests/party/web/test_tokens.py",),
    ),
    Mutant(
        "a form approves what it did not show",
        "party/web/deciding.py",
        'given.get("shown") != _digest(binding)',
        'not given.get("shown")',
        ("tests/party/web/test_deciding.py",),
    ),
    Mutant(
        "a report from elsewhere comes without a sandbox",
        "party/web/releases.py",
        '            headers = {"content-security-policy": SANDBOX}\n',
        "            headers: dict[str, str] = {}\n",
        ("tests/party/web/test_records.py",),
    ),
    Mutant(
        "silent callers keep others from the owner's page",
        "party/web/server.py",
        " and not each.transport.is_closing()",
        "",
        ("tests/party/web/test_guard.py",),
    ),
    Mutant(
        "pages-that-silent-callers-keep-others-from",
        "party/operations/pages.py",
        "            oldest.cancel()\n",
        "",
        ("tests/party/operations/test_pages.py",),
    ),
    Mutant(
        "health-for-who-is-a-peer-no-more",
        "party/net/health.py",
        "            self._identify(context)\n",
        "            pass\n",
        ("tests/party/net/test_health.py",),
    ),
    Mutant(
        "libraries-that-log-in-detail",
        "party/operations/levels.py",
        'OURS = ("party", "coordinator")',
        'OURS = ("party", "")',
        ("tests/party/operations/test_levels.py",),
    ),
    Mutant(
        "clocks-that-are-behind-are-in-order",
        "party/operations/checks.py",
        "abs(said.clock_s) - give_or_take",
        "said.clock_s - give_or_take",
        ("tests/party/operations/test_checks.py",),
    ),
    Mutant(
        "compiled-look-ups-of-even-entries-at-the-end",
        "crypto/compiled/inner_products.py",
        "((first + bit) & (size - 1))",
        "((first + bit) & (size - 2))",
        _COMPILED,
    ),
    Mutant(
        "compiled-gates-that-read-other-memory",
        "crypto/compiled/engine.py",
        "rows.max() < bound",
        "rows.max() < 1 << 62",
        _COMPILED,
    ),
    Mutant(
        "compiled-code-that-nobody-compared",
        "crypto/compiled/loading.py",
        "    check(compiled)\n",
        "",
        ("tests/crypto/compiled/test_loading.py",),
    ),
    Mutant(
        "turns-are-asked-for-in-the-order-of-the-roster",
        "coordinator/conduct.py",
        "for name in sorted(addresses):",
        "for name in addresses:",
        ("tests/coordinator/test_patience.py",),
    ),
    Mutant(
        "all-turns-are-asked-for-at-once",
        "coordinator/conduct.py",
        "                    await self._until(lambda m: m.before == 0)\n",
        "                await self._until(lambda m: m.before == 0)\n",
        ("tests/coordinator/test_patience.py",),
    ),
    Mutant(
        "whoever-comes-gets-in-before-who-waits",
        "party/queue.py",
        "        for before, each in enumerate(self._line):\n",
        "        for before, each in enumerate(reversed(self._line)):\n",
        (_QUEUE,),
    ),
    Mutant(
        "one-coordinator-fills-the-queue",
        "party/queue.py",
        "turn.caller == caller for turn in waiting",
        "turn.caller == caller for turn in ()",
        (_QUEUE,),
    ),
    Mutant(
        "a-turn-that-is-not-used-is-kept",
        "party/queue.py",
        "async with asyncio.timeout(patience_s):",
        "async with asyncio.timeout(None):",
        (_QUEUE,),
    ),
    Mutant(
        "a-bundle-is-taken-before-its-turn",
        "party/queue.py",
        "case control.Submit() as request if turn.before == 0:",
        "case control.Submit() as request:",
        (_QUEUE,),
    ),
    Mutant(
        "a-daemon-that-stops-takes-jobs",
        "party/queue.py",
        "        self._closed = True\n",
        "",
        (_QUEUE,),
    ),
    Mutant(
        "anybody-signs-a-roster",
        "party/owner/roster.py",
        "    check_signature(maker, bytes.fromhex(file.signature), signed, file.made_by)\n",
        "",
        ("tests/party/owner/test_roster.py",),
    ),
    Mutant(
        "a-roster-replaces-a-certificate",
        "party/owner/peer_files.py",
        "    if _fingerprint_of(file) != fingerprint(pem):\n",
        "    if False:\n",
        ("tests/party/owner/test_roster.py",),
    ),
    Mutant(
        "what-failed-otherwise-is-repeated",
        "coordinator/patience.py",
        "if not left or problem.exit_code is not Exit.UNREACHABLE:",
        "if not left:",
        ("tests/coordinator/test_patience.py",),
    ),
    Mutant(
        "daemons-outlive-who-started-them",
        "party/cli/serve.py",
        "            loop.remove_reader(number)\n            stop.set()\n",
        "            loop.remove_reader(number)\n",
        ("tests/party/cli/test_commands.py::test_serve_ends_with_its_standard_input_where_it_is_told_so",),
    ),
    Mutant(
        "a-running-job-loses-its-streams-when-files-are-reread",
        "party/net/client.py",
        "            await stream.closed.wait()\n",
        "            await asyncio.sleep(0)\n",
        (
            "tests/party/owner/test_in_force.py::"
            "test_a_job_that_runs_keeps_its_streams_when_the_files_are_reread",
        ),
    ),
    Mutant(
        "audit-lines-that-are-not-synced",
        "party/owner/audit.py",
        """            try:
                os.fsync(opened)
""",
        """            try:
                pass
""",
        _AUDIT,
    ),
    Mutant(
        "audit-lines-that-follow-any-line",
        "party/owner/chain.py",
        "if line.before != self.head.digest:",
        "if False:",
        ("tests/party/owner/test_chain.py",),
    ),
    Mutant(
        "a-torn-line-that-its-line-end-makes-whole",
        "party/owner/chain.py",
        'else b"~\\n"',
        'else b"\\n"',
        ("tests/party/owner/test_chain.py",),
    ),
    Mutant(
        "an-audit-that-goes-on-where-its-last-line-was",
        "party/owner/audit.py",
        "digest_of(raw) != known.head.digest",
        "False",
        _AUDIT,
    ),
    Mutant(
        "reveals-that-are-written-when-the-run-is-over",
        "party/auditing.py",
        """                self._write_revealed()
                turn""",
        "                turn",
        ("tests/party/test_auditing.py",),
    ),
    Mutant(
        "charges-that-the-audit-does-not-see",
        "jobs/ledger.py",
        '        self.told("release", job)\n',
        "",
        ("tests/party/test_auditing.py",),
    ),
    Mutant(
        "ends-of-audits-that-nobody-looks-for",
        "party/owner/audit_check.py",
        "if each.digest not in (of_run if each.run else digests):",
        "if False:",
        ("tests/party/owner/test_audit_check.py",),
    ),
    Mutant(
        "configuration-in-force-before-its-line",
        "party/owner/in_force.py",
        "            self._told(loaded, before)\n",
        "            pass\n",
        ("tests/party/owner/test_terms.py",),
    ),
    Mutant(
        "proxy-of-the-environment-is-used",
        "party/net/streams.py",
        '        ("grpc.enable_http_proxy", 0),',
        '        ("grpc.enable_http_proxy", 1),',
        ("tests/party/net/test_ways.py",),
    ),
    Mutant(
        "relay-is-whoever-answers",
        "party/net/ways.py",
        "    context.load_verify_locations(cadata=trusted.certificate.decode())\n",
        "    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE\n",
        ("tests/coordinator/test_relay.py",),
    ),
    Mutant(
        "strangers-without-bound",
        "coordinator/relay.py",
        "if len(self._greeting) > self._bounds.greeting:",
        "if len(self._greeting) > self._bounds.total:",
        ("tests/coordinator/test_relay.py",),
    ),
    Mutant(
        "waiting-under-any-name",
        "coordinator/relay.py",
        "waiting, room = _Waiting(stream), self._rooms[name]",
        'waiting, room = _Waiting(stream), self._rooms["hospital-a"]',
        ("tests/coordinator/test_relay.py",),
    ),
    Mutant(
        "a-protocol-that-one-does-not-speak",
        "party/net/protocol.py",
        "if protocol not in talked[ahead]:",
        "if protocol not in talked[behind]:",
        ("tests/party/net/test_protocol.py",),
    ),
    Mutant(
        "any-greeting-will-do",
        "party/net/protocol.py",
        "if payload != greeting(protocol):",
        "if len(payload) != len(greeting(protocol)):",
        ("tests/party/net/test_protocol.py",),
    ),
    Mutant(
        "what-is-spoken-is-not-signed",
        "party/net/link.py",
        "            _record(self._received, HELLO, hello)\n",
        "",
        ("tests/party/net/test_link.py",),
    ),
    Mutant(
        "a-job-in-any-protocol",
        "party/requests.py",
        "        check(request.protocol)\n",
        "",
        ("tests/end_to_end/test_versions.py",),
    ),
    Mutant(
        "strangers-without-a-line",
        "party/net/refusing.py",
        "        if connections:\n",
        "        if connections < 0:\n",
        ("tests/party/net/test_refusing.py",),
    ),
    Mutant(
        "who-is-under-way-is-a-stranger",
        "party/net/handshakes.py",
        "began = self.begun if over else self._begun_before",
        "began = self.begun",
        ("tests/party/net/test_handshakes.py",),
    ),
    Mutant(
        "a-refused-proposal-without-a-line",
        "party/daemon.py",
        'if standing.state == "refused":',
        'if standing.state == "ended":',
        ("tests/end_to_end/test_audit.py::test_owners_commands_and_daemons_write_one_chain",),
    ),
    Mutant(
        "temporary-folders-of-the-killed-stay",
        "jobs/data/hidden.py",
        "    sweep(place, name)\n",
        "",
        ("tests/jobs/test_folder.py",),
    ),
    Mutant(
        "a-lost-relay-is-tried-without-pause",
        "party/net/presence.py",
        "pause_s = min(2 * pause_s, LONGEST_S)",
        "pause_s = min(pause_s, LONGEST_S)",
        ("tests/party/net/test_presence.py",),
    ),
    Mutant(
        "pages-that-take-text-for-tags",
        "jobs/pages/page.py",
        "autoescape=True",
        "autoescape=False",
        ("tests/jobs/pages/test_page.py",),
    ),
    Mutant(
        "changed-pages-pass-for-the-report",
        "coordinator/verify.py",
        "    if path.read_bytes() == page_of(task, report):\n",
        "    if path.read_bytes() and page_of(task, report):\n",
        ("tests/jobs/pages/test_page.py",),
    ),
    Mutant(
        "calls-without-bound",
        "coordinator/relay.py",
        "        self._calls[caller, party] += 1\n",
        "",
        ("tests/coordinator/test_relay.py",),
    ),
    Mutant(
        "hubs-compare-nothing",
        "jobs/links.py",
        "!= ours[i]:\n",
        "!= ours[i] and not party:\n",
        (f"{_LINKS}::test_whoever_tells_the_hubs_different_things_is_named_before_anything_is_passed_on",),
    ),
    Mutant(
        "one-hub-is-believed",
        "jobs/links.py",
        "    if inbox[two[1]] != hashlib.sha256(whole).digest():\n",
        "    if not inbox[two[1]]:\n",
        (f"{_LINKS}::test_whoever_says_what_is_not_so_is_named",),
    ),
    Mutant(
        "own-words-passed-on-otherwise",
        "jobs/links.py",
        "    if found.pop(me) != said[me]:\n",
        "    if found.pop(me) is None:\n",
        (f"{_LINKS}::test_what_both_hubs_say_alike_is_still_looked_at",),
    ),
    Mutant(
        "votes-of-the-pair-are-all-votes",
        "party/agreement.py",
        "True if self.counts and self._votes",
        "True if self._votes",
        ("tests/party/test_agreement.py::test_votes_of_the_pair_alone_are_not_all_votes",),
    ),
    Mutant(
        "another-certificate-than-installed",
        "party/owner/signing.py",
        "            if self.others.get(party, certificate) != certificate:\n",
        "            if not self.others.get(party, certificate):\n",
        (
            "tests/party/owner/test_signing.py::test_certificates_that_we_are_told_have_to_be_those_installed_here",
        ),
    ),
    Mutant(
        "no-patience-for-what-is-passed-on",
        "party/net/runner.py",
        "turn.hops * timeout_s",
        "timeout_s",
        ("tests/party/net/test_runner.py::test_who_waits_for_what_others_pass_on_has_more_patience",),
    ),
    Mutant(
        "texts-of-the-first-batch-for-all",
        "jobs/rows_held.py",
        "number[start:][own]",
        "number[own]",
        ("tests/jobs/test_rows_held.py::test_texts_of_each_batch_are_its_own",),
    ),
    Mutant(
        "rows-that-lose-their-number",
        "jobs/rows_held.py",
        "    return joined\n",
        "    return units(len(joined))\n",
        ("tests/jobs/test_rows_held.py::test_equal_rows_are_joined_while_they_are_read",),
    ),
    Mutant(
        "zeros-of-both-signs-are-one-in-spark",
        "jobs/data/sql/spark.py",
        'if kind in ("float", "double", "void"):',
        'if kind == "void":',
        ("tests/jobs/data/sql/test_spark.py::test_cells_of_every_type_have_the_texts_of_a_parquet_file",),
        needs="java",
    ),
    Mutant(
        "texts-that-spark-takes-for-equal",
        "jobs/data/sql/spark.py",
        """coalesce(CAST(CAST({column} AS BINARY) AS STRING), '')""",
        """coalesce({column}, '')""",
        ("tests/jobs/data/sql/test_spark.py::test_texts_that_a_collation_takes_for_equal",),
        needs="java",
    ),
    Mutant(
        "a-table-that-changes-while-spark-reads",
        "jobs/data/sql/spark_tables.py",
        "        if self._version(spark) != before:\n            raise changed()\n",
        "",
        ("tests/jobs/data/sql/test_spark.py::test_a_table_that_changes_while_it_is_read",),
        needs="java",
    ),
    Mutant(
        "zeros-of-both-signs-are-one-in-postgres",
        "jobs/data/postgres.py",
        """            by += [f"{quoted(name)}::text" for name, kind in kinds.items() if kind in _FLOATS]\n""",
        "",
        ("tests/jobs/data/test_postgres.py::test_rows_counted_at_the_server_tell_what_each_row_does",),
        needs="initdb",
    ),
    Mutant(
        "texts-that-postgres-takes-for-equal",
        "jobs/data/postgres.py",
        """else f'{quoted(name)}::text COLLATE "C"'""",
        """else f'{quoted(name)}'""",
        ("tests/jobs/data/test_postgres.py::test_texts_that_a_collation_takes_for_equal_are_counted_apart",),
        needs="initdb",
    ),
)


def run(mutant: Mutant | None, tests: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run tests in a copy of the sources with a mutant applied (or without)."""
    path = folder / mutant.file if mutant else None
    original = path.read_text() if path else ""
    if path is not None and mutant is not None:
        path.write_text(mutant.mutated(original))
    try:
        # The same examples each time: a mutant is caught always or never.
        options = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=failing")
        command = [sys.executable, "-m", "pytest", *options, *tests]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    finally:
        if path is not None:
            path.write_text(original)


def copy_sources(folder: Path) -> None:
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=_NOT_COPIED)
        else:
            shutil.copy(source, folder / name)


def runnable(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Those whose programs are here; of each other one it is said that it is not run."""
    here = {program: is_here() for program, is_here in PRESENT.items()}
    ready = [mutant for mutant in mutants if not mutant.needs or here[mutant.needs]]
    for mutant in mutants:
        if mutant not in ready:
            print(f"not run: {mutant.name} (no {mutant.needs})", flush=True)
    return ready


def survivors(mutants: Sequence[Mutant]) -> list[str]:
    """Run every mutant, as many at a time as there are processors; return the names of those that no test noticed."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folders: SimpleQueue[Path] = SimpleQueue()
        workers = min(len(mutants), os.cpu_count() or 1)
        for number in range(workers):
            folder = Path(name, str(number))
            folder.mkdir()
            copy_sources(folder)
            folders.put(folder)

        def survives(mutant: Mutant) -> bool:
            folder = folders.get()
            try:
                done = run(mutant, mutant.tests, folder)
            finally:
                folders.put(folder)
            caught = done.returncode == 1
            said = "" if caught else f"\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
            print(f"{'caught ' if caught else 'ALIVE  '} {mutant.name}{said}", flush=True)
            return not caught

        with ThreadPoolExecutor(max_workers=workers) as pool:
            alive = list(pool.map(survives, mutants))
    return [mutant.name for mutant, survived in zip(mutants, alive, strict=True) if survived]


def main() -> None:
    wanted = set(sys.argv[1:])
    unknown = wanted - {mutant.name for mutant in MUTANTS}
    if unknown:
        raise SystemExit(f"no such mutant: {', '.join(sorted(unknown))}")
    chosen = [mutant for mutant in MUTANTS if not wanted or mutant.name in wanted]
    ready = runnable(chosen)
    alive = survivors(ready) if ready else []
    besides = f"; {len(chosen) - len(ready)} not run" if len(ready) < len(chosen) else ""
    if alive:
        raise SystemExit(f"{len(alive)} of {len(ready)} mutants survive: {', '.join(alive)}{besides}")
    print(f"all {len(ready)} mutants that were run are caught{besides}")


if __name__ == "__main__":
    main()
