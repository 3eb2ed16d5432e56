"""numpy_core.py [FILE...]   runs NumPy's own tests of its core with numpy_pool for every array.

By default those of creation, resizing, indexing, iteration and dtypes."""

import pathlib
import sys

import numpy
import pytest

import tenure

FILES = [
    "test_array_coercion.py",
    "test_dtype.py",
    "test_indexing.py",
    "test_item_selection.py",
    "test_multiarray.py",
    "test_nditer.py",
    "test_numeric.py",
    "test_records.py",
    "test_regression.py",
    "test_shape_base.py",
    "test_ufunc.py",
]

if __name__ == "__main__":
    where = pathlib.Path(numpy.__file__).parent / "_core/tests"
    files = [str(where / name) for name in sys.argv[1:] or FILES]
    with tenure.numpy_pool(name="numpy's tests") as pool:
        status = pytest.main(["-q", "-p", "no:cacheprovider", "-m", "not slow", *files])
        pool.verify()
        assert pool.stats().refills > 100, "the tests did not use the pool"
    sys.exit(status)
