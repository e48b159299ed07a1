package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"replayd/internal/measure"
)

// Limits on a file of requests.
const (
	mostLine   = 16 << 20 // bytes in a line: the gaps of half a million chunks
	mostFaults = 10       // bad lines that are listed one by one
)

// Each of replayd's records begins with recordStart, and each ledger with ledgerStart; see records.Sink.
var (
	recordStart = []byte(`{"id":`)
	ledgerStart = []byte(`{"ledger":`)
)

// ReadExport reads a profile_export.jsonl of AIPerf or replayd, which holds one run, or a records file of replayd, which
// holds one or more runs in order. name is the file's name in messages. ReadExport skips a truncated last line and lines
// that are not JSON, and notes that in Run.Partial. It fails if reading fails, or if the file holds something else.
func ReadExport(r io.Reader, name string) ([]Run, error) {
	return readExport(r, name, mostRows)
}

func readExport(r io.Reader, name string, most int) ([]Run, error) {
	x := exportReader{name: name, most: most}
	x.startRun()
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		x.line++
		line, whole, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s:%d: %w", name, x.line, err)
		}
		ended := errors.Is(err, io.EOF)
		if fault := x.readLine(line, whole, ended); fault != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, x.line, fault)
		}
		if ended {
			return x.end()
		}
	}
}

// readLine reads up to a newline. It reads a line over mostLine to its end but does not keep it; whole is then false.
func readLine(in *bufio.Reader) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := in.ReadSlice('\n')
		if whole = whole && len(line)+len(part) <= mostLine; whole {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err
		}
	}
}

type exportReader struct {
	name       string
	most       int // rows of all runs
	line, rows int
	gaps       int

	runs []Run // earlier runs
	run  Run
	// Of the current run:
	faults, beyond, gapless int
	sessions                map[string]int64    // session numbers of records, which have no session_num
	ids                     map[string]struct{} // of records, if no ledger tells the runs apart
	last                    int64               // latest instant of the run's rows, Unix ns
	telling                 []measure.LedgerLine
}

func (x *exportReader) startRun() {
	x.run, x.faults, x.beyond, x.gapless, x.last = Run{}, 0, 0, 0, 0
	x.sessions, x.ids = map[string]int64{}, map[string]struct{}{}
}

// readLine handles one line. last marks a line that no newline ends.
func (x *exportReader) readLine(line []byte, whole, last bool) error {
	line = bytes.TrimSpace(line)
	switch {
	case !whole:
		x.fault(fmt.Sprintf("longer than %d bytes", mostLine))
		return nil
	case len(line) == 0:
		return nil
	case !json.Valid(line) && last:
		x.fault("cut in mid-line")
		return nil
	case !json.Valid(line):
		x.fault("no JSON")
		return nil
	}
	if bytes.HasPrefix(line, ledgerStart) {
		return x.ledger(line)
	}
	if err := x.told(); err != nil {
		return err
	}
	row, err := x.row(line)
	if err := errors.Join(err, sane(row)); err != nil {
		return err
	}
	x.last = max(x.last, row.Start, row.End)
	if x.rows >= x.most {
		x.beyond++
		return nil
	}
	x.rows++
	if x.gaps += len(row.Gaps); x.gaps > mostGaps && row.Gaps != nil {
		row.Gaps = nil
		x.gapless++
	}
	x.run.Rows = append(x.run.Rows, row)
	return nil
}

// Limits on the values of a row, so that differences and sums do not overflow.
const (
	lastInstant = 1 << 62 // Unix ns: the year 2116
	mostTime    = 1e12    // ms: 31 years
)

func sane(r Row) error {
	for _, ns := range []int64{r.Due, r.Credit, r.Start, r.Ack, r.First, r.End, r.Cancel} {
		if ns < 0 || ns > lastInstant {
			return fmt.Errorf("instants: want Unix time in ns from 0 to %d, got %d", int64(lastInstant), ns)
		}
	}
	for _, v := range append([]float64{r.TTFT, r.TTFAT, r.Second, r.Latency, r.ITL, r.Lateness}, r.Gaps...) {
		if v < 0 || v > mostTime {
			return fmt.Errorf("times: want 0 to %v ms, got %v", mostTime, v)
		}
	}
	return nil
}

func (x *exportReader) row(line []byte) (Row, error) {
	if bytes.HasPrefix(line, recordStart) {
		var record recordLine
		if err := json.Unmarshal(line, &record); err != nil {
			return Row{}, jsonFault(err)
		}
		if err := x.again(record.Phase + "/" + record.ID); err != nil {
			return Row{}, err
		}
		return record.row(x)
	}
	var l struct {
		exportLine
		Metadata *exportMetadata `json:"metadata"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return Row{}, jsonFault(err)
	}
	if l.Metadata == nil {
		return Row{}, errors.New("want the metadata and metrics of a profile_export.jsonl or the id and outcome of a record, got neither")
	}
	l.exportLine.Metadata = *l.Metadata
	return l.row()
}

func (x *exportReader) fault(what string) {
	if x.faults++; x.faults <= mostFaults {
		x.run.Partial = append(x.run.Partial, fmt.Sprintf("%s:%d: %s", x.name, x.line, what))
	}
}

// close completes the current run.
func (x *exportReader) close() {
	partial := func(n int, format string, values ...any) {
		if n > 0 {
			x.run.Partial = append(x.run.Partial, x.name+": "+fmt.Sprintf(format, values...))
		}
	}
	partial(x.faults-mostFaults, "%d more lines that cannot be read", x.faults-mostFaults)
	partial(x.beyond, "%d requests after the first %d were not read", x.beyond, x.most)
	partial(x.gapless, "the gaps between chunks of %d requests were not read", x.gapless)
	inOrder(x.run.Rows)
	for _, r := range x.run.Rows {
		if r.Outcome == measure.OK && !math.IsNaN(r.TTFT) {
			x.run.Settings.Streamed = true
		}
	}
	x.run.Ledger = sumOf(x.run.Told)
	x.run.judge(x.name)
	if x.beyond == 0 {
		x.run.checkLedger(x.name)
	}
	if l := x.run.Ledger; len(x.run.Rows) > 0 || len(x.run.Partial) > 0 || l != nil && l.Expected > 0 {
		x.runs = append(x.runs, x.run)
	}
}

func (x *exportReader) end() ([]Run, error) {
	if err := x.told(); err != nil {
		return nil, err
	}
	faults := x.faults
	x.close()
	switch n := len(x.runs); {
	case n == 0:
		return []Run{x.run}, nil
	case n == 1 && len(x.run.Rows) == 0 && x.run.Ledger == nil && faults > 0:
		return nil, fmt.Errorf("%s: want a profile_export.jsonl or a file of records, got no line that is one: %s", x.name, x.run.Partial[0])
	}
	return x.runs, nil
}
