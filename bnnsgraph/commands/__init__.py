"""The commands of ``bnnsgraph``, one module each, and what they share. None imports JAX before it needs it."""
