package gpu

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"replayd/internal/secret"
)

// SMI runs nvidia-smi for each reading. nvidia-smi reports whole GPUs only and no profiling fields. Calls of Read must
// not overlap.
type SMI struct {
	path     string
	hostname secret.Text
	unknown  map[string]bool // names that this nvidia-smi rejects
}

// NewSMI returns a source that runs the program at path, or nvidia-smi from PATH if path is "auto" or empty. Read fails
// if the program does not exist.
func NewSMI(path string) *SMI {
	if path == "" || path == "auto" {
		path = "nvidia-smi"
	}
	return &SMI{path: path, hostname: Label(Hostname()), unknown: map[string]bool{}}
}

// Read implements Source.
func (s *SMI) Read(ctx context.Context) (Reading, error) {
	for {
		columns := s.columns()
		out, err := run(ctx, s.path, "--query-gpu="+query(columns), "--format=csv,noheader,nounits")
		name := refused(out, err)
		if slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
			s.unknown[name] = true
			continue // nvidia-smi reports one unknown name at a time
		}
		r := parseSMI(out, columns)
		switch failed, exited := exitOf(err); {
		case exited && len(r.Devices) > 0: // 14: an infoROM is corrupted
			r.Drop("%v, want 0", failed)
			err = nil
		case err == nil && len(r.Devices) == 0 && r.Bad > 0:
			err = fmt.Errorf("%s: %s", s.path, r.first)
		}
		for i := range r.Devices {
			r.Devices[i].Hostname = s.hostname
		}
		return r, err
	}
}

// Close implements Source.
func (*SMI) Close() error { return nil }

// A column is a field with its name in nvidia-smi.
type column struct {
	field *Field
	name  string
}

// columns returns the columns to query: for each field, the first name that nvidia-smi has not rejected.
func (s *SMI) columns() []column {
	var columns []column
	for _, f := range fields {
		if i := slices.IndexFunc(f.smi, func(name string) bool { return !s.unknown[name] }); i >= 0 {
			columns = append(columns, column{f, f.smi[i]})
		}
	}
	return columns
}

// query puts the product name last: nvidia-smi does not quote cells, and only the product name could contain a comma.
func query(columns []column) string {
	names := make([]string, 0, len(columns)+3)
	names = append(names, "index", "uuid")
	for _, c := range columns {
		names = append(names, c.name)
	}
	return strings.Join(append(names, "name"), ",")
}

// refusal is how nvidia-smi rejects a name, on stdout or stderr.
var refusal = regexp.MustCompile(`Field "([^"]*)".*not a valid field`)

// refused returns the name that nvidia-smi rejects, or "".
func refused(out []byte, err error) string {
	if m := refusal.FindStringSubmatch(fmt.Sprintf("%v\n%s", err, firstLine(out))); m != nil {
		return m[1]
	}
	return ""
}

// parseSMI parses one line per GPU: index, uuid, the columns and the name. It leaves out other lines, such as a warning
// or what nvidia-smi says of a board that is lost.
func parseSMI(out []byte, columns []column) (r Reading) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, maxOutput)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		cells := strings.SplitN(line, ",", len(columns)+3)
		if len(cells) != len(columns)+3 {
			r.Drop("line %d: want %d columns, got %q", n, len(columns)+3, line)
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if _, err := strconv.ParseUint(cells[0], 10, 16); err != nil {
			r.Drop("line %d: index: want a number, got %q", n, cells[0])
			continue
		}
		d := Device{Index: Label(cells[0]), UUID: known(cells[1]), Model: known(cells[len(cells)-1]), Values: make(map[*Field]float64, len(columns))}
		for i, c := range columns {
			if v, ok := parseCell(cells[i+2]); ok {
				r.add(&d, c.field, c.name, v, c.field.smiScale)
			} else if !absent(cells[i+2]) {
				r.Drop("line %d: %s: want a number, got %q", n, c.name, cells[i+2])
			}
		}
		r.Devices = append(r.Devices, d)
	}
	return r
}

// known returns a text cell, or "" for a placeholder: [N/A], [GPU is lost], [Unknown Error].
func known(cell string) secret.Text {
	if strings.HasPrefix(cell, "[") || cell == "N/A" {
		return ""
	}
	return Label(cell)
}

// absent reports whether a cell says that there is no such value: [N/A], [Not Supported], but not [GPU is lost].
func absent(cell string) bool {
	fails := strings.Contains(cell, "lost") || strings.Contains(cell, "Error")
	return cell == "" || cell == "N/A" || strings.HasPrefix(cell, "[") && !fails
}

// parseCell parses a number with or without a unit, a hexadecimal mask, or a word for 0 or 1. Anything else is no
// value.
func parseCell(cell string) (float64, bool) {
	switch cell {
	case "Enabled", "Active", "Yes":
		return 1, true
	case "Disabled", "Not Active", "No":
		return 0, true
	}
	number, _, _ := strings.Cut(cell, " ")
	if hex, ok := strings.CutPrefix(number, "0x"); ok {
		mask, err := strconv.ParseUint(hex, 16, 64)
		return float64(mask), err == nil
	}
	if strings.Trim(number, "-.0123456789") != "" { // ParseFloat also accepts NaN, infinities, hexadecimal and underscores
		return 0, false
	}
	v, err := strconv.ParseFloat(number, 64)
	return v, err == nil
}
