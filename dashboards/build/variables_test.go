package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A variable with the choice "All" must not be passed to a dashboard where it has a single value.
func TestLinksFitTheVariables(t *testing.T) {
	multi := func(b *board) map[string]bool {
		of := map[string]bool{}
		for _, v := range b.Templating["list"].([]object) {
			of[v["name"].(string)], _ = v["multi"].(bool)
		}
		return of
	}
	byUID := map[string]*board{}
	for _, b := range boards() {
		byUID[b.UID] = b
	}
	misfit := func(from, to *board, names func(string) bool) (wrong []string) {
		there := multi(to)
		for name, many := range multi(from) {
			if single, known := there[name]; many && known && !single && names(name) {
				wrong = append(wrong, name)
			}
		}
		return wrong
	}
	for name, b := range boards() {
		links := slices.Clone(b.Links)
		for _, p := range b.all() {
			links = append(links, p.Links...)
		}
		reached := 0
		for _, link := range links {
			url, _ := link["url"].(string)
			all := link["type"] == "dashboards" || strings.Contains(url, "${__all_variables}")
			for uid, to := range byUID {
				if link["type"] != "dashboards" && !strings.HasPrefix(url, "/d/"+uid+"?") || to.UID == b.UID {
					continue
				}
				reached++
				if wrong := misfit(b, to, func(name string) bool { return all || strings.Contains(url, "${"+name+":queryparam}") }); len(wrong) > 0 {
					t.Errorf("%s: the link %q to %s hands over %q, of which there can be only one", name, link["title"], uid, wrong)
				}
			}
		}
		if reached < len(byUID)-1 {
			t.Errorf("%s: want links to all others, got %d", name, reached)
		}
	}
}

// A variable may only depend on those before it. An alert on a process links to Replay health with the process alone;
// the workload is then one of that process.
func TestVariablesKnowThoseBefore(t *testing.T) {
	for name, b := range boards() {
		known := []string{"datasource"}
		asks := map[string]string{}
		for _, v := range b.Templating["list"].([]object) {
			asks[v["name"].(string)], _ = v["definition"].(string)
			for _, m := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(asks[v["name"].(string)], -1) {
				if !slices.Contains(known, m[1]) {
					t.Errorf("%s: variable %s asks for %s, which is not chosen yet", name, v["name"], m[1])
				}
			}
			known = append(known, v["name"].(string))
		}
		if slices.Contains(known, "instance") != strings.Contains(asks["workload"], `instance=~"$instance"`) {
			t.Errorf("%s: want the workloads of the chosen processes, got %s", name, asks["workload"])
		}
	}
}

// A loop need not be whole seconds, and the pattern must take the whole number: a part of it is another offset.
func TestBeforeTakesWholeNumbers(t *testing.T) {
	v := before()
	pattern := regexp.MustCompile(strings.Trim(v["regex"].(string), "/"))
	if got := pattern.FindStringSubmatch(`{before="1 loop ago"} 900500 1795299560261`); !slices.Equal(got[1:], []string{"1 loop ago", "900500"}) {
		t.Errorf("want 900500 ms, got %q", got)
	}
	if got := pattern.FindStringSubmatch(`{before="1 loop ago"} 900500.25 1795299560261`); got != nil {
		t.Errorf("want no part of a number, got %q", got)
	}
}

// Annotations mark events between two steps of a wide range, and only those of the chosen workload or comparison.
func TestAnnotationsSeeWholeSteps(t *testing.T) {
	for name, b := range boards() {
		for _, a := range b.Annotations["list"].([]object) {
			asked := a["expr"].(string)
			if !strings.Contains(asked, "[$__rate_interval]") {
				t.Errorf("%s: %s: want a look back over a step, got %s", name, a["name"], asked)
			}
			chosen := regexp.MustCompile(`workload=~?"\$workload"`)
			if name == "comparison.json" {
				chosen = regexp.MustCompile(`comparison="\$comparison"`)
			}
			if a["name"] != "Engine restarts" && a["name"] != "Unreachable" && !chosen.MatchString(asked) {
				t.Errorf("%s: %s: want %s, got %s", name, a["name"], chosen, asked)
			}
		}
	}
}
