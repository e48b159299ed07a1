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

	"replayd/internal/scrape"
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
func (s *SMI) Read(ctx context.Context) ([]Device, error) {
	for {
		columns := s.columns()
		out, err := run(ctx, s.path, "--query-gpu="+query(columns), "--format=csv,noheader,nounits")
		name := refused(out, err)
		if slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
			s.unknown[name] = true
			continue // nvidia-smi reports one unknown name at a time
		}
		if err != nil {
			return nil, err
		}
		list, err := parseSMI(out, columns)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
		for i := range list {
			list[i].Hostname = s.hostname
		}
		return list, nil
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

// parseSMI parses one line per GPU: index, uuid, the columns and the name.
func parseSMI(out []byte, columns []column) ([]Device, error) {
	var list []Device
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, maxOutput)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		cells := strings.SplitN(line, ",", len(columns)+3)
		if len(cells) != len(columns)+3 {
			return nil, fmt.Errorf("line %d: want %d columns, got %q", n, len(columns)+3, shorten(line))
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if _, err := strconv.ParseUint(cells[0], 10, 16); err != nil {
			return nil, fmt.Errorf("line %d: index: want a number, got %q", n, shorten(cells[0]))
		}
		d := Device{Index: Label(cells[0]), UUID: known(cells[1]), Model: known(cells[len(cells)-1]), Values: make(map[*Field]float64, len(columns))}
		for i, c := range columns {
			if v, ok := parseCell(cells[i+2]); ok && (c.field.Kind == scrape.Gauge || v >= 0) {
				d.Values[c.field] = c.field.smiScale.of(v)
			}
		}
		list = append(list, d)
	}
	return list, lines.Err()
}

// known returns a text cell, or "" for a placeholder: [N/A], [GPU is lost], [Unknown Error].
func known(cell string) secret.Text {
	if strings.HasPrefix(cell, "[") || cell == "N/A" {
		return ""
	}
	return Label(cell)
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
