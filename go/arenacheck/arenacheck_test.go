package arenacheck

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// reportsIn returns the lines that are reported in the packages of a folder.
func reportsIn(t *testing.T, folder string, patterns ...string) map[string]string {
	t.Helper()
	config := &packages.Config{Mode: packages.LoadAllSyntax, Dir: folder, Tests: true}
	loaded, err := packages.Load(config, patterns...)
	if err != nil || packages.PrintErrors(loaded) > 0 {
		t.Fatal("the packages have errors: ", err)
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{Analyzer}, loaded, nil)
	if err != nil {
		t.Fatal(err)
	}
	reports := map[string]string{}
	for _, action := range graph.Roots {
		if action.Err != nil {
			t.Fatal(action.Err)
		}
		for _, d := range action.Diagnostics {
			at := action.Package.Fset.Position(d.Pos)
			reports[fmt.Sprint(filepath.Base(at.Filename), ":", at.Line)] = d.Message
		}
	}
	return reports
}

const corpus = "testdata/corpus"

var corpusOnce map[string]string

func reportsOfCorpus(t *testing.T) map[string]string {
	t.Helper()
	if corpusOnce == nil {
		corpusOnce = reportsIn(t, corpus, "./...")
	}
	return maps.Clone(corpusOnce)
}

var remark = regexp.MustCompile(`// (wrong|wrong, not found|right, reported)$`)

// remarksIn returns the remarks on the lines of a file.
func remarksIn(t *testing.T, path string) map[string]string {
	t.Helper()
	remarks := map[string]string{}
	for i, line := range strings.Split(read(t, path), "\n") {
		if m := remark.FindStringSubmatch(line); m != nil {
			remarks[fmt.Sprint(filepath.Base(path), ":", i+1)] = m[1]
		}
	}
	return remarks
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The reports are those that the remarks of the corpus foretell; docs/go.md has the counts.
func TestCorpus(t *testing.T) {
	reports := reportsOfCorpus(t)
	found, missed, alarms := 0, 0, 0
	for _, path := range []string{corpus + "/wrong/wrong.go", corpus + "/right/right.go"} {
		for line, what := range remarksIn(t, path) {
			_, reported := reports[line]
			delete(reports, line)
			switch {
			case reported && what == "wrong":
				found++
			case reported && what == "right, reported":
				alarms++
			case !reported && what == "wrong, not found":
				missed++
			default:
				t.Errorf("%s: remark %q, reported: %v", line, what, reported)
			}
		}
	}
	for line, message := range reports {
		t.Errorf("%s: %s", line, message)
	}
	functions := strings.Count(read(t, corpus+"/right/right.go"), "\nfunc ")
	counts := fmt.Sprintf("finds %d of %d wrong lines, with %d false alarms in %d right functions",
		found, found+missed, alarms, functions)
	text := strings.Join(strings.Fields(read(t, "../../docs/go.md")), " ")
	if !strings.Contains(text, counts) {
		t.Errorf("docs/go.md does not say: %s", counts)
	}
}

// The message says how memory gets out, and where the arena ends.
func TestMessages(t *testing.T) {
	reports := reportsOfCorpus(t)
	for _, how := range []string{"returned", "stored in a global variable", "sent on a channel",
		"stored in memory from outside the function", "stored in another arena",
		"used by a goroutine"} {
		want := regexp.MustCompile("^memory of an arena is " + how +
			" and outlives the arena, which ends in line [0-9]+: Clone it$")
		count := 0
		for _, message := range reports {
			if want.MatchString(message) {
				count++
			}
		}
		if count == 0 {
			t.Errorf("no report that memory is %s", how)
		}
	}
}

// The examples and the programs of this module are right, but for two tests of what is wrong.
func TestOwnModule(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	reports := reportsIn(t, "..", "./...")
	for line, message := range reports {
		file, _, _ := strings.Cut(line, ":")
		if file != "crash_test.go" && file != "gc_test.go" {
			t.Errorf("%s: %s", line, message)
		}
	}
	if len(reports) != 2 {
		t.Errorf("%d reports, not 2: %v", len(reports), reports)
	}
}
