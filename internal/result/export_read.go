package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"replayd/internal/measure"
	"replayd/internal/records"
)

// ReadExport reads a profile_export.jsonl of AIPerf or replayd, which holds one run, or a records file of replayd, which
// holds one or more runs in order. name is the file's name in messages. ReadExport skips a truncated last line and lines
// that are not JSON, and notes that in Run.Partial. It fails if reading fails, or if the file holds something else.
func ReadExport(r io.Reader, name string) ([]Run, error) {
	return readExport(r, name, maxRows)
}

func readExport(r io.Reader, name string, most int) ([]Run, error) {
	x := exportReader{name: name, most: most, line: 1}
	x.startRun()
	err := eachLine(r, func(line []byte, whole, last bool) error {
		err := x.readLine(line, whole, last)
		if err == nil {
			x.line++
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, x.line, err)
	}
	return x.end()
}

// eachLine calls do with each line of a file, the last one with or without a newline.
func eachLine(r io.Reader, do func(line []byte, whole, last bool) error) error {
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, whole, err := readLine(in)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return err
		}
		if err := do(line, whole, last); err != nil || last {
			return err
		}
	}
}

// readLine reads up to a newline. It reads a line over maxLine to its end but does not keep it; whole is then false.
func readLine(in *bufio.Reader) (line []byte, whole bool, err error) {
	whole = true
	for {
		part, err := in.ReadSlice('\n')
		if whole = whole && len(line)+len(part) <= maxLine; whole {
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
	faults, extra, gapless int
	sessions               numbering           // of records, which have no session_num
	ids                    map[string]struct{} // of records, if no ledger tells the runs apart
	last                   int64               // latest instant of the run's rows, Unix ns
	lines                  []measure.LedgerLine
}

func (x *exportReader) startRun() {
	x.run, x.faults, x.extra, x.gapless, x.last = Run{}, 0, 0, 0, 0
	x.sessions, x.ids = numbering{}, map[string]struct{}{}
}

// readLine handles one line. last marks a line that no newline ends.
func (x *exportReader) readLine(line []byte, whole, last bool) error {
	line = bytes.TrimSpace(line)
	switch {
	case !whole:
		x.fault(fmt.Sprintf("longer than %d bytes", maxLine))
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
	if bytes.HasPrefix(line, records.LedgerStart) {
		return x.ledger(line)
	}
	if err := x.addLedgers(); err != nil {
		return err
	}
	row, err := x.row(line)
	if err := errors.Join(err, sane(row)); err != nil {
		return err
	}
	x.last = max(x.last, row.Start, row.End)
	if x.rows >= x.most {
		x.extra++
		return nil
	}
	x.rows++
	if x.gaps += len(row.Gaps); x.gaps > maxGaps && row.Gaps != nil {
		row.Gaps = nil
		x.gapless++
	}
	x.run.Rows = append(x.run.Rows, row)
	return nil
}

func sane(r Row) error {
	for _, ns := range []int64{r.Due, r.Credit, r.Start, r.Ack, r.First, r.End, r.Cancel} {
		if ns < 0 || ns > lastInstant {
			return fmt.Errorf("instants: want Unix time in ns from 0 to %d, got %d", int64(lastInstant), ns)
		}
	}
	for _, v := range append([]float64{r.TTFT, r.TTFAT, r.Second, r.Latency, r.ITL, r.Lateness, r.Connect, r.MostTPOT}, r.Gaps...) {
		if v < 0 || v > maxTime {
			return fmt.Errorf("times: want 0 to %v ms, got %v", maxTime, v)
		}
	}
	return nil
}

func (x *exportReader) row(line []byte) (Row, error) {
	if bytes.HasPrefix(line, records.RecordStart) {
		var record recordLine
		if err := json.Unmarshal(line, &record); err != nil {
			return Row{}, jsonFault(err)
		}
		if err := x.again(record.Phase + "/" + record.ID); err != nil {
			return Row{}, err
		}
		r, err := record.row()
		r.Session = x.sessions.of(r.Phase, r.Correlation, x.most)
		return r, err
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
	if x.faults++; x.faults <= maxFaults {
		x.run.Partial = append(x.run.Partial, fmt.Sprintf("%s:%d: %s", x.name, x.line, what))
	}
}

// close completes the current run.
func (x *exportReader) close() {
	unlisted := x.faults - maxFaults
	x.run.lacks(unlisted, "%s: %d more lines that cannot be read", x.name, unlisted)
	x.run.lacks(x.extra, "%s: %d requests after the first %d were not read", x.name, x.extra, x.most)
	x.run.lacks(x.gapless, "%s: the gaps between chunks of %d requests were not read", x.name, x.gapless)
	inOrder(x.run.Rows)
	x.run.Settings.Streamed = slices.ContainsFunc(x.run.Rows, func(r Row) bool {
		return r.Outcome == measure.OK && !math.IsNaN(r.TTFT)
	})
	x.run.Ledger = sumOf(x.run.LedgerLines)
	x.run.judge(x.name)
	if x.extra == 0 {
		x.run.checkLedger(x.name)
	}
	if l := x.run.Ledger; len(x.run.Rows) > 0 || len(x.run.Partial) > 0 || l != nil && l.Expected > 0 {
		x.runs = append(x.runs, x.run)
	}
}

func (x *exportReader) end() ([]Run, error) {
	if err := x.addLedgers(); err != nil {
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

// ledger reads a line {"ledger":{…}}. Lines of one instant belong together: there is one for each workload of a
// process.
func (x *exportReader) ledger(text []byte) error {
	var line struct {
		Ledger measure.LedgerLine `json:"ledger"`
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return jsonFault(err)
	}
	l := line.Ledger
	if l.Version > measure.RecordsVersion {
		return fmt.Errorf("ledger: version: want at most %d, got %d, of a newer replayd", measure.RecordsVersion, l.Version)
	}
	if l.Time < 0 || l.Time > lastInstant || l.Began < 0 || l.Began > lastInstant {
		return fmt.Errorf("ledger: time_ns, began_ns: want Unix time in ns from 0 to %d, got %d and %d", int64(lastInstant),
			l.Time, l.Began)
	}
	if err := balanced(l.Ledger); err != nil {
		return err
	}
	if len(x.lines) > 0 && x.lines[0].Time != l.Time {
		if err := x.addLedgers(); err != nil {
			return err
		}
	}
	if len(x.lines) >= maxWorkloads {
		return fmt.Errorf("ledger: want at most %d workloads, got more", maxWorkloads)
	}
	x.lines = append(x.lines, l)
	return nil
}

// addLedgers adds the ledgers of one instant, now complete, to the run. It begins another run if none of the ledgers
// continues a counting of this run. It also begins another run if this run has rows but no ledger, and all rows are
// from before the ledgers began: an old replayd wrote those rows.
func (x *exportReader) addLedgers() error {
	if len(x.lines) == 0 {
		return nil
	}
	lines := x.lines
	x.lines = nil
	known := map[counting]bool{}
	for _, l := range x.run.LedgerLines {
		known[countingOf(l)] = true
	}
	goesOn := func(l measure.LedgerLine) bool {
		if len(known) == 0 {
			return x.last == 0 || x.last >= l.Began
		}
		return known[countingOf(l)]
	}
	if !slices.ContainsFunc(lines, goesOn) {
		if err := x.next(); err != nil {
			return err
		}
	}
	x.run.LedgerLines = latest(x.run.LedgerLines, lines)
	if len(x.run.LedgerLines) > maxWorkloads {
		return fmt.Errorf("ledger: want at most %d workloads, got more", maxWorkloads)
	}
	return nil
}

// again begins another run if a record repeats an id and no ledger tells the runs apart.
func (x *exportReader) again(id string) error {
	if len(x.run.LedgerLines) > 0 {
		return nil
	}
	if _, seen := x.ids[id]; seen {
		if err := x.next(); err != nil {
			return err
		}
	}
	if len(x.ids) < x.most {
		x.ids[id] = struct{}{}
	}
	return nil
}

func (x *exportReader) next() error {
	x.close()
	if len(x.runs) >= maxRunsOfOne {
		return fmt.Errorf("want the records of at most %d runs, got more", maxRunsOfOne)
	}
	x.startRun()
	return nil
}
