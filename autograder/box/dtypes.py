"""The dtypes that travel between the box and the tester, by their names."""

from __future__ import annotations

from typing import Any

import numpy as np

from lesson_kit.tensors import installed, torch

NUMPY_DTYPES = {
    name: np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
if np.dtype(np.longdouble).itemsize > 8:
    NUMPY_DTYPES[np.dtype(np.longdouble).name] = np.dtype(np.longdouble)

#: With the dtypes of the bytes; none where torch is not installed.
TORCH_DTYPES: dict[str, tuple[torch.dtype, np.dtype[Any]]] = {}
if installed():
    for _name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    ):
        TORCH_DTYPES[_name] = (getattr(torch, _name), NUMPY_DTYPES[_name])
    TORCH_DTYPES["bfloat16"] = (torch.bfloat16, NUMPY_DTYPES["int16"])
TORCH_NAMES = {dtype: name for name, (dtype, _) in TORCH_DTYPES.items()}

SCALARS = {dtype.type: name for name, dtype in NUMPY_DTYPES.items()}
