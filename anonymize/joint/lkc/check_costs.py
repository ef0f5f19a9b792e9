"""What tests of criteria take in joint runs, by what is public before these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anonymize.criteria.criterion import Criterion, alike
from anonymize.joint.lkc.circuits import by_zeros_circuit, criterion_circuit, zero_circuit
from anonymize.joint.lkc.confidence import Protected
from anonymize.joint.zeros import ZeroForms

_AND_BYTES, _CHOICE_BYTES = 32, 8
"""Two blocks for a gate, and about half of one for a bit that the evaluator brings."""


@dataclass(frozen=True)
class CheckCosts:
    """Of one test, of a candidate of another party.

    labels:        combinations of values that are told apart, in all histograms.
    record_bytes:  sent for every record below the candidate's node.
    gates:         AND gates for every group and child; gate_bytes: sent for these.
    """

    labels: int
    record_bytes: int
    gates: int
    gate_bytes: int

    def bytes_of(self, n_records: int, n_groups: int, n_children: int) -> int:
        return self.record_bytes * n_records + self.gate_bytes * n_groups * n_children


def costs_of(protected: Protected, n_records: int, n_children: int) -> CheckCosts:
    """The costs where every group is asked all; ``n_records``: common records of the run, on which widths depend."""
    shapes = [protected.histogram(view, n_records, n_children, n_records) for view in protected.views]
    by_view = [shape.correction_bytes + _CHOICE_BYTES * shape.depth for shape in shapes]
    labels = sum(view.n_labels for view in protected.views)
    return CheckCosts(labels, sum(by_view), *of_group(protected.criteria, n_records))


def of_group(criteria: Sequence[Criterion], n_records: int) -> tuple[int, int]:
    """AND gates, and bytes sent for these, for a group and child that is asked all, in a table of so many records."""
    gates, bits = (sum(of) for of in zip(*(of(criteria, n_records) for of in _PARTS), strict=True))
    return gates, sent_for(gates, bits)


def sent_for(gates: int, bits: int) -> int:
    """Bytes for so many AND gates and bits that the evaluator brings."""
    return _AND_BYTES * gates + _CHOICE_BYTES * bits


def _of_values(judged: Sequence[Criterion], n_records: int) -> tuple[int, int]:
    """AND gates and bits brought, for a group and child, of criteria that compare numbers."""
    gates, bits = 0, 0
    width = max(form.bits(n_records) for c in judged for case in c.cases for form in case)
    for (rule, n_values), criteria in alike(
        [criterion for criterion in judged if not criterion.rule.of_zeros]
    ).items():
        n_cases = sum(len(criterion.cases) for criterion in criteria)
        gates += n_cases * (criterion_circuit(rule, width, n_values).and_gates + 1)
        bits += n_cases * n_values * width
    return gates, bits


def _of_zeros(judged: Sequence[Criterion], n_records: int) -> tuple[int, int]:
    """The same of those that look at zeros alone: at each number once."""
    measures = tuple(dict.fromkeys(m for c in judged for case in c.cases for f in case for m, _ in f.terms))
    forms = ZeroForms(judged, measures)
    width, gates = forms.bits(n_records), 0
    for (rule, n_values), criteria in alike(forms.criteria).items():
        n_cases = sum(len(criterion.cases) for criterion in criteria)
        gates += n_cases * (by_zeros_circuit(rule, n_values).and_gates + 1)
    if not forms.forms:
        return 0, 0
    return gates + len(forms.forms) * zero_circuit(width).and_gates, len(forms.forms) * width


_PARTS = _of_values, _of_zeros
