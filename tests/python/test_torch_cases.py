"""Every conformance case through the package; what is no number of this
package's operations is a test elsewhere, and said so."""

import math

import case_data
import pytest
from case_data import DTYPES, tensor_of
from torch_device import DEVICES, torch

import logpjit

CASES = case_data.load()
MOST_ON_CPU = 200_000  # logits; the CPU device would take minutes


def skip_unless_possible(case, device):
    size = math.prod(case["shape"])
    layout = case["extra"].get("layout")
    size = max(size, layout["storage_numel"] if layout else 0)
    if device == "cpu" and size > MOST_ON_CPU:
        pytest.skip("too large for the CPU device: needs a GPU")
    if device == "cuda" and size * 2 * 3 > torch.cuda.mem_get_info()[0]:
        pytest.skip("needs more GPU memory")
    if case["op"] == "topk":
        pytest.skip("top-k is no operation of logpjit")


def compare(found, right, tolerance):
    right = tensor_of(right).reshape(found.shape)
    found = found.detach().double().cpu()
    finite = right.isfinite()
    same = (found == right) | (found.isnan() & right.isnan())
    assert same[~finite].all(), (found, right)
    limit = tolerance.get("abs", 0) + tolerance.get("rel", 0) * right.abs()
    apart = (found - right).abs()
    assert (apart <= limit)[finite].all(), (found, right)


class Run:
    """One case on one device in one dtype."""

    def __init__(self, case, device, dtype):
        self.case, self.extra = case, case["extra"]
        self.expected = case["expected"]
        shape = case["shape"]
        rows, columns = math.prod(shape[:-1]), shape[-1]
        plain = case_data.matrix(case["logits"], rows, columns, dtype, device)
        self.logits = case_data.laid_out(plain, case).requires_grad_()
        self.ids = case_data.ids(case["ids"], rows, device)
        if self.ids is not None and not isinstance(case["ids"], list):
            self.ids = self.ids.reshape(shape[:-1])
        self.teacher = None
        if "teacher" in self.extra:
            self.teacher = case_data.matrix(
                self.extra["teacher"], rows, columns, dtype, device
            ).reshape(shape)
        self.device = device
        self.options = {"temperature": self.extra.get("temperature", 1.0)}
        self.rows = self.expected.get("rows")

    def some(self, value):
        if self.rows is None:
            return value
        return value.reshape(-1)[torch.tensor(self.rows, device=value.device)]

    def values(self):
        """(logp, entropy), one of them perhaps None."""
        x = self.logits
        if self.ids is None:
            return None, logpjit.entropy(x, **self.options)
        if "entropy" in self.expected or "grad_entropy" in self.extra:
            return logpjit.logprobs_and_entropy(x, self.ids, **self.options)
        return logpjit.logprobs(x, self.ids, **self.options), None

    def check_values(self):
        tolerance = self.expected.get("tol", {})
        logp, entropy = self.values()
        if "logp" in self.expected:
            compare(self.some(logp), self.expected["logp"], tolerance)
        if "entropy" in self.expected:
            compare(self.some(entropy), self.expected["entropy"], tolerance)
        return logp, entropy

    def check_gradient(self, logp, entropy):
        pairs = []
        for value, name in (
            (logp, "grad_out"),
            (logp, "grad_logp"),
            (entropy, "grad_entropy"),
        ):
            if name in self.extra and value is not None:
                given = self.extra[name]
                g = case_data.upstream(given, value.shape, self.device)
                pairs.append((value, g))
        if not pairs:
            return
        (made,) = torch.autograd.grad(
            [value for value, _ in pairs],
            [self.logits],
            [g for _, g in pairs],
            retain_graph=True,
        )
        self.check_gradient_values(made, self.expected)

    def check_gradient_values(self, made, expected, name="dlogits"):
        tolerance = expected.get("tol_grad", {})
        flat = made.reshape(-1, made.shape[-1])
        if name in expected:
            compare(made, expected[name], tolerance)
        for row, values in expected.get("dlogits_rows", {}).items():
            compare(flat[int(row)], values, tolerance)
        for row, column, value in expected.get("dlogits_probe", []):
            compare(flat[row, column], value, tolerance)
        for row in expected.get("exact_zero_rows", []):
            assert not flat[row].any()
        for row, column in expected.get("exact_zero", []):
            assert flat[row, column] == 0
        if "dlogits_bf16_rne" in expected:
            compare(made, expected["dlogits_bf16_rne"], {})
        if "dlogits_shape" in expected:
            assert list(made.shape) == expected["dlogits_shape"]

    def check_kl(self, direction):
        name = f"kl_{direction}"
        if name not in self.expected:
            return
        value = logpjit.kl(self.logits, self.teacher, direction=direction)
        compare(value, self.expected[name], self.expected.get("tol", {}))
        wanted = f"dlogits_{direction}"
        if wanted in self.expected:
            g = case_data.upstream(
                self.extra["grad_kl"], value.shape, self.device
            )
            (made,) = torch.autograd.grad(value, self.logits, g)
            compare(
                made, self.expected[wanted], self.expected.get("tol_grad", {})
            )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case, device):
    skip_unless_possible(case, device)
    if case["shape"][-1] == 0:
        with pytest.raises(ValueError, match="V is 0"):
            Run(case, device, DTYPES[case["dtype"]]).values()
        return
    if case["kind"] == "stride-vocab":
        with pytest.raises(ValueError, match="contiguous"):
            Run(case, device, DTYPES[case["dtype"]]).values()
        return
    outputs = []
    for name in case["extra"].get("run_with_dtypes", [case["dtype"]]):
        run = Run(case, device, DTYPES[name])
        logp, entropy = None, None
        if run.ids is not None or "entropy" in case["expected"]:
            logp, entropy = run.check_values()
            run.check_gradient(logp, entropy)
            outputs.append(logp if logp is not None else entropy)
        for direction in ("forward", "reverse"):
            run.check_kl(direction)
    for output in outputs[1:]:
        assert torch.equal(output, outputs[0]), "bits depend on the dtype"


@pytest.mark.parametrize("device", DEVICES)
def test_id_dtypes_give_equal_bits(device):
    (case,) = [c for c in CASES if c["id"] == "BL07a"]
    run = Run(case, device, torch.float32)
    found = [
        logpjit.logprobs(run.logits, run.ids.to(dtype))
        for dtype in (torch.int32, torch.int64)
    ]
    assert torch.equal(*found)
    compare(found[0], case["expected"]["logp"], case["expected"]["tol"])
