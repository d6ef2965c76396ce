"""The operations on torch tensors."""
