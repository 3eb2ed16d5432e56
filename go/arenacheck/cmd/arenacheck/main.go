// Arenacheck reports arena values that outlive their arena: arenacheck ./..., or
// go vet -vettool=$(which arenacheck) ./...
package main

import (
	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/tenure-alloc/tenure/go/arenacheck"
)

func main() { singlechecker.Main(arenacheck.Analyzer) }
