package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// bound lists what ties a dashboard to one Grafana: data sources beside the variable, inputs that an import would ask for, and the
// dashboard's number in a database.
func bound(dashboard any) (faults []string) {
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if key == "datasource" && !reflect.DeepEqual(inner, any(prometheus())) {
					faults = append(faults, fmt.Sprintf("%s: want the data source of the variable, got %v", at, inner))
				}
				walk(at+"/"+key, inner)
			}
		case []any:
			for i, inner := range v {
				walk(fmt.Sprint(at, "/", i), inner)
			}
		case string:
			if strings.Contains(v, "${DS_") {
				faults = append(faults, fmt.Sprintf("%s: want no input, got %q", at, v))
			}
		}
	}
	walk("", dashboard)
	top, _ := dashboard.(map[string]any)
	for _, key := range []string{"__inputs", "__requires", "__elements", "id"} {
		if v, ok := top[key]; ok {
			faults = append(faults, fmt.Sprintf("%s: want none, got %v", key, v))
		}
	}
	slices.Sort(faults)
	return faults
}

// Grafana imports each file as it is, whatever its data sources are called.
func TestFilesAreBoundToNoGrafana(t *testing.T) {
	paths, err := filepath.Glob(folder + "/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("want dashboards, got none, %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard any
		if err := json.Unmarshal(text, &dashboard); err != nil {
			t.Fatal(err)
		}
		if faults := bound(dashboard); len(faults) > 0 {
			t.Errorf("%s: %s", path, strings.Join(faults, "; "))
		}
	}
}

// The choices of variables follow the time range, as dashboard-linter wants it.
func TestChoicesFollowTheTimeRange(t *testing.T) {
	for name, b := range boards() {
		for _, v := range b.Templating["list"].([]object) {
			if v["type"] == "query" && v["refresh"] != 2 {
				t.Errorf("%s: variable %s: want its values with each time range (2), got %v", name, v["name"], v["refresh"])
			}
		}
	}
}
