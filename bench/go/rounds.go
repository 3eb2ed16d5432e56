package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"time"
)

// One subject at one workload. It does the work `repeats` times; a workload that asks for percentiles
// records its steps in h, which is nil while the work does not count.
type work func(repeats int, h *histogram)

type subject struct {
	name string
	make func() work
}

type workload struct {
	name     string
	ops      float64 // operations in one repeat; ns_per_op is per operation
	subjects []subject
	rounds   int // at most; 0: as many as were asked for
	// Of a run in a process of its own, which has the fields of the collector; 0: all runs are in one
	// process and as long as runLength.
	repeats int
}

// A line of the output.
type row struct {
	workload, subject string
	nsPerOp           float64
	fields            map[string]float64
	ratio             map[string]interval
}

const (
	runLength    = 20 * time.Millisecond
	warmUpRounds = 3
)

// The i-th of n subjects in a round: rotated, and reversed in every other round.
func turn(round, i, n int) int {
	at := (round/2 + i) % n
	if round%2 == 0 {
		return at
	}
	return n - 1 - at
}

// Runs and times the work, from a heap that was just collected.
func sample(w *workload, do work, repeats int, h *histogram) (nsPerOp float64) {
	runtime.GC()
	start := time.Now()
	do(repeats, h)
	return float64(time.Since(start)) / (float64(repeats) * w.ops)
}

// Grows in steps, so that one-time costs do not decide.
func calibrate(w *workload, do work) int {
	for repeats := 1.0; ; {
		ns := math.Inf(1)
		for range 3 {
			ns = min(ns, sample(w, do, int(repeats), nil)*repeats*w.ops)
		}
		wanted := max(1, repeats*float64(runLength)/ns)
		if wanted < repeats*1.5 {
			return int(wanted)
		}
		repeats = math.Ceil(min(wanted, repeats*16))
	}
}

// Runs every subject of a workload once a round, in this process.
func play(w *workload, rounds int) []row {
	n := len(w.subjects)
	works, repeats, times := make([]work, n), make([]int, n), make([][]float64, n)
	histograms := make([]histogram, n)
	for i, s := range w.subjects {
		works[i] = s.make()
		repeats[i] = calibrate(w, works[i])
	}
	for range warmUpRounds {
		for i, do := range works {
			sample(w, do, repeats[i], nil)
		}
	}
	for round := range rounds {
		for i := range n {
			at := turn(round, i, n)
			ns := sample(w, works[at], repeats[at], &histograms[at])
			times[at] = append(times[at], ns)
		}
	}
	rows := summarise(w, times)
	for i := range rows {
		histograms[i].describe(&rows[i])
		rows[i].fields["allocs_per_op"] = allocations(w, works[i], repeats[i])
	}
	return rows
}

// Allocations on the heap for each operation, to a thousandth.
func allocations(w *workload, do work, repeats int) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do(repeats, nil)
	runtime.ReadMemStats(&after)
	each := float64(after.Mallocs-before.Mallocs) / (float64(repeats) * w.ops)
	return math.Floor(each*1000) / 1000
}

func summarise(w *workload, times [][]float64) (rows []row) {
	for i, s := range w.subjects {
		r := row{w.name, s.name, median(times[i]), map[string]float64{}, map[string]interval{}}
		for j, peer := range w.subjects {
			if i != j {
				r.ratio[peer.name] = ratio(times[i], times[j])
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// The result of a run in a process of its own.
type told struct {
	NsPerOp float64
	Fields  map[string]float64
}

// Runs one subject once and describes the run.
func runAlone(w *workload, s *subject) told {
	do := s.make()
	do((w.repeats+9)/10, nil) // warms what the work keeps
	r := row{fields: map[string]float64{}}
	h := new(histogram)
	runtime.GC()
	before, start := collections(), time.Now()
	do(w.repeats, h)
	elapsed, after := time.Since(start), collections()
	r.fields["gc_cycles"] = after.cycles - before.cycles
	r.fields["gc_cpu"] = (after.cpu - before.cpu) / (elapsed.Seconds() * float64(runtime.GOMAXPROCS(0)))
	h.describe(&r)
	return told{float64(elapsed) / (float64(w.repeats) * w.ops), r.fields}
}

type collected struct{ cycles, cpu float64 }

// Cycles of the collector that ended, and their CPU seconds.
func collections() collected {
	s := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
	}
	metrics.Read(s)
	return collected{float64(s[0].Value.Uint64()), s[1].Value.Float64()}
}

// Runs every subject once a round, each in a process of its own.
func playAlone(w *workload, rounds int) []row {
	n := len(w.subjects)
	times, runs := make([][]float64, n), make([][]told, n)
	for round := range rounds {
		for i := range n {
			at := turn(round, i, n)
			var t told
			inChild(&t, "--alone", w.name, w.subjects[at].name)
			times[at] = append(times[at], t.NsPerOp)
			runs[at] = append(runs[at], t)
		}
	}
	rows := summarise(w, times)
	base := slices.IndexFunc(w.subjects, func(s subject) bool { return s.name == "new" })
	for i := range rows {
		for name := range runs[i][0].Fields {
			rows[i].fields[name] = median(each(runs[i], name))
		}
		for name, of := range map[string]string{"gc_cpu_of_new": "gc_cpu", "p999_of_new": "p999_ns"} {
			if _, has := rows[i].fields[of]; has && base >= 0 && i != base {
				rows[i].fields[name] = ratio(each(runs[i], of), each(runs[base], of)).Median
			}
		}
	}
	return rows
}

func each(runs []told, field string) (values []float64) {
	for _, t := range runs {
		values = append(values, t.Fields[field])
	}
	return values
}

// Starts this program again and reads the result from its output.
func inChild(result any, arguments ...string) {
	command := exec.Command(os.Args[0], arguments...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, arguments, err)
		os.Exit(1)
	}
}

// Runs a workload in a process of its own, so that its heap is fresh.
func runWorkload(w *workload, rounds int) (rows []row) {
	if w.rounds != 0 {
		rounds = min(rounds, w.rounds)
	}
	if w.repeats != 0 {
		rows = playAlone(w, rounds)
	} else {
		inChild(&rows, "--workload", w.name, strconv.Itoa(rounds))
	}
	fmt.Fprintf(os.Stderr, "%-24s %d subjects, %d rounds\n", w.name, len(w.subjects), rounds)
	return rows
}
