//go:build faults

package faults_test

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"replayd/internal/measure"

	"replayd/test/outside"
)

// A server's certificate expires while connections are open. Kept connections continue. New ones fail with the outcome
// connect and an error that names the reason, and work again when the server has another certificate. The same holds
// for a certificate of another name, and for one of an untrusted authority until its file is there: the file is read
// again for each connection.
func TestExpiry(t *testing.T) {
	s := newStageAlone(t)
	dir := s.Dir
	first, second := newAuthority(t, dir, "first"), newAuthority(t, dir, "second")
	trusted := filepath.Join(dir, "trusted.pem")
	copyFile(t, first.file, trusted)
	var present atomic.Pointer[tls.Certificate]
	// The first certificate is made when it is first requested, so that it expires soon after.
	asked, made := make(chan struct{}), make(chan struct{})
	var ask sync.Once
	secure := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		ask.Do(func() { close(asked) })
		<-made
		return present.Load(), nil
	}}
	// Both answer all rows well. One closes after each answer and announces that, so all its connections are new.
	closing := &server{answer: says(closedHead + goodEvents), always: true, secure: secure}
	keeping := &server{answer: streams(goodEvents), always: true, kept: true, secure: secure}

	trace := filepath.Join(dir, "trace.jsonl")
	var rows strings.Builder
	for at := 0; at < 600_000; at += 100 {
		fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 20, "output_length": 4}`+"\n", at)
	}
	outside.Put(t, trace, rows.String())
	target := `- {name: %s, url: "https://%s", model: m, metrics: {interval: 0s}, idle: 1m, timeouts: {connect: 1m}, http: {tls_config: {ca_file: %q}}}` + "\n"
	workload := "- {name: %s, target: %[1]s, trace: {path: %q}, repeat: {mode: once}, lanes: 1, max_wait: 0s, prompt: {calibrate: false}}\n"
	s.Write(t, fmt.Sprintf("records: {path: %q}\ntargets:\n", s.Records)+
		fmt.Sprintf(target, "closing", closing.listen(t), trusted)+fmt.Sprintf(target, "keeping", keeping.listen(t), trusted)+
		"workloads:\n"+fmt.Sprintf(workload, "closing", trace)+fmt.Sprintf(workload, "keeping", trace))
	daemon, _ := s.Serve(t)
	grown := func(outcome measure.Outcome, workload string, by float64) {
		t.Helper()
		was := -1.0
		outside.See(t, s.URL(), fmt.Sprintf("%v more of %s with %s", by, workload, outcome), func(p outside.Page) bool {
			now := p.Sum("replayd_requests_total", workload, string(outcome))
			if was < 0 {
				was = now
			}
			return now >= was+by
		})
	}
	<-asked
	present.Store(first.issue(t, time.Now().Add(5*time.Second), "127.0.0.1"))
	close(made)
	grown(measure.OK, "closing", 2)
	grown(measure.OK, "keeping", 2)
	phases := []struct {
		name    string
		present *tls.Certificate // nil: unchanged
	}{
		{"certificate has expired", nil},
		{"wrong name", first.issue(t, time.Now().Add(time.Hour), "other.test")},
		{"unknown authority", second.issue(t, time.Now().Add(time.Hour), "127.0.0.1")},
	}
	later := first.issue(t, time.Now().Add(time.Hour), "127.0.0.1")
	for _, phase := range phases {
		if phase.present != nil {
			present.Store(phase.present)
		}
		grown(measure.ConnectFailed, "closing", 3)
		grown(measure.OK, "keeping", 3)
		if phase.name == "unknown authority" {
			copyFile(t, second.file, trusted)
		} else {
			present.Store(later)
		}
		grown(measure.OK, "closing", 3)
	}
	daemon.Term(t)
	all, _ := outside.Lines[nameRecord](t, s.Records)
	judgeExpiry(t, all)
}

// judgeExpiry expects ok on the kept connection. On new connections it expects only ok, and connect for the three
// reasons in order.
func judgeExpiry(t *testing.T, all []nameRecord) {
	t.Helper()
	reasons := []string{"certificate has expired", "127.0.0.1", "unknown authority"}
	count, at := map[string]int{}, 0
	for _, r := range all {
		workload, _, _ := outside.Place(t, r.ID)
		switch {
		case r.Outcome == string(measure.OK):
			count[workload+" ok"]++
		case workload == "keeping" && r.Outcome == string(measure.ConnectFailed) && count["keeping connect"] < 2:
			count["keeping connect"]++ // a busy machine sends it while the connection carries the request before
		case workload == "closing" && r.Outcome == string(measure.ConnectFailed):
			for at < len(reasons)-1 && !expiryIs(r.Error, reasons[at]) {
				at++
			}
			if !expiryIs(r.Error, reasons[at]) {
				t.Errorf("%s: want connect with %q, got %q", r.ID, reasons[at], r.Error)
			}
			count[reasons[at]]++
		default:
			t.Errorf("%s: want ok, or connect on a new connection, got %s: %s", r.ID, r.Outcome, r.Error)
		}
	}
	for _, reason := range reasons {
		if count[reason] < 3 {
			t.Errorf("want 3 failures with %q, got %d", reason, count[reason])
		}
	}
	t.Logf("%d records: %v", len(all), count)
}

// expiryIs reports whether an error is a TLS error with the reason, not counting the address in front.
func expiryIs(text, reason string) bool {
	_, said, ok := strings.Cut(text, "tls: ")
	return ok && strings.Contains(said, reason)
}

// copyFile replaces a file by a copy of another, atomically.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	outside.Put(t, to, string(text))
}
