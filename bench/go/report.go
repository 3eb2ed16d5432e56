package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MarshalJSON writes the fields beside the others, as the driver of the C families does.
func (r row) MarshalJSON() ([]byte, error) {
	all := map[string]any{"workload": r.workload, "subject": r.subject, "threads": 1,
		"ns_per_op": r.nsPerOp, "ratio": r.ratio}
	for name, value := range r.fields {
		all[name] = value
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *row) UnmarshalJSON(text []byte) error {
	known := struct {
		Workload, Subject string
		NsPerOp           float64 `json:"ns_per_op"`
		Ratio             map[string]interval
	}{}
	var all map[string]any
	if err := json.Unmarshal(text, &known); err != nil {
		return err
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	*r = row{known.Workload, known.Subject, known.NsPerOp, map[string]float64{}, known.Ratio}
	for name, value := range all {
		if number, ok := value.(float64); ok && name != "threads" && name != "ns_per_op" {
			r.fields[name] = number
		}
	}
	return nil
}

func writeJSON(rows []row, path string) error {
	var lines []string
	for _, r := range rows {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		lines = append(lines, string(line))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o666)
}

func printTable(rows []row) {
	name := ""
	for _, r := range rows {
		if r.workload != name {
			fmt.Printf("\n%-22s %14s\n", r.workload, "ns/op")
			name = r.workload
		}
		fmt.Printf("  %-20s %14.2f", r.subject, r.nsPerOp)
		for _, peer := range slices.Sorted(maps.Keys(r.ratio)) {
			q := r.ratio[peer]
			fmt.Printf("  %.4g [%.4g, %.4g] of %s", q.Median, q.Low, q.High, peer)
		}
		for _, field := range slices.Sorted(maps.Keys(r.fields)) {
			fmt.Printf("  %s %.4g", field, r.fields[field])
		}
		fmt.Println()
	}
}
