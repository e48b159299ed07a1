//go:build real

package kubernetes_test

import (
	"strings"
	"testing"
)

// Labels of the user are set on every object. Labels of the chart itself are not overridden, and the most specific
// label of the user wins.
func TestLabels(t *testing.T) {
	const labels = "{app.kubernetes.io/name: x, app.kubernetes.io/instance: x, app.kubernetes.io/component: x, helm.sh/chart: x, "
	values := "podLabels: " + labels + "team: pods}\ncommonLabels: " + labels + "team: all, release: all}\n" +
		"podAnnotations: {checksum/web: x, kubectl.kubernetes.io/default-container: x, a: b}\n"
	for _, part := range []string{"monitor", "prometheusRule", "dashboards"} {
		values += part + ": {enabled: true, labels: " + labels + "release: near}}\n"
	}
	for _, mode := range modes {
		all := objects(t, render(t, chart, append(plain(mode), "-f", write(t, "values.yaml", values))...))
		for _, o := range all {
			release := "all"
			if o.Kind == "PodMonitor" || o.Kind == "PrometheusRule" || strings.Contains(o.Name, "-dashboard-") {
				release = "near"
			}
			if l := o.Labels; l["app.kubernetes.io/name"] != "replayd" || l["helm.sh/chart"] == "x" || l["team"] != "all" || l["release"] != release {
				t.Errorf("%s %s: want the chart's labels and release=%s, got %v", o.Kind, o.Name, release, l)
			}
		}
		pod := templates(t, all)[0]
		if l := pod.Labels; l["app.kubernetes.io/name"] != "replayd" || l["app.kubernetes.io/instance"] != "canary" || l["team"] != "pods" || l["release"] != "all" {
			t.Errorf("%s: want a pod that its owner selects, with the labels of pods first, got %v", mode, l)
		}
		if a := pod.Annotations; a["kubectl.kubernetes.io/default-container"] == "x" || a["a"] != "b" {
			t.Errorf("%s: want the chart's annotations and the user's, got %v", mode, a)
		}
	}
}
