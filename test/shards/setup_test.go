//go:build real

// Package shards_test has four processes that share one trace, as the pods of a StatefulSet and of an indexed Job do,
// and compares what they send and measure together with one process: `make suite NAME=test-shards`.
//
// Sent requests are read from the simulated engine's log. Measurements are read from a real Prometheus that scrapes the
// four processes, and a fifth process that replays the whole trace against its own engine. Then one of the four is
// killed and comes back.
package shards_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

const (
	repository = "../.."

	shards = 4
	loop   = 12 * time.Second

	// A row each 60 ms for 9 s: before a loop ends, all rows were answered and scraped.
	rows   = 150
	rowGap = 60 * time.Millisecond

	// The engine computes this many tokens/s, one prompt at a time. A prompt is done before the next one comes, so a
	// TTFT depends only on its row: 5 to 50 ms.
	prefillRate = 8000
)

// binary is replayd, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// A row is a row of the trace.
type row struct {
	offset        time.Duration
	input, output int
	session       string
}

// trace returns the rows of all replays. Every fourth row, and so one shard's, has a long prompt. The shards' quantiles
// differ, as with a shard whose clients paste whole files. Some rows are sessions of three turns.
func trace() (all []row) {
	for i := range rows {
		r := row{offset: time.Duration(i) * rowGap, input: 40 + i*37%120, output: 2 + i%7}
		if i%shards == shards-1 {
			r.input = 280 + i*37%120
		}
		if i%10 == 1 {
			r.session = fmt.Sprint("session", i/30)
		}
		all = append(all, r)
	}
	return all
}

func writeTrace(t *testing.T, dir string) (path string) {
	t.Helper()
	var text strings.Builder
	for _, r := range trace() {
		session := ""
		if r.session != "" {
			session = fmt.Sprintf(`, "session_id": %q`, r.session)
		}
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": %d, "output_length": %d%s}`+"\n", r.offset.Milliseconds(), r.input, r.output, session)
	}
	return outside.Write(t, dir, "trace.jsonl", text.String())
}

// startEngine starts a simulated engine and returns the path of its log.
func startEngine(t *testing.T, dir, name string) (address, log string) {
	t.Helper()
	address, log = outside.Address(t), filepath.Join(dir, name+".jsonl")
	p := outside.Start(t, filepath.Join(dir, name+".out"), binary, "sim", "--web.listen-address", address, "--log", log,
		"--prefill-rate", strconv.Itoa(prefillRate), "--itl", "2ms", "--cache-tokens", "0")
	t.Cleanup(func() { p.Term(t) })
	p.Ready(t, http.DefaultClient, "http://"+address+"/health")
	return address, log
}

// A pod is the environment in which a process of replayd runs. Only the environment distinguishes the shards: the
// configuration file is the same for all.
type pod struct {
	name    string
	command []string // runs the program that follows as in the pod, with the same pid
}

// statefulSet returns a pod of a StatefulSet: its host name is the pod's name. If a process cannot have its own host
// name, it returns a pod of an indexed Job.
func statefulSet(t *testing.T, ordinal int) pod {
	t.Helper()
	host := fmt.Sprint("replayd-", ordinal)
	unshare := []string{"unshare", "--uts"}
	if os.Geteuid() != 0 {
		unshare = append(unshare, "--map-root-user")
	}
	unshare = append(unshare, "sh", "-c", `hostname "$0" && exec "$@"`, host)
	if said, err := exec.CommandContext(t.Context(), unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" { // in CI a missing requirement is a failure
			t.Fatalf("no host of the name %s: %v, %s", host, err, said)
		}
		t.Logf("no host of the name %s: %v, %s", host, err, said)
		return indexedJob(ordinal)
	}
	return pod{host, append([]string{"env", "--unset=JOB_COMPLETION_INDEX"}, unshare...)}
}

// indexedJob returns a pod of an indexed Job: Kubernetes sets the index in the environment.
func indexedJob(index int) pod {
	return pod{fmt.Sprint("replayd-", index), []string{"env", fmt.Sprint("JOB_COMPLETION_INDEX=", index)}}
}

// A replica is a process of replayd.
type replica struct {
	pod     pod
	address string
	config  string
	records string
	lives   int
	process *outside.Process
}

// newReplica writes a configuration. All are the same except for the address and the record file, like those of pods.
func newReplica(t *testing.T, dir string, p pod, engine, trace, shard string) *replica {
	t.Helper()
	r := &replica{pod: p, address: outside.Address(t), records: filepath.Join(dir, p.name+".jsonl")}
	r.config = outside.Write(t, dir, p.name+".yaml", fmt.Sprintf(`
web: {listen: %q}
targets: [{name: sim, url: "http://%s", metrics: {interval: 0s}}]
workloads: [{name: canary, trace: {path: %q}, repeat: {every: %s, align: wall_clock}, shard: %s}]
records: {path: %q}
`, r.address, engine, trace, loop, shard, r.records))
	return r
}

func (r *replica) start(t *testing.T, dir string) {
	t.Helper()
	r.lives++
	command := append(append([]string{}, r.pod.command...), binary, "serve", "--config", r.config)
	r.process = outside.Start(t, filepath.Join(dir, fmt.Sprintf("%s-%d.out", r.pod.name, r.lives)), command[0], command[1:]...)
	r.process.Ready(t, http.DefaultClient, "http://"+r.address+"/-/ready")
}

// until waits for an instant.
func until(t *testing.T, at time.Time) {
	t.Helper()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}
