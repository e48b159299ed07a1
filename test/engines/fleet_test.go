//go:build engines

package engines_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/internal/gpu"
	"replayd/test/outside"
)

const (
	fleetTargets  = 8
	fleetReplicas = 4
	fleetGPUs     = 8
)

// TestFleet scrapes 8 targets of 4 replicas, each with a page that vLLM wrote, and 8 GPUs with every field. It logs how
// long a scrape of replayd takes then, and what the scraping costs replayd. Times are logged, not judged.
func TestFleet(t *testing.T) {
	scrapes := outside.Knob(t, "ENGINES_SCRAPES", 100, strconv.Atoi)
	watched := outside.Knob(t, "ENGINES_COST", 10*time.Second, time.ParseDuration)
	dir := t.TempDir()
	hosts, targets, pages := fleet(t)
	path, _ := trace(t, dir, 1, time.Second)
	config := func(interval string, gpus string) string {
		return fmt.Sprintf("targets:\n%s\n%s\nworkloads: [{name: w, target: t0, trace: {path: %s}, repeat: {mode: once}}]\n",
			strings.ReplaceAll(targets, "INTERVAL", interval), gpus, path)
	}
	idle := cost(t, inHosts(t, dir, hosts, config("0s", "")), watched)
	busy := inHosts(t, dir, hosts, config("5s", fmt.Sprintf("gpus: [{target: t0, dcgm_exporter: \"http://%s/gpus\"}]", pages)))
	outside.Until(t, func() error {
		p := scrape(t, busy.url)
		if up, figures, gpus := p.Sum("replayd_engine_up"), len(p["replayd_engine_ttft_seconds"].GetMetric()), len(p["replayd_gpu_power_watts"].GetMetric()); up != fleetTargets*fleetReplicas || figures != fleetTargets*fleetReplicas || gpus != fleetGPUs {
			return fmt.Errorf("want %d engines and %d GPUs, got %v up, %d with figures and %d GPUs", fleetTargets*fleetReplicas, fleetGPUs, up, figures, gpus)
		}
		return nil
	})
	scraping := cost(t, busy, watched)
	t.Logf("%d targets of %d replicas, %d GPUs, each read every 5 s: CPU %.2f %% of a core with the scraping, %.2f %% without it",
		fleetTargets, fleetReplicas, fleetGPUs, scraping, idle)
	for _, accept := range []string{"text/plain;version=0.0.4", "application/openmetrics-text;version=1.0.0", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"} {
		times, size := took(t, busy.url, accept, scrapes)
		kind, _, _ := strings.Cut(accept, ";")
		t.Logf("%s: %d scrapes of %.0f KiB: median %.1f ms, p99 %.1f ms, longest %.1f ms", kind, scrapes, float64(size)/1024,
			ms(times[len(times)/2]), ms(times[len(times)*99/100]), ms(times[len(times)-1]))
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// fleet serves the pages. It returns a hosts file in which each target's name has an address per replica, the targets
// of a configuration, and the address of the GPUs' page.
func fleet(t *testing.T) (hosts, targets, pages string) {
	t.Helper()
	page, err := os.ReadFile("../../internal/scrape/testdata/pages/vllm_0.32.0_done.txt")
	if err != nil {
		t.Fatal(err)
	}
	var gpus bytes.Buffer
	for _, f := range gpu.Fields() {
		for i := range fleetGPUs {
			fmt.Fprintf(&gpus, "%s{gpu=\"%d\",UUID=\"GPU-%08d\",modelName=\"NVIDIA H200\",Hostname=\"node\"} 1\n", f.Names[0], i, i)
		}
	}
	mux := http.NewServeMux()
	answer := func(body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = w.Write(body)
		}
	}
	mux.Handle("/metrics", answer(page))
	mux.Handle("/gpus", answer(gpus.Bytes()))
	server := &http.Server{Handler: mux}
	t.Cleanup(func() { _ = server.Close() })
	var file, list strings.Builder
	file.WriteString("127.0.0.1 localhost\n")
	for i := range fleetTargets {
		_, port, _ := net.SplitHostPort(outside.Address(t))
		for r := range fleetReplicas {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:%s", r+1, port))
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = server.Serve(l) }() // ends with the cleanup
			if i == 0 && r == 0 {
				pages = l.Addr().String()
			}
			fmt.Fprintf(&file, "127.0.0.%d engines-%d.test\n", r+1, i)
		}
		fmt.Fprintf(&list, "  - {name: t%d, url: \"http://engines-%d.test:%s\", metrics: {replicas: engines-%d.test, interval: INTERVAL, url: \"http://engines-%d.test:%s/metrics\"}}\n", i, i, port, i, i, port)
	}
	return file.String(), list.String(), pages
}

type daemon struct {
	process *outside.Process
	url     string
}

// inHosts starts the daemon with the given /etc/hosts: names with several addresses without a name server. It needs a
// mount namespace, and so root.
func inHosts(t *testing.T, dir, hosts, config string) daemon {
	t.Helper()
	if err := exec.Command("unshare", "--mount", "true").Run(); err != nil {
		outside.Missing(t, exec.ErrNotFound, fmt.Sprintf("unshare --mount: %v", err))
	}
	listen := outside.Address(t)
	dir, err := os.MkdirTemp(dir, "serve")
	if err != nil {
		t.Fatal(err)
	}
	p := outside.Start(t, filepath.Join(dir, "serve.out"), "unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`,
		put(t, filepath.Join(dir, "hosts"), hosts), binary, "serve", "--config", put(t, filepath.Join(dir, "replayd.yaml"), config), "--web.listen-address", listen)
	p.Ready(t, http.DefaultClient, "http://"+listen+"/-/ready")
	return daemon{p, "http://" + listen}
}

// cost returns how much of a core the daemon uses while nobody scrapes it, in percent.
func cost(t *testing.T, d daemon, watched time.Duration) float64 {
	t.Helper()
	used := func() time.Duration {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.process.Cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		return time.Duration(user+system) * 10 * time.Millisecond // ticks, proc_pid_stat(5)
	}
	<-time.After(2 * time.Second) // without the start
	before := used()
	<-time.After(watched)
	return 100 * float64(used()-before) / float64(watched)
}

// took returns the sorted times of some scrapes, and the size of the last in bytes.
func took(t *testing.T, url, accept string, scrapes int) (times []time.Duration, size int64) {
	t.Helper()
	for range scrapes {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		req.Header.Set("Accept-Encoding", "identity")
		begun := time.Now()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		size, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("want a page, got %s, %v", resp.Status, err)
		}
		times = append(times, time.Since(begun))
		<-time.After(20 * time.Millisecond)
	}
	slices.Sort(times)
	return times, size
}
