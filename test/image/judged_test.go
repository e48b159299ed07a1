//go:build real

package image_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"replayd/test/outside"
)

// run returns the output of a program and whether it succeeded.
func run(t *testing.T, program string, args ...string) (said string, ok bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	return string(out), err == nil
}

// Prometheus accepts its file, with the rules.
func TestPrometheusFile(t *testing.T) {
	text, err := os.ReadFile(repository + "/deploy/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := filepath.Abs(repository + "/alerts")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Symlink(alerts, filepath.Join(root, "alerts")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "deploy", "prometheus.yml")
	folder(t, filepath.Dir(file))
	write(t, file, string(text))
	rules, err := filepath.Glob(repository + "/alerts/*.yaml")
	if err != nil || len(rules) == 0 {
		t.Fatalf("want the rule files in alerts, got %d, %v", len(rules), err)
	}
	said, ok := run(t, outside.PrometheusTool(t, "promtool"), "check", "config", file)
	if !ok || !strings.Contains(said, fmt.Sprintf("%d rule files found", len(rules))) {
		t.Errorf("promtool check config: want it to take the file and all %d rule files:\n%s", len(rules), said)
	}
}

// Urgent alerts page a person; other alerts wait for the day.
func TestAlertmanagerFile(t *testing.T) {
	amtool, file := outside.PrometheusTool(t, "amtool"), repository+"/deploy/alertmanager.yml"
	if said, ok := run(t, amtool, "check-config", file); !ok {
		t.Errorf("amtool check-config:\n%s", said)
	}
	for severity, want := range map[string]string{"critical": "person", "warning": "today", "info": "log"} {
		c := exec.CommandContext(t.Context(), amtool, "config", "routes", "test", "--config.file="+file, "severity="+severity)
		if out, err := c.Output(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: want it to go to %s, got %s, %v", severity, want, out, err)
		}
	}
}

// A real Alertmanager sends one message for one incident, and mutes alerts that follow from another of the same server.
func TestInhibition(t *testing.T) {
	dir, address := t.TempDir(), outside.Address(t)
	p := outside.Start(t, filepath.Join(dir, "alertmanager.out"), outside.PrometheusTool(t, "alertmanager"), "--config.file="+repository+"/deploy/alertmanager.yml",
		"--storage.path="+dir, "--web.listen-address="+address, "--cluster.listen-address=")
	url := "http://" + address
	p.Ready(t, http.DefaultClient, url+"/-/ready")
	type alert struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	}
	var sent []alert
	want := map[string]bool{} // by name and target: muted
	add := func(muted bool, name, severity, target string, more ...string) {
		labels := map[string]string{"alertname": name, "severity": severity}
		if target != "" {
			labels["target"], want[name+" "+target] = target, muted
		} else {
			want[name+" "] = muted
		}
		for i := 0; i < len(more); i += 2 {
			labels[more[i]] = more[i+1]
		}
		sent = append(sent, alert{labels, map[string]string{}})
	}
	// a is down, b is not: its burn is its own. replayd starves over
	// c, whose users suffer too. d's engine is in a crash loop.
	add(false, "ReplaydTargetDown", "critical", "a", "workload", "w", "model", "m")
	add(true, "ReplaydSLOBurnFast", "critical", "a", "workload", "w", "model", "m")
	add(true, "ReplaydErrorRatio", "warning", "a", "workload", "w", "model", "m")
	add(true, "ReplaydEngineUnseen", "warning", "a", "address", "a:8000")
	add(false, "ReplaydGPUXid", "critical", "a", "gpu", "0")
	add(false, "ReplaydSLOBurnFast", "critical", "b", "workload", "w", "model", "m")
	add(true, "ReplaydSLOBurnSlow", "warning", "b", "workload", "w", "model", "m")
	add(false, "ReplaydErrorRatio", "warning", "b", "workload", "w", "model", "m")
	add(false, "ReplaydMissed", "warning", "c", "workload", "w", "model", "m")
	add(true, "ReplaydLate", "warning", "c", "workload", "w", "model", "m")
	add(true, "ReplaydTTFTRegression", "warning", "c", "workload", "w", "model", "m", "against", "day")
	add(true, "ReplaydClientEngineDisagree", "warning", "c", "about", "ttft")
	add(false, "ReplaydSLOBurnFast", "critical", "c", "workload", "w", "model", "m")
	add(false, "ReplaydTPOTRegression", "warning", "b", "workload", "other", "model", "m", "against", "loop")
	add(false, "ReplaydEngineRestarting", "warning", "d", "address", "d:8000")
	add(true, "ReplaydPrefixHitsLow", "info", "d", "counted_by", "engine")
	add(false, "ReplaydDown", "critical", "", "instance", "replayd:9797", "job", "replayd")
	add(false, "ReplaydShardMissing", "critical", "b", "workload", "w", "model", "m", "shards", "4")
	// e cannot be reached: two workloads, one message.
	add(false, "ReplaydTargetUnreachable", "critical", "e")
	add(true, "ReplaydTargetDown", "critical", "e", "workload", "w", "model", "m")
	add(true, "ReplaydSLOBurnFast", "critical", "e", "workload", "other", "model", "m")
	add(true, "ReplaydEngineUnseen", "warning", "e", "address", "e:8000")
	body, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+"/api/v2/alerts", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("want the alerts taken, got %s", resp.Status)
	}
	// An alert is muted only when its group is evaluated, after group_wait. Before that all alerts are shown as active.
	outside.Until(t, func() error {
		var groups []struct {
			Labels map[string]string
			Alerts []struct {
				Labels map[string]string
				Status struct{ InhibitedBy []string }
			}
		}
		status, text, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, url+"/api/v2/alerts/groups")
		if err == nil && status == http.StatusOK {
			err = json.Unmarshal(text, &groups)
		}
		if err != nil {
			return err
		}
		got := map[string]bool{}
		for _, g := range groups {
			for _, a := range g.Alerts {
				if a.Labels["target"] != g.Labels["target"] {
					return fmt.Errorf("want one message of one server, got %v", g)
				}
				got[a.Labels["alertname"]+" "+a.Labels["target"]] = len(a.Status.InhibitedBy) > 0
			}
		}
		for name, muted := range want {
			if is, ok := got[name]; !ok || is != muted {
				return fmt.Errorf("%s: want muted %v, got %v (there: %v)", name, muted, is, ok)
			}
		}
		return nil
	})
}

