"""The dtypes that travel between the box and the tester, by their names."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

NUMPY_DTYPES = {
    name: np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
if np.dtype(np.longdouble).itemsize > 8:
    NUMPY_DTYPES[np.dtype(np.longdouble).name] = np.dtype(np.longdouble)

TORCH_DTYPES: dict[str, tuple[torch.dtype, np.dtype[Any]]] = {
    name: (getattr(torch, name), NUMPY_DTYPES[name])
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
TORCH_DTYPES["bfloat16"] = (torch.bfloat16, NUMPY_DTYPES["int16"])
TORCH_NAMES = {dtype: name for name, (dtype, _) in TORCH_DTYPES.items()}

SCALARS = {dtype.type: name for name, dtype in NUMPY_DTYPES.items()}
