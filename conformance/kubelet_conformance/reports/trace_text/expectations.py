"""What was expected where a contract is broken, and what happened: the sentence of a break may say either."""

from kubelet_conformance.contract.verdicts import Evidence
from kubelet_conformance.run_record.model import ContractResult, Proof

_BEFORE = " before this"


def is_expectation(proof: Proof | Evidence) -> bool:
    """Whether the sentence of a break says what was expected and did not come."""
    return proof.due is not None or proof.text.endswith(_BEFORE)


def in_one_sentence(proof: Proof | Evidence) -> str:
    """The sentence of a break; one that says what was expected says so."""
    return f"expected: {proof.text.removesuffix(_BEFORE)}" if is_expectation(proof) else proof.text


def offending(proof: Proof) -> int:
    """The record with which it went wrong: where nothing came, the one after which it was expected."""
    if not proof.seq:
        return 0
    return proof.seq[-2:][0] if proof.due is not None else proof.seq[-1]


def expected(result: ContractResult, proof: Proof) -> str:
    """What was expected, as a sentence."""
    if is_expectation(proof):
        return proof.text.removesuffix(_BEFORE)
    return result.sentence(proof.clause)


def happened(proof: Proof, line: str) -> str:
    """What happened, as a sentence; `line` is the record with which it went wrong, in words."""
    if proof.due is not None:
        return f"{line}; what was expected had not come by #{max(proof.seq, default=0)}".removeprefix("; ")
    if proof.text.endswith(_BEFORE):
        return f"{line or f'#{offending(proof)}'} came first"
    return proof.text