// systemd knows every key of the unit and rates its sandbox as safe.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		outside.Missing(t, err, "Debian's package systemd has it")
	}
	text, err := os.ReadFile(repository + "/deploy/systemd/replayd.service")
	if err != nil {
		t.Fatal(err)
	}
	const installed = "ExecStart=/usr/bin/replayd "
	if !strings.Contains(string(text), installed) {
		t.Fatalf("want %s", installed)
	}
	// A panic ends by SIGABRT then, and not with the code of a faulty configuration, after which nothing restarts the
	// unit.
	crash := []string{"RestartPreventExitStatus=2", "Environment=GOTRACEBACK=crash"}
	for _, line := range append(crash, "NoNewPrivileges=yes", "MemoryMax=", "MemorySwapMax=0", "TasksMax=",
		"LimitNOFILE=", "LimitCORE=0") {
		if !strings.Contains(string(text), "\n"+line) {
			t.Errorf("want %s", line)
		}
	}
	unit := filepath.Join(t.TempDir(), "replayd.service")
	write(t, unit, strings.ReplaceAll(string(text), installed, "ExecStart=/bin/true ")) // a program that exists here
	if said, ok := run(t, analyze, "verify", unit); !ok || strings.TrimSpace(said) != "" {
		t.Errorf("systemd-analyze verify:\n%s", said)
	}
	if said, ok := run(t, analyze, "security", "--offline=true", "--threshold=15", unit); !ok { // tenths: 1.5 of 10
		t.Errorf("systemd-analyze security:\n%s", said)
	}
}
