//go:build faults

package faults_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/internal/measure"

	"replayd/test/outside"
)

// Rows of each workload, 50 of which meet the fault, and faults that one daemon meets at once.
const (
	causeRows  = 62
	causeBatch = 24
)

// A causeRecord has the fields of a record that the test checks.
type causeRecord struct {
	ID      string `json:"id"`
	Row     int    `json:"row"`
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
	Retried bool   `json:"retried"`
}

// Every outcome is produced by a fault, and no fault has two outcomes, wherever the segments of an answer are cut and
// however late they come, on new connections and on kept ones.
func TestOutcomes(t *testing.T) {
	all := slices.Concat(causes, lateCauses)
	for _, o := range measure.Outcomes() {
		if !slices.ContainsFunc(all, func(c cause) bool { return c.outcome == o }) {
			t.Errorf("no fault has the outcome %s", o)
		}
	}
	requests, retried := 0, 0
	for batch := range slices.Chunk(all, causeBatch) {
		n, again := meet(t, batch)
		requests, retried = requests+n, retried+again
	}
	t.Logf("%d faults, %d requests, %d of them sent twice", len(all), requests, retried)
}

// meet runs some faults with a daemon of their own and judges them. It returns the requests, and how many were retried.
func meet(t *testing.T, batch []cause) (requests, retried int) {
	t.Helper()
	s := newStageAlone(t)
	s.Write(t, causeConfig(t, batch, s.Dir, s.Records))
	daemon, _ := s.Serve(t)
	at := outside.See(t, s.URL(), "the end of all that ends", func(p outside.Page) bool {
		for _, fault := range p.Balance() {
			t.Error(fault)
		}
		for _, c := range batch {
			flying := 0
			if c.outcome == measure.Aborted {
				flying = causeRows - c.good()
			}
			if p.Sum("replayd_requests_expected_total", c.label()) != causeRows || p.Sum("replayd_requests_waiting", c.label()) > 0 ||
				p.Sum("replayd_requests_in_flight", c.label()) != float64(flying) {
				return false
			}
		}
		return true
	})
	daemon.Term(t) // the drain is over by then, and requests in flight are aborted
	lines, torn := outside.Lines[causeRecord](t, s.Records)
	if torn {
		t.Error("the last record is torn")
	}
	by := map[string][]causeRecord{}
	for _, r := range lines {
		workload, _, _ := outside.Place(t, r.ID)
		by[workload] = append(by[workload], r)
	}
	for _, c := range batch {
		t.Run(c.name, func(t *testing.T) { retried += c.judge(t, at, by[c.label()]) })
	}
	return len(lines), retried
}

// good returns the number of rows of the workload that are answered well.
func (c *cause) good() (n int) {
	for row := range causeRows {
		if goodRow(row) && c.meetsNot() {
			n++
		}
	}
	return n
}

// meetsNot reports whether good rows are answered well.
func (c *cause) meetsNot() bool {
	unsafe := c.secure != "" && c.secure != "good"
	return !c.always && !c.late() && c.early == nil && c.answer != nil && !unsafe
}

// judge compares the counters and the records of a workload with its one outcome.
func (c *cause) judge(t *testing.T, at outside.Page, records []causeRecord) (retried int) {
	t.Helper()
	if len(records) != causeRows {
		t.Errorf("want a record of each of %d rows, got %d", causeRows, len(records))
	}
	if _, dropped := at.Ended(c.label()); dropped > 0 {
		t.Errorf("want none dropped, got %v", dropped)
	}
	count, resets := map[string]int{}, 0
	for _, r := range records {
		want, words := c.outcome, c.words
		switch {
		case r.Outcome == string(measure.NoAnswer) && strings.Contains(r.Error, "reset by peer") && resets < 2:
			// A busy machine reads the answer too late: the reset that follows it has thrown it away.
			want, words, resets = measure.NoAnswer, "reset by peer", resets+1
		case goodRow(r.Row) && c.meetsNot():
			want, words = measure.OK, ""
		case r.Outcome == string(c.or):
			want = c.or
		}
		if r.Outcome != string(want) || !strings.Contains(r.Error, words) || (r.Error == "") != (want == measure.OK) {
			t.Errorf("row %d: want %s with %q, got %s with %q", r.Row, want, words, r.Outcome, r.Error)
		}
		if r.Retried {
			retried++
		}
		if r.Outcome != string(measure.Aborted) {
			count[r.Outcome]++
		}
	}
	for _, o := range measure.Outcomes() { // by the page from before the end
		if got := at.Sum("replayd_requests_total", c.label(), string(o)); got != float64(count[string(o)]) {
			t.Errorf("replayd_requests_total{outcome=%q}: want %d as in the records, got %v", o, count[string(o)], got)
		}
	}
	return retried
}

// causeConfig starts a server for each cause and returns a configuration with all of them.
func causeConfig(t *testing.T, all []cause, dir, records string) string {
	t.Helper()
	good, bad := newAuthority(t, dir, "good"), newAuthority(t, dir, "bad")
	later := time.Now().Add(time.Hour)
	secure := map[string]*tls.Config{
		"good":      {Certificates: []tls.Certificate{*good.issue(t, later, "127.0.0.1")}},
		"expired":   {Certificates: []tls.Certificate{*good.issue(t, time.Now().Add(-time.Minute), "127.0.0.1")}},
		"untrusted": {Certificates: []tls.Certificate{*bad.issue(t, later, "127.0.0.1")}},
		"other":     {Certificates: []tls.Certificate{*good.issue(t, later, "other.test")}},
		"mutual":    {Certificates: []tls.Certificate{*good.issue(t, later, "127.0.0.1")}, ClientAuth: tls.RequireAnyClientCert},
	}
	traces := map[string]string{"": causeTrace(t, dir, "short.jsonl", 20), "long": causeTrace(t, dir, "long.jsonl", 20_000)}
	var targets, workloads strings.Builder
	for _, c := range all {
		url := "http://"
		if c.secure != "" {
			url = "https://"
		}
		switch {
		case c.name == "backlog-full":
			url += fullBacklog(t)
		case c.name == "refused":
			url += outside.Address(t)
		case c.answer != nil || c.early != nil:
			s := &server{answer: c.answer, early: c.early, always: c.always || c.late(), whole: strings.Contains(c.target, unstreamed), secure: secure[c.secure]}
			url += s.listen(t)
		case c.secure != "":
			s := &server{answer: streams(goodEvents), secure: secure[c.secure]}
			url += s.listen(t)
		}
		target, workload := c.yaml(url, good.file, traces[c.trace])
		targets.WriteString(target)
		workloads.WriteString(workload)
	}
	return fmt.Sprintf("drain: 1s\nrecords: {path: %q}\ntargets:\n%sworkloads:\n%s", records, targets.String(), workloads.String())
}

func causeTrace(t *testing.T, dir, name string, input int) (path string) {
	t.Helper()
	var text strings.Builder
	for range causeRows {
		fmt.Fprintf(&text, `{"input_length": %d, "output_length": 4}`+"\n", input)
	}
	return outside.Write(t, dir, name, text.String())
}

// fullBacklog returns the address of a socket with a full backlog: the kernel does not answer new connections.
func fullBacklog(t *testing.T) (address string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	own, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address = fmt.Sprint("127.0.0.1:", own.(*syscall.SockaddrInet4).Port)
	for range 10 {
		conn, err := net.DialTimeout("tcp", address, 300*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Fatalf("%s: want it to take no more connections after 10", address)
	return ""
}
