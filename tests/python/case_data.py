"""Reads the conformance cases: literal and generated numbers, layouts."""

import json
import math
import os

from torch_device import torch

FILE = os.path.join(
    os.path.dirname(__file__), "../conformance/data/logprob-cases.json"
)
DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}


def load():
    with open(FILE, encoding="utf-8") as file:
        return json.load(file)


def numbers(value):
    """Nested lists with "inf", "-inf" and "nan" as strings."""
    if isinstance(value, list):
        return [numbers(item) for item in value]
    return float(value)


def tensor_of(value, dtype=torch.float64):
    return torch.tensor(numbers(value), dtype=dtype)


def _span(part, length):
    if part == "*":
        return slice(None)
    if isinstance(part, list):
        return slice(*part)
    return slice(part, part + 1)


def matrix(given, rows, columns, dtype, device):
    """[rows, columns] in the case's dtype."""
    if isinstance(given, list):
        made = tensor_of(given).reshape(rows, columns).to(dtype)
        return made.to(device)
    if given["gen"] == "const":
        made = torch.full((rows, columns), given["value"], dtype=dtype)
        made = made.to(device)
    else:
        i = torch.arange(rows, device=device)[:, None] * given["a"]
        j = torch.arange(columns, device=device) * given["b"]
        made = (i + j + given["c"]) % given["m"]
        made = (made / given["div"] - given["sub"]).to(dtype)
    for row, column, value in given.get("set", []):
        made[_span(row, rows), _span(column, columns)] = float(value)
    return made


def ids(given, rows, device):
    if given is None:
        return None
    if isinstance(given, list):
        return torch.tensor(given, dtype=torch.int64, device=device)
    if given["gen"] == "const":
        made = torch.full((rows,), given["value"], device=device)
    else:
        made = torch.arange(rows, device=device) * given["a"] + given["c"]
        made = made % given["m"]
    for row, value in given.get("set", []):
        made[row] = value
    return made


def upstream(given, shape, device):
    """fp32 in this shape; its own layout where the case has one."""
    if isinstance(given, dict) and "storage" in given:
        store = tensor_of(given["storage"], torch.float32).to(device)
        return store.as_strided(
            given["shape"], given["strides"], given["offset"]
        )
    if isinstance(given, dict):
        return torch.full(shape, given["value"], device=device)
    return tensor_of(given, torch.float32).reshape(shape).to(device)


def laid_out(plain, case):
    """The same values in the case's strides and offset."""
    layout = case["extra"].get("layout")
    if layout is None:
        return plain.reshape(case["shape"])
    fill = math.nan if layout["outside"] == "nan" else 0
    store = torch.full(
        (layout["storage_numel"],), fill, dtype=plain.dtype, device=plain.device
    )
    view = store.as_strided(case["shape"], case["strides"], layout["offset"])
    view.copy_(plain.reshape(case["shape"]))
    return view
