package config

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"replayd/internal/fault"
)

// odd are scalars that YAML takes for something else than their text, and null in its three forms.
var odd = []string{"00123", "1e3", "010", "2026-01-02", "yes", "1_000", "0x1F", "1.10", ".inf", "null", "~", ""}

// A key for texts has the text of the file, whatever YAML takes it for, and null is not given. Any other key has a value that the text
// says in any version of YAML, or a fault.
func TestWrittenTexts(t *testing.T) {
	texts, others := 0, 0
	for section, made := range map[string]func() any{
		"": func() any { c := Default(); return &c }, "targets": func() any { c := DefaultTarget(); return &c },
		"workloads": func() any { c := DefaultWorkload(); return &c }, "gpus": func() any { c := DefaultGPU(); return &c },
		"comparisons": func() any { c := DefaultComparison(); return &c },
	} {
		for _, path := range leaves(reflect.TypeOf(made()).Elem(), "") {
			for _, text := range odd {
				d, err := readDocument([]byte(oneKey(path, text)))
				if err != nil {
					t.Fatal(err)
				}
				got, usual := made(), made()
				faults := into(got, section, d.keys)
				value, otherwise := leaf(got, path), leaf(usual, path)
				given := text != "null" && text != "~" && text != ""
				switch {
				case !given || len(faults) > 0:
					if given && value.Kind() == reflect.String && value.Type() == reflect.TypeFor[string]() ||
						!given && (len(faults) > 0 || !reflect.DeepEqual(value.Interface(), otherwise.Interface())) {
						t.Errorf("%s.%s: %q: got %v, %v", section, path, text, value, faults)
					}
				case value.Kind() == reflect.String:
					if texts++; value.String() != text {
						t.Errorf("%s.%s: %q became %q", section, path, text, value)
					}
				default:
					others++
					number := map[string]string{"1e3": "1000", "1_000": "1000", "0x1F": "31", "1.10": "1.1", ".inf": "+Inf"}[text]
					if means := fmt.Sprint(value.Interface()); means != number && means != "["+text+"]" {
						t.Errorf("%s.%s: %q became %s", section, path, text, means)
					}
				}
			}
		}
	}
	if texts < 200 || others < 50 {
		t.Errorf("%d texts and %d other values were read", texts, others)
	}
}

// leaves returns the paths of the keys of a struct that have one value.
func leaves(of reflect.Type, at string) (paths []string) {
	for _, f := range reflect.VisibleFields(of) {
		key, ok := keyOf(f)
		path := fault.Join(at, key)
		switch {
		case !ok || key == "" || f.Type == reflect.TypeFor[HTTP]() || f.Type == reflect.TypeFor[Bounds]():
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[time.Time]():
			paths = append(paths, leaves(f.Type, path)...)
		case f.Type.Kind() == reflect.Map || f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() != reflect.String:
		default:
			paths = append(paths, path)
		}
	}
	return paths
}

// oneKey returns the YAML of one key.
func oneKey(path, text string) string {
	keys := strings.Split(path, ".")
	for i, key := range keys {
		keys[i] = strings.Repeat("  ", i) + key + ":"
	}
	return strings.Join(keys, "\n") + " " + text + "\n"
}

func leaf(of any, path string) reflect.Value {
	v := reflect.ValueOf(of).Elem()
keys:
	for key := range strings.SplitSeq(path, ".") {
		for _, f := range reflect.VisibleFields(v.Type()) {
			if name, ok := keyOf(f); ok && name == key {
				v = v.FieldByIndex(f.Index)
				continue keys
			}
		}
		panic(path)
	}
	return v
}

// Under http, which another decoder reads, texts are texts, too.
func TestWrittenTextsUnderHTTP(t *testing.T) {
	for _, text := range odd[:9] {
		d, err := readDocument(fmt.Appendf(nil, "http: {authorization: {credentials: %s}, http_headers: {X-1: {values: [%s, a]}}}", text, text))
		if err != nil {
			t.Fatal(err)
		}
		target := DefaultTarget()
		if f := into(&target, "targets[0]", d.keys); len(f) > 0 {
			t.Fatal(f)
		}
		if got := string(target.HTTP.Authorization.Credentials); got != text {
			t.Errorf("credentials %s became %s", text, got)
		}
		if got := target.HTTP.HTTPHeaders.Headers["X-1"].Values; got[0] != text || got[1] != "a" {
			t.Errorf("a header's values %s became %v", text, got)
		}
	}
}

// extra_body is JSON: numbers have the digits of the file, names of keys are texts, dates too, and what JSON does not have is refused.
func TestWrittenJSON(t *testing.T) {
	for text, want := range map[string]string{
		"{a: 12345678901234567890123, b: 1e3, c: 1.10, d: -0.5}":       `{"a":12345678901234567890123,"b":1e3,"c":1.10,"d":-0.5}`,
		"{null: 1, yes: no, 010: x, 2026-01-02: 2026-01-02T10:00:00Z}": `{"010":"x","2026-01-02":"2026-01-02T10:00:00Z","null":1,"yes":"no"}`,
		"{a: [1, ~, {b: true}], c: '010', d: \"1e3\"}":                 `{"a":[1,null,{"b":true}],"c":"010","d":"1e3"}`,
		"{a: 010}":         "want a number as JSON writes it",
		"{a: {b: [.inf]}}": "want a number as JSON writes it",
		"{a: 0x1F}":        "want a number as JSON writes it",
		"{a: .nan}":        "want a number as JSON writes it",
		"{a: +1}":          "want a number as JSON writes it",
	} {
		d, err := readDocument([]byte("extra_body: " + text))
		if err != nil {
			t.Fatal(err)
		}
		target := DefaultTarget()
		f := into(&target, "targets[0]", d.keys)
		got, err := json.Marshal(target.ExtraBody)
		if said := fmt.Sprint(f); strings.HasPrefix(want, "{") && (len(f) > 0 || err != nil || string(got) != want) ||
			!strings.HasPrefix(want, "{") && !strings.Contains(said, want) {
			t.Errorf("%s: got %s, %v, %v, want %s", text, got, err, said, want)
		}
	}
}

// One document is read, to its end, and what YAML could say beside it is refused with its line.
func TestOneDocument(t *testing.T) {
	for text, want := range map[string]string{
		"drain: 1s\n":                         "",
		"---\ndrain: 1s\n":                    "",
		"---\n---\n# nothing\n---\ndrain: 1s": "",
		"drain: 1s\n---\n...\n":               "",
		"\ufeffdrain: 1s\n":                   "",
		"x-base: &b {name: a, url: 'http://localhost:1'}\ntargets: [{<<: *b}]": "",
		"drain: 1s\n---\nlanez: 3\n":       "line 3: want one document, got a second one",
		"drain: 1s\n---\nfoo: [\n":         "line 3",
		"%YAML 1.2\n---\ndrain: 1s\n":      "line 1: want no directive",
		"# a\n%TAG ! x:\n---\ndrain: 1s\n": "line 2: want no directive",
		"drain: !env X\n":                  "line 1: want a value without a tag, got !env",
		"targets:\n- !t {name: a}\n":       "line 2: want a value without a tag, got !t",
		"drain: 1s\ndrain: 2s\n":           "line 2: mapping key \"drain\" already defined at line 1",
		"x: 1\n":                           "unknown key",
	} {
		path := t.TempDir() + "/a.yaml"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path, nil, nil, func(string) {})
		if said := fmt.Sprint(err); want == "" && err != nil && !strings.Contains(said, "want at least one") || want != "" && !strings.Contains(said, want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
