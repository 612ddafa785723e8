"""Tests run stricter than users do: no implicit promotion of dtypes or ranks inside JAX."""

from __future__ import annotations

import sys

import jax

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_platforms", "cpu")

# OpenVINO reports its use over the network from a forked process, of which JAX warns; without that package it uses a stub.
sys.modules["openvino_telemetry"] = None  # pyright: ignore[reportArgumentType]
