"""The operations in torch's own, row chunk by row chunk: what is left where the
library cannot compute. Same values to fp32 rounding, same edge cases.
"""

import math

import torch

_NAN = float("nan")
_INF = float("inf")


def _budget(device_type):
    """Most logits in one chunk."""
    return 2**24 if device_type == "cpu" else 2**27


class _Rows:
    """The rows of a call: taken and put by number, in chunks of bounded size."""

    def __init__(self, logits, row_index, device_type):
        total = math.prod(logits.shape[:-1])
        self._index = row_index
        self.count = total if row_index is None else row_index.shape[0]
        self._step = max(1, _budget(device_type) // logits.shape[-1])
        self._device = logits.device

    def chunks(self):
        for begin in range(0, self.count, self._step):
            yield slice(begin, min(begin + self._step, self.count))

    def _numbers(self, chunk):
        if self._index is not None:
            return self._index[chunk]
        return torch.arange(chunk.start, chunk.stop, device=self._device)

    def _place(self, matrix, chunk):
        numbers = self._numbers(chunk)
        if matrix.dim() == 2:
            return (numbers,)
        inner = matrix.shape[1]
        return (numbers // inner, numbers % inner)

    def take(self, matrix, chunk):
        if matrix.dim() == 2 and self._index is None:
            return matrix[chunk]
        return matrix[self._place(matrix, chunk)]

    def put(self, matrix, chunk, rows):
        if matrix.dim() == 2 and self._index is None:
            matrix[chunk] = rows
        else:
            matrix[self._place(matrix, chunk)] = rows


def _validate(logits, ids, row_index, options):
    """What the library does when asked to."""
    if options.carried is None or not options.carried.validate:
        return
    if row_index is not None:
        _check_range(row_index, "row_index", math.prod(logits.shape[:-1]))
    if ids is not None:
        unless = options.carried.ignore_id
        _check_range(ids[ids != unless], "ids", options.vocab)


def _check_range(numbers, name, end):
    wrong = numbers[(numbers < 0) | (numbers >= end)]
    if wrong.numel():
        raise ValueError(
            f"{name}: {wrong[0].item()} is not between 0 and {end - 1}"
        )


def _matrix(logits):
    """[N, V] or [B, S, V]."""
    if logits.dim() <= 3:
        return logits
    return logits.view(-1, *logits.shape[-2:])


def _transformed(x, temperature, softcap, temperatures, chunk):
    """(z, dz/dx) of fp32 rows; a masked logit stays masked under the cap."""
    slope = None
    z = x
    if softcap:
        bent = torch.tanh(x / softcap)
        z = torch.where(x == -_INF, x, bent * softcap)
        slope = torch.where(x == -_INF, 0, 1 - bent * bent)
    if temperatures is not None:
        t = temperatures.reshape(-1)[chunk, None]
    elif temperature != 1:
        t = temperature
    else:
        return z, slope
    return z / t, (1 / t if slope is None else slope / t)


def _shifted(z, maximum):
    """z - max; -inf where there is nothing to subtract from."""
    return torch.where(z == -_INF, -_INF, z - maximum[:, None])


def _statistics(z):
    maximum = z.amax(-1)
    d = _shifted(z, maximum)
    e = d.exp()
    return maximum, d, e, e.sum(-1)


def _live_ids(ids, chunk, vocab, trailing):
    """(ids [n, K] with 0 for dead ones, whether they are live)."""
    flat = ids.reshape(-1, ids.shape[-1]) if trailing else ids.reshape(-1, 1)
    part = flat[chunk].long()
    live = (part >= 0) & (part < vocab)
    return torch.where(live, part, 0), live


def _flat(tensor, chunk, trailing):
    if trailing:
        return tensor.reshape(-1, tensor.shape[-1])[chunk]
    return tensor.reshape(-1, 1)[chunk]


class Eager:
    name = "torch"

    def row_forward(
        self, logits, ids, row_index, temperatures, options, values, stats
    ):
        _validate(logits, ids, row_index, options)
        logits = _matrix(logits)
        rows = _Rows(logits, row_index, logits.device.type)
        for chunk in rows.chunks():
            x = rows.take(logits, chunk)[:, : options.vocab].float()
            z, _ = _transformed(
                x, options.temperature, options.softcap, temperatures, chunk
            )
            found = self._values(z, ids, chunk, options, values)
            for target, value in zip(values, found):
                if target is not None:
                    target.view(rows.count, -1)[chunk] = value.to(target.dtype)
            if stats is not None:
                maximum, _, _, total = _statistics(z)
                stats[0, chunk] = maximum
                stats[1, chunk] = total

    def _values(self, z, ids, chunk, options, wanted):
        maximum, d, e, s = _statistics(z)
        dead = (maximum == -_INF)[:, None]
        log_s = s.log()[:, None]
        nan = torch.full_like(log_s, _NAN)
        logp = None
        if wanted[0] is not None:
            at, live = _live_ids(ids, chunk, options.vocab, options.trailing)
            logp = torch.where(live, d.gather(1, at) - log_s, 0)
            logp = torch.where(dead & live, _NAN, logp)
        weighted = torch.where(e == 0, 0, e * d).sum(-1)[:, None]
        h = torch.where(dead, nan, log_s - weighted / s[:, None])
        lse = maximum[:, None] + log_s
        squares = torch.where(
            dead, nan, (e * e).sum(-1)[:, None] / (s * s)[:, None]
        )
        argmax = z.argmax(-1)[:, None]
        broken = dead | torch.isnan(s)[:, None]
        return logp, h, lse, squares, torch.where(broken, -1, argmax)

    def row_backward(
        self,
        logits,
        ids,
        row_index,
        temperatures,
        options,
        stats,
        upstream,
        gradient,
        accumulate,
        in_place,
    ):
        logits, out = _matrix(logits), _matrix(gradient)
        rows = _Rows(logits, row_index, logits.device.type)
        for chunk in rows.chunks():
            x = rows.take(logits, chunk).float()
            z, slope = _transformed(
                x[:, : options.vocab],
                options.temperature,
                options.softcap,
                temperatures,
                chunk,
            )
            made = self._gradient(z, ids, chunk, options, stats, upstream)
            if slope is not None:
                made = torch.where(made == 0, 0, made * slope)
            whole = torch.zeros_like(x)
            whole[:, : options.vocab] = made
            if accumulate:
                whole += rows.take(out, chunk).float()
            rows.put(out, chunk, whole.to(out.dtype))

    def _gradient(self, z, ids, chunk, options, stats, upstream):
        d_logp, d_entropy, d_lse, d_squares = upstream
        maximum, total = stats[0, chunk], stats[1, chunk]
        d = _shifted(z, maximum)
        p = d.exp() / total[:, None]
        factor = torch.zeros_like(p)
        any_live = torch.zeros_like(maximum, dtype=torch.bool)
        one_hot = None
        if d_logp is not None:
            at, live = _live_ids(ids, chunk, options.vocab, options.trailing)
            g = torch.where(live, _flat(d_logp, chunk, options.trailing), 0)
            factor -= g.sum(-1, keepdim=True)
            any_live |= (g != 0).any(-1)
            one_hot = torch.zeros_like(p).scatter_add_(1, at, g)
        if d_entropy is not None:
            g = d_entropy.reshape(-1)[chunk]
            h = stats[options.saved_rows[0], chunk][:, None]
            log_p = torch.where(p == 0, 0, d - total.log()[:, None])
            factor -= torch.where(g == 0, 0, g)[:, None] * (log_p + h)
            any_live |= g != 0
        if d_lse is not None:
            g = d_lse.reshape(-1)[chunk]
            factor += g[:, None]
            any_live |= g != 0
        if d_squares is not None:
            g = d_squares.reshape(-1)[chunk][:, None]
            c = stats[options.saved_rows[1], chunk][:, None]
            factor += 2 * torch.where(g == 0, 0, g * (p - c))
            any_live |= g[:, 0] != 0
        made = torch.where(p == 0, 0, p * factor)
        if one_hot is not None:
            made = made + one_hot
        used = any_live & (maximum != -_INF)
        return torch.where(used[:, None], made, 0)

    def row_with_grad(
        self,
        logits,
        ids,
        row_index,
        temperatures,
        options,
        logp,
        stats,
        upstream,
        gradient,
        accumulate,
        in_place,
    ):
        head = (logits, ids, row_index, temperatures, options)
        self.row_forward(*head, (logp, None, None, None, None), stats)
        self.row_backward(
            *head,
            stats,
            (upstream, None, None, None),
            gradient,
            accumulate,
            in_place,
        )

    def _sides(self, rows, matrices, temperatures, options, chunk):
        """(z, slope) of student and teacher."""
        return [
            _transformed(
                rows.take(matrix, chunk)[:, : options.vocab].float(),
                scalar,
                cap,
                per_row,
                chunk,
            )
            for matrix, scalar, cap, per_row in zip(
                matrices, options.temperatures, options.softcaps, temperatures
            )
        ]

    def kl_forward(
        self, student, teacher, row_index, temperatures, options, value, stats
    ):
        _validate(student, None, row_index, options)
        matrices = (_matrix(student), _matrix(teacher))
        rows = _Rows(matrices[0], row_index, student.device.type)
        for chunk in rows.chunks():
            (z, _), (y, _) = self._sides(
                rows, matrices, temperatures, options, chunk
            )
            found = (_statistics(z), _statistics(y))
            a, b = found if options.reverse else found[::-1]
            value.view(-1)[chunk] = _divergence(a, b)
            if stats is not None:
                for row, side in ((1, found[0]), (3, found[1])):
                    stats[row, chunk] = side[0]
                    stats[row + 1, chunk] = side[3]

    def kl_backward(
        self,
        student,
        teacher,
        row_index,
        temperatures,
        options,
        stats,
        upstream,
        gradients,
    ):
        matrices = (_matrix(student), _matrix(teacher))
        rows = _Rows(matrices[0], row_index, student.device.type)
        for chunk in rows.chunks():
            sides = self._sides(rows, matrices, temperatures, options, chunk)
            made = self._kl_gradients(sides, stats, upstream, options, chunk)
            for target, rowwise, (_, slope) in zip(gradients, made, sides):
                if target is None:
                    continue
                if slope is not None:
                    rowwise = torch.where(rowwise == 0, 0, rowwise * slope)
                whole = torch.zeros(
                    (rowwise.shape[0], target.shape[-1]), device=target.device
                )
                whole[:, : options.vocab] = rowwise
                rows.put(_matrix(target), chunk, whole.to(target.dtype))

    def _kl_gradients(self, sides, stats, upstream, options, chunk):
        """Of student and teacher."""
        g = upstream.reshape(-1)[chunk][:, None]
        parts = []
        for (z, _), row in zip(sides, (1, 3)):
            maximum, total = stats[row, chunk], stats[row + 1, chunk]
            d = _shifted(z, maximum)
            parts.append(
                (d.exp() / total[:, None], d - total.log()[:, None], maximum)
            )
        (p_a, log_a, m_a), (p_b, log_b, m_b) = (
            parts if options.reverse else parts[::-1]
        )
        value = stats[0, chunk][:, None]
        of_a = torch.where(p_a == 0, 0, g * p_a * (log_a - log_b - value))
        of_a = torch.where(
            (value == _INF) & (log_a > -_INF), torch.full_like(of_a, _NAN), of_a
        )
        of_b = torch.where(log_b == -_INF, 0, g * (p_b - p_a))
        unused = (g == 0) | ((m_a == -_INF) | (m_b == -_INF))[:, None]
        made = [torch.where(unused, 0, of_a), torch.where(unused, 0, of_b)]
        return made if options.reverse else made[::-1]


def _divergence(a, b):
    m_a, d_a, e_a, s_a = a
    m_b, d_b, _, s_b = b
    mass = torch.where((e_a == 0) | (d_b == -_INF), 0, e_a * (d_a - d_b))
    value = mass.sum(-1) / s_a + (s_b / s_a).log()
    mismatch = ((d_a > -_INF) & (d_b == -_INF)).any(-1)
    value = torch.where(mismatch & ~torch.isnan(s_a + s_b), _INF, value)
    return torch.where((m_a == -_INF) | (m_b == -_INF), _NAN, value)
