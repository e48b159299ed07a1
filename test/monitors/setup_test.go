//go:build monitors

// Package monitors_test holds the rules and the dashboards to docs/reference/monitoring.md, which names the monitoring systems that they
// work with: `make suite NAME=test-monitors`. It runs the tests of the rules by the evaluators of Prometheus 2.42, Prometheus 3.5 and
// VictoriaMetrics, asks Prometheus and VictoriaMetrics every expression over the same samples, and lets a pair of Prometheus tell one
// Alertmanager of its alerts.
package monitors_test

import (
	"path/filepath"
	"testing"

	"replayd/test/outside"
)

const repository = "../.."

// installed returns the paths of promtool of Prometheus 2.42, vmalert-tool and victoria-metrics, which the script install gets.
func installed(t *testing.T) (promtool, tool, server string) {
	t.Helper()
	version := outside.Install(t)
	folder, err := filepath.Abs(repository + "/.cache/monitors")
	if err != nil {
		t.Fatal(err)
	}
	folder += "/"
	return folder + "promtool", folder + "vmalert-tool-" + version, folder + "victoria-metrics-" + version
}
