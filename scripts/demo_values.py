# The demo's own eyes: makes bf16 logits, computes log-probabilities in float64
# with nothing of the project's, and prints both side by side.
#
#   demo_values.py make ROWS VOCAB LOGITS.npy IDS.npy
#   demo_values.py compare LOGITS.npy IDS.npy LOGP.npy
import ast
import math
import random
import struct
import sys
from array import array

CODES = {"<u2": "H", "<i8": "q", "<i4": "i", "<f4": "f"}
TOLERANCE = 2e-6  # relative, past one: an fp32 result of a float64 value
SHOWN = 24


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    size, start = struct.unpack("<H", data[8:10])[0], 10
    header = ast.literal_eval(data[start : start + size].decode("latin1"))
    values = array(CODES[header["descr"]])
    values.frombytes(data[start + size :])
    return header["shape"], values


def write(path, descr, shape, values):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(-(10 + len(header) + 1) % 64 + len(header)) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)))
        file.write(header.encode("latin1") + values.tobytes())


def from_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def make(rows, vocab, logits_path, ids_path):
    """Peaked, long-tailed rows, as trained models have them."""
    chance = random.Random(151936)
    logits = array("H")
    for _ in range(rows):
        for _ in range(vocab):
            value = chance.gauss(-4, 2.5) + 12 * (chance.random() < 2e-4)
            logits.append(struct.unpack("<I", struct.pack("<f", value))[0] >> 16)
    ids = array("q", (chance.randrange(vocab) for _ in range(rows)))
    write(logits_path, "<u2", (rows, vocab), logits)
    write(ids_path, "<i8", (rows,), ids)


def reference(row, token):
    if not 0 <= token < len(row):
        return 0.0  # an ignored token
    values = {bits: from_bf16(bits) for bits in set(row)}
    top = max(values.values())
    weights = {bits: math.exp(value - top) for bits, value in values.items()}
    return values[row[token]] - top - math.log(math.fsum(map(weights.get, row)))


def compare(logits_path, ids_path, logp_path):
    (rows, vocab), logits = read(logits_path)
    ids, logp = read(ids_path)[1], read(logp_path)[1]
    print(f"{'row':>4} {'token':>7} {'logpjit (fp32)':>16} {'float64':>20}  error")
    errors = []
    for i in range(rows):
        right = reference(logits[i * vocab : (i + 1) * vocab], ids[i])
        error = abs(logp[i] - right)
        errors.append(error / max(1.0, abs(right)))
        if i < SHOWN:
            print(f"{i:4} {ids[i]:7} {logp[i]:16.9f} {right:20.15f}  {error:.1e}")
    if rows > SHOWN:
        print(f"  .. {rows - SHOWN} more rows")
    # Not max() alone: it may pass over a NaN.
    worst = math.nan if any(map(math.isnan, errors)) else max(errors)
    print(f"{rows} rows of {vocab}: error at most {worst:.1e}", end=", ")
    print(f"{TOLERANCE:.0e} allowed")
    return 0 if worst <= TOLERANCE else 1


def main(arguments):
    if arguments[0] == "make":
        make(int(arguments[1]), int(arguments[2]), *arguments[3:])
        return 0
    return compare(*arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
