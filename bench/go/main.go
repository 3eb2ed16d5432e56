// Tenure-go-bench runs the benchmarks of the Go module: tenure-go-bench [--rounds N] [--out FILE]
// [--only PART]. It is built with GOEXPERIMENT=arenas, so that Go's own experiment is a subject too.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// All workloads, in the order of the output.
func workloads() []workload {
	return slices.Concat(objectWorkloads(), bigWorkloads(), bufferWorkloads(), httpWorkloads(),
		requestWorkloads(), regimeWorkloads())
}

func find(name string) *workload {
	for _, w := range workloads() {
		if w.name == name {
			return &w
		}
	}
	panic("no workload " + name)
}

// The two ways in which this program starts itself; they answer in JSON.
func runAsChild(arguments []string) bool {
	var answer any
	switch {
	case len(arguments) == 3 && arguments[0] == "--workload":
		rounds, _ := strconv.Atoi(arguments[2])
		answer = play(find(arguments[1]), rounds)
	case len(arguments) == 3 && arguments[0] == "--alone":
		w := find(arguments[1])
		at := slices.IndexFunc(w.subjects, func(s subject) bool { return s.name == arguments[2] })
		answer = runAlone(w, &w.subjects[at])
	default:
		return false
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		panic(err)
	}
	return true
}

func main() {
	if runAsChild(os.Args[1:]) {
		return
	}
	rounds := flag.Int("rounds", 61, "rounds of each workload; at least 51 for a result worth showing")
	out := flag.String("out", "build/bench/go.json", "the rows")
	only := flag.String("only", "", "run the workloads with this in their names")
	flag.Parse()
	var rows []row
	for _, w := range workloads() {
		if strings.Contains(w.name, *only) {
			rows = append(rows, runWorkload(&w, *rounds)...)
		}
	}
	printTable(rows)
	if err := writeJSON(rows, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("\n" + *out)
}
