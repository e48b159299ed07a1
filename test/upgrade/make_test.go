package upgrade_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"replayd/test/outside"
)

var release = flag.String("release", "", "make testdata/RELEASE with this replayd, from the inputs of the newest folder: 0.2.0")

// The servers of the configurations, at their fixed addresses.
var servers = map[string][]string{
	"127.0.0.1:18431": {"--ttft", "150ms", "--itl", "5ms", "--jitter", "0.05", "--seed", "1"},
	"127.0.0.1:18432": {"--ttft", "200ms", "--itl", "5ms", "--jitter", "0.05", "--seed", "2"},
	"127.0.0.1:18433": {"--ttft", "600ms", "--itl", "5ms", "--seed", "3", "--fault-500", "0.2", "--fault-cut", "0.2"},
}

// TestMakeFiles makes the folder of a release: go test ./test/upgrade -run MakeFiles -release 0.2.0. It runs the
// newest folder's configuration for a minute and a half between simulated engines, and keeps the files that this
// replayd writes. Then add the keys that are new to the folder's replayd.yaml, make it again, and read figures.json
// before you commit it.
func TestMakeFiles(t *testing.T) {
	if *release == "" {
		t.Skip("it makes the files of a release: -release 0.2.0")
	}
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(*release) {
		t.Fatalf("-release: want a version such as 0.2.0, got %q", *release)
	}
	work := copied(t, latest(t))
	for _, file := range []string{"records.jsonl", "state.json", "figures.json", "refused.txt"} {
		if err := os.Remove(filepath.Join(work, file)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	for address, flags := range servers {
		engine := outside.Start(t, filepath.Join(t.TempDir(), "sim.log"), binary, append([]string{"sim", "--web.listen-address", address}, flags...)...)
		engine.Ready(t, http.DefaultClient, "http://"+address+"/health")
	}
	d, _, err := serve(t, work)
	if err != nil {
		t.Fatal(err)
	}
	outside.Until(t, 3*time.Minute, func() error { return finished(t, d.url) }) // all pairs are due within a minute and a half
	if err := d.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-d.ended; err != nil {
		t.Fatal(err)
	}
	keep(t, work)
}

// finished returns an error until all pairs have ended, and some requests failed and were dropped.
func finished(t *testing.T, url string) error {
	t.Helper()
	page, err := outside.Scrape(t.Context(), url)
	if err != nil {
		return err
	}
	for _, workload := range []string{"rollout", "rollout@canary", "replicas", "replicas@canary"} {
		if done, dropped := page.Ended(workload); done+dropped < 120 {
			return fmt.Errorf("%s: want 120 rows at their end, got %v", workload, done+dropped)
		}
	}
	failed := page.Sum("replayd_requests_total", "conversation") - page.Sum("replayd_requests_total", "conversation", "ok")
	if dropped := page.Sum("replayd_requests_dropped_total", "conversation"); failed < 1 || dropped < 1 {
		return fmt.Errorf("want failed and dropped requests, got %v and %v", failed, dropped)
	}
	return nil
}

// keep puts the inputs and the files of a run into testdata, with what this replayd reads from them.
func keep(t *testing.T, work string) {
	t.Helper()
	figures := map[string]any{}
	for file, read := range readers {
		var err error
		if figures[file], err = read(t, copied(t, work)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.MarshalIndent(figures, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	outside.Write(t, work, "figures.json", string(text)+"\n")
	records, err := os.ReadFile(filepath.Join(work, "records.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(records); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	outside.Write(t, work, "records.jsonl.gz", packed.String())
	for _, file := range []string{"records.jsonl", "serve.log"} {
		if err := os.Remove(filepath.Join(work, file)); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join("testdata", *release)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, os.DirFS(work)); err != nil {
		t.Fatal(err)
	}
}
