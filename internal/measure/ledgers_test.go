package measure

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

const bubbleBegan = 946684800_000000000 // Unix ns of the first instant of a bubble

// Workloads stand in the order of their names, what one counted under two names of its model is one, and a reload that takes a workload
// away and brings it back lets its ledger go on.
func TestLedgersOfAMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMeter(prometheus.NewRegistry())
		want := func(lines ...string) {
			t.Helper()
			text := ""
			for _, l := range lines {
				text += fmt.Sprintf(`{"ledger":{"time_ns":%d,"began_ns":%d,%s}}`+"\n", time.Now().UnixNano(), bubbleBegan, l)
			}
			if diff := cmp.Diff(text, string(m.AppendLedgers(nil))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
		want()
		target := vllm(m)
		learns := learner(m, target)
		chat := Labels{Workload: "chat", Target: "vllm", Model: "m"}
		o := WorkloadOptions{SLO: slo, Shard: Shard{1, 4}}
		w := m.Workload(chat, o)
		const none = `"expected":0,"in_flight":0,"waiting":0,"outcomes":{},"dropped":{},"filtered":0,"good":0,"eligible":0`
		born := `"workload":"chat","target":"vllm","shard":"1/4","slo":"` + slo.String() + `",` + none
		want(born, `"workload":"w","target":"vllm","shard":"0/1","slo":"",`+none)
		<-time.After(time.Second)
		target.Serves("a")
		learns.until(OK)
		target.Serves("b")
		learns.until(Cancelled)
		w.Expected(4)
		w.Filtered(2)
		w.Sent()
		w.Dropped(Paused)
		w.Dropped(Overload)
		const two = `"workload":"w","target":"vllm","shard":"0/1","slo":"",` +
			`"expected":2,"in_flight":0,"waiting":0,"outcomes":{"cancelled":1,"ok":1},"dropped":{},"filtered":0,"good":1,"eligible":1`
		want(`"workload":"chat","target":"vllm","shard":"1/4","slo":"`+slo.String()+
			`","expected":4,"in_flight":1,"waiting":1,"outcomes":{},"dropped":{"overload":1,"paused":1},"filtered":2,"good":0,"eligible":1`, two)
		w.Dropped(Shutdown)
		w.Finished(request("", 0, Aborted))
		m.Remove(w)
		want(two)
		<-time.After(time.Minute)
		m.Workload(chat, WorkloadOptions{}).until(OK)
		want(`"workload":"chat","target":"vllm","shard":"0/1","slo":"",`+
			`"expected":5,"in_flight":0,"waiting":0,"outcomes":{"aborted":1,"ok":1},"dropped":{"overload":1,"paused":1,"shutdown":1},"filtered":2,"good":1,"eligible":2`, two)
		if l := m.Ledger(); l.Expected != 7 || l.Outcomes[OK] != 2 || l.Balance() != nil {
			t.Errorf("the sum: %+v, %v", l, l.Balance())
		}
	})
}

// told has a sink write ledgers that count themselves.
func (s *heardSink) told(workloads int) (line func(n int) string) {
	n := 0
	line = func(n int) (all string) {
		for i := range workloads {
			all += fmt.Sprintf(`{"ledger":{"n":%d,"workload":"%d"}}`+"\n", n, i)
		}
		return all
	}
	s.Ledgers = func(b []byte) []byte { n++; return append(b, line(n)...) }
	return line
}

// Ledgers stand before the first record of a file that is opened, then each minute, and at the end; a change of files ends the one and
// begins the other.
func TestSinkTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "r.jsonl")
		write(t, path, "theirs\n")
		s := newHeardSink()
		told := s.told(2)
		s.use(t, RecordsOptions{Path: path})
		stop := running(t, s.Sink)
		pass(time.Second)
		isFile(t, path, "theirs\n") // nothing to say yet
		s.Observe(numbered(1))
		pass(58 * time.Second)
		s.Observe(numbered(2))
		want := "theirs\n" + told(1) + lines(1, 2)
		pass(999 * ms)
		isFile(t, path, "theirs\n"+told(1)+lines(1))
		pass(ms) // a minute has passed
		isFile(t, path, want+told(2))
		pass(time.Minute)
		want += told(2) + told(3)
		isFile(t, path, want)
		s.Observe(numbered(3))
		s.use(t, RecordsOptions{Path: path + "2"})
		isFile(t, path, want+lines(3)+told(4))
		s.Observe(numbered(4))
		if err := stop(); err != nil {
			t.Error(err)
		}
		isFile(t, path+"2", told(5)+lines(4)+told(6))
		s.heard(t, 0, "")
	})
}

// Every file of a rotation begins with ledgers, and no file has nothing else: not even where they fill it.
func TestRotatedFilesBeginWithLedgers(t *testing.T) {
	for _, most := range []int{1, 30, 100, len(lines(1)), 3 * len(lines(1)), 5000} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r.jsonl")
			s := newHeardSink()
			told := s.told(3)
			s.use(t, RecordsOptions{Path: path, MaxBytes: int64(most), Keep: 1000})
			stop := running(t, s.Sink)
			want := ""
			for n := range 9 {
				s.Observe(numbered(n))
				want += lines(n)
				pass(time.Duration(n) * 10 * time.Second)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			all, _ := files(t, path)
			got := ""
			for i, text := range all {
				if i < len(all)-1 && most > 2*len(told(9))+len(lines(9)) && len(text) > most {
					t.Errorf("at most %d: file %d has %d bytes", most, i, len(text))
				}
				var n int
				if _, err := fmt.Sscanf(text, `{"ledger":{"n":%d,`, &n); err != nil || most > len(told(9)) && !strings.HasPrefix(text, told(n)) {
					t.Errorf("at most %d: file %d of %d does not begin with ledgers:\n%s", most, i, len(all), text)
				}
				for line := range strings.Lines(text) {
					if !strings.HasPrefix(line, `{"ledger":{"n":`) {
						got += line
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("at most %d: records -want +got:\n%s", most, diff)
			}
			s.heard(t, 0, "")
		})
	}
}

// A file that cannot be written loses records; ledgers are none.
func TestLostLedgersAreNoRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHeardSink()
		s.told(3)
		s.use(t, RecordsOptions{Path: "/dev/full"})
		stop := running(t, s.Sink)
		s.Observe(numbered(1))
		pass(2 * time.Minute)
		if err := stop(); err == nil {
			t.Error("want an error at the end")
		}
		s.heard(t, 1, `level=ERROR msg="records are lost until they can be written" err="records: write /dev/full: no space left on device"`+"\n")
	})
}

// At the end the ledgers are written whatever waits: as much as may wait must not leave them no room.
func TestLedgersAtTheEndHaveRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	s := newHeardSink()
	told := s.told(2)
	s.use(t, RecordsOptions{Path: path})
	r := request(strings.Repeat("x", 64<<10), 0, OK, ms)
	for len(s.pending) < sinkBound-len(appendRecord(nil, r)) {
		s.Observe(r)
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); !strings.HasSuffix(got, told(2)) {
		t.Errorf("want ledgers at the end, got …%.200q", got[len(got)-200:])
	}
	s.heard(t, 0, "")
}
