package deploy_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"replayd/internal/config"
)

// The configuration of the packages needs one change, the address; it plays the packages' sample, and systemd waits longer than it drains.
func TestPackagedConfiguration(t *testing.T) {
	const path = "packages/replayd.yaml"
	c, err := config.Load(path, nil, nil, func(said string) { t.Error(said) })
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Targets) != 1 || len(c.Workloads) != 1 || c.Workloads[0].Trace.Path != "/usr/share/replayd/sample.jsonl" {
		t.Errorf("want one target, and one workload with the packages' sample, got %+v, %+v", c.Targets, c.Workloads)
	}
	if align := c.Workloads[0].Repeat.Align; align != "start" {
		t.Errorf("want the first request at once, got loops with align %s: the sample is shorter than a loop by the wall clock", align)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if urls := regexp.MustCompile(`(?m)^\s*url: `).FindAllString(string(text), -1); len(urls) != 1 {
		t.Errorf("want one line to change, got %d", len(urls))
	}
	unit, err := os.ReadFile("systemd/replayd.service")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^TimeoutStopSec=(\S+)$`).FindSubmatch(unit)
	if m == nil {
		t.Fatal("systemd/replayd.service: want TimeoutStopSec")
	}
	if stop, err := time.ParseDuration(string(m[1])); err != nil || stop < c.Drain+10*time.Second {
		t.Errorf("want TimeoutStopSec 10 s above drain, %v, got %s, %v", c.Drain, m[1], err)
	}
}
