// Package arena, at the import path arena/switched of this module, is Go's arena experiment with a
// backend that build tags choose, so that a program compares them without changing its source:
//
//	go test -bench .                                              Tenure
//	go test -bench . -tags tenure_heap                            the heap; Free does nothing
//	GOEXPERIMENT=arenas go test -bench . -tags tenure_experiment  the experiment's own package
//
// Under go test, Tenure's arenas are in guard mode unless the environment has TENURE_GUARD=0.
package arena
