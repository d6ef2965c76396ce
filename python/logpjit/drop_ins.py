"""Functions under the names and argument orders trainers already call.

Each takes torch tensors and returns fp32, whatever the logits' dtype; unlike
most of what they replace they allocate nothing of the logits' size but the
gradient.
"""

from .operations import entropy, logprobs, row_values


def logprobs_from_logits(logits, labels, inplace_backward=True):
    """verl: log-probabilities of `labels`, in their shape. As there, the
    backward writes the gradient over the logits unless told not to; torch raises
    when something else still needs them."""
    return logprobs(
        logits, labels, in_place=inplace_backward and _may_overwrite(logits)
    )


def _may_overwrite(logits):
    import torch

    return not torch.compiler.is_compiling() and type(logits) is torch.Tensor


def selective_log_softmax(logits, index):
    """TRL: log_softmax(logits, -1) at `index`, one per row or K per row."""
    return logprobs(logits, index)


def entropy_from_logits(logits, chunk_size=None):
    """TRL and verl: entropy of each row. `chunk_size` is not needed: nothing is
    held that it would bound."""
    return entropy(logits)


def cross_entropy_loss(
    logits,
    labels,
    precomputed_lse=None,
    label_smoothing=0.0,
    logit_scale=1.0,
    lse_square_scale=0.0,
    ignore_index=-100,
    inplace_backward=False,
    process_group=None,
):
    """flash-attn's Triton cross entropy: (losses, z_losses), both [N] fp32, for
    logits [N, V]; z_losses (already part of the losses) have no gradient. With
    `process_group` each rank holds an equal slice of the vocabulary, and labels
    are of the whole. `precomputed_lse` is not needed and not read. Smoothing
    costs one more read of the logits and, in the backward, one more write."""
    if not logit_scale > 0:
        raise ValueError(f"logit_scale: {logit_scale} is not above 0")
    options = {"temperature": 1.0 / logit_scale, "ignore_index": ignore_index}
    if process_group is not None:
        if label_smoothing:
            raise ValueError("label_smoothing: not possible with process_group")
        from .vocab_parallel import row_values as values_of

        options["group"] = process_group
    else:
        values_of = row_values
        options["in_place"] = inplace_backward and not label_smoothing
    if not label_smoothing and not lse_square_scale:
        losses = -values_of(logits, labels, outputs=("logp",), **options).logp
        return losses, losses.new_zeros(losses.shape)
    found = values_of(logits, labels, outputs=("logp", "lse"), **options)
    losses = -found.logp
    if label_smoothing:
        import torch

        mean = logits.mean(-1, dtype=torch.float32) * logit_scale
        losses = (1 - label_smoothing) * losses + label_smoothing * (
            found.lse - mean
        )
    return _with_z(losses, found.lse, labels, lse_square_scale, ignore_index)


def _with_z(losses, lse, labels, scale, ignore_index):
    z_losses = scale * lse * lse
    ignored = labels == ignore_index
    losses = (losses + z_losses).masked_fill(ignored, 0)
    return losses, z_losses.detach().masked_fill(ignored, 0)
