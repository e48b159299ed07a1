package config

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"replayd/internal/fault"
	"replayd/internal/measure"
	"replayd/internal/scalar"
	"replayd/internal/schedule"
	"replayd/internal/scrape"
)

// readTables returns the tables of docs/reference/configuration.md: the heading of the first column, then key and default.
func readTables(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]map[string]string{}
	heading := ""
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		first, second, meaning := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]), strings.TrimSpace(cells[3])
		key := strings.Trim(first, "`")
		switch {
		case second == "default":
			heading = first
			if tables[heading] == nil { // else the table is a further part of it
				tables[heading] = map[string]string{}
			}
		case key == first: // the line under the heading
		case meaning == "":
			t.Errorf("docs/reference/configuration.md: %s: want a meaning", key)
		case tables[heading][key] != "":
			t.Errorf("docs/reference/configuration.md has %s twice", key)
		default:
			tables[heading][key] = strings.Trim(second, "`")
		}
	}
	return tables
}

// keysOf lists the keys with a single value. Lists have their own tables.
func keysOf(section reflect.Type, at string) []string {
	var keys []string
	for field := range section.Fields() {
		below, ok := keyOf(field)
		key := fault.Join(at, below)
		switch {
		case !ok || field.Type.Kind() == reflect.Slice && field.Type != reflect.TypeFor[scalar.Words]():
		case field.Type == reflect.TypeFor[Bounds]():
			for _, q := range measure.Quantities() {
				keys = append(keys, fault.Join(at, q.String()))
			}
		case field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[HTTP]():
			keys = append(keys, keysOf(field.Type, key)...)
		default:
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func TestDocumentedKeysAreThoseOfTheFile(t *testing.T) {
	tables := readTables(t)
	for heading, section := range map[string]reflect.Type{
		"key": reflect.TypeFor[Config](), "key of a target": reflect.TypeFor[Target](), "key of a workload": reflect.TypeFor[Workload](),
		"key of a stage": reflect.TypeFor[schedule.Stage](), "key of a row": reflect.TypeFor[scrape.Row](), "key of a source of GPU figures": reflect.TypeFor[GPU](),
		"key of a comparison": reflect.TypeFor[Comparison](),
	} {
		if d := cmp.Diff(slices.Sorted(maps.Keys(tables[heading])), keysOf(section, "")); d != "" {
			t.Errorf("%s: -document +program\n%s", heading, d)
		}
	}
}

// A file with all documented defaults equals an empty file.
func TestDocumentedDefaults(t *testing.T) {
	tables := readTables(t)
	raw := nest(t, tables["key"])
	raw["targets"] = []any{nest(t, tables["key of a target"])}
	raw["workloads"] = []any{nest(t, tables["key of a workload"])}
	raw["gpus"] = []any{nest(t, tables["key of a source of GPU figures"])}
	raw["comparisons"] = []any{nest(t, tables["key of a comparison"])}
	got, faults := decode(raw)
	if len(faults) > 0 {
		t.Fatal(got.Refuse(faults))
	}
	want := Default()
	want.Targets, want.Workloads = []Target{DefaultTarget()}, []Workload{DefaultWorkload()}
	want.GPUs, want.Comparisons = []GPU{DefaultGPU()}, []Comparison{DefaultComparison()}
	if faults := want.Resolve(); len(faults) > 0 { // sets align
		t.Fatal(want.Refuse(faults))
	}
	// Bodies without further keys are nil or empty. TestGoodFile covers the http section.
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(HTTP{}, Bounds{})); d != "" {
		t.Errorf("defaults: -program +document\n%s", d)
	}
}

// nest builds nested maps from dotted keys, without the required keys.
func nest(t *testing.T, defaults map[string]string) map[string]any {
	t.Helper()
	raw := map[string]any{}
	for key, text := range defaults {
		if text == "required" {
			continue
		}
		at, path := raw, strings.Split(key, ".")
		for _, step := range path[:len(path)-1] {
			if at[step] == nil {
				at[step] = map[string]any{}
			}
			at = at[step].(map[string]any)
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("docs/reference/configuration.md: %s: %v", key, err)
		}
		at[path[len(path)-1]] = value
	}
	return raw
}

// The example and every configuration in the documents must load.
func TestDocumentedConfigurationsLoad(t *testing.T) {
	files := []string{"../../docs/replayd.example.yaml"}
	pages, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		files = append(files, configurations(t, page)...)
	}
	if len(files) < 6 {
		t.Errorf("want configurations in the documents, found %d", len(files)-1)
	}
	for _, file := range files {
		if _, err := load(t, file); err != nil {
			t.Error(err)
		}
	}
	c, err := load(t, files[0])
	if err != nil {
		t.Fatal(err)
	}
	// Check what the comments of the example promise.
	w := c.Workloads[0]
	if w.Repeat.Mode != "loop" || w.Repeat.Align != "wall_clock" || w.Prompt.Salt != "loop" || len(w.SLO.Bounds.Levels()) == 0 || c.Drain <= 0 {
		t.Errorf("the example: want a salted loop on the wall clock with service levels, got %+v", w)
	}
}

// configurations writes the replayd configurations among a page's YAML blocks to files and returns their paths: the blocks with
// targets and workloads.
func configurations(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for i, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, "targets:\n") || !strings.Contains(block, "workloads:\n") {
			continue
		}
		file := filepath.Join(t.TempDir(), filepath.Base(page)+"."+string(rune('a'+i))+".yaml")
		if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
