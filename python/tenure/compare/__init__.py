"""python -m tenure compare {arena,pool,regimes,pauses}: the allocators that published demonstrations
compare, with the same work on this machine."""
