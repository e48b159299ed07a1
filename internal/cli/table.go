package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/fault"
	"replayd/internal/scalar"
	"replayd/internal/trace"
)

// A Table has the flags of a command, as its help shows them, and the keys that they set.
type Table []Group

// A Group is rows with one title. Two groups may have the same title.
type Group struct {
	Title string
	Under string // the key that the rows' keys are below, if they have no index themselves
	Rows  []Row
}

// A Row is a flag and the keys that it sets. Faults of a key are shown under its flag.
type Row struct {
	Flag  string // its name, and its letter after a comma
	Keys  string // with blanks between them; "": it sets no option alone
	Value any    // pointer to the value, which is the default; nil: there is no such flag, but faults show this name
	Usage string
}

// NewRow returns the row of a flag that sets no key.
func NewRow(flag string, value any, usage string) Row { return Row{flag, "", value, usage} }

// Add gives c the flags.
func (t Table) Add(c *cobra.Command) {
	c.Flags().SortFlags = false
	for _, g := range t {
		for _, r := range g.Rows {
			if r.Value != nil {
				r.add(c.Flags())
				c.Flags().Lookup(r.flag()).Annotations = map[string][]string{group: {g.Title}}
			}
		}
	}
}

// Lines are the values of a flag that is given several times. A comma does not separate them.
type Lines []string

func (r Row) add(f *pflag.FlagSet) {
	name := r.flag()
	short := strings.TrimPrefix(r.Flag[len(name):], ",")
	switch v := r.Value.(type) {
	case *string:
		f.StringVarP(v, name, short, *v, r.Usage)
	case *bool:
		f.BoolVarP(v, name, short, *v, r.Usage)
	case *int:
		f.IntVarP(v, name, short, *v, r.Usage)
	case *uint64:
		f.Uint64VarP(v, name, short, *v, r.Usage)
	case *float64:
		f.Float64VarP(v, name, short, *v, r.Usage)
	case *time.Duration:
		f.VarP(Duration(v), name, short, r.Usage)
	case *[]string:
		f.StringSliceVarP(v, name, short, *v, r.Usage)
	case *[]float64:
		f.Float64SliceVarP(v, name, short, *v, r.Usage)
	case *Lines:
		f.StringArrayVarP((*[]string)(v), name, short, *v, r.Usage)
	case *scalar.Auto:
		f.VarP(scalarFlag{v, "int"}, name, short, r.Usage)
	case *scalar.Bytes:
		f.VarP(scalarFlag{v, "size"}, name, short, r.Usage)
	case *scalar.Within:
		f.VarP(scalarFlag{v, "range"}, name, short, r.Usage)
	default:
		f.VarP(v.(pflag.Value), name, short, r.Usage)
	}
}

// Duration returns a flag of a duration, in the format of configuration files.
func Duration(d *time.Duration) pflag.Value { return scalarFlag{(*scalar.Duration)(d), "duration"} }

func (g Group) keys(r Row) []string {
	keys := strings.Fields(r.Keys)
	for i, key := range keys {
		if !strings.Contains(key, "[") {
			keys[i] = fault.Join(g.Under, key)
		}
	}
	return keys
}

// find returns the row of a key, or else of the nearest key above it, and the name under which faults are shown: the
// flag, followed by the rest of the key below it, as in --header: Via. Without a row the name is the key.
func (t Table) find(key string) (row Row, name string) {
	nearest, name := "", key
	for _, g := range t {
		for _, r := range g.Rows {
			for _, above := range g.keys(r) {
				below, ok := strings.CutPrefix(key+".", above+".")
				if !ok || len(above) <= len(nearest) {
					continue
				}
				row, nearest, name = r, above, r.name()
				if below != "" {
					name += ": " + strings.TrimSuffix(below, ".")
				}
			}
		}
	}
	return row, name
}

// NameOf returns the name under which faults of a key are shown.
func (t Table) NameOf(key string) string {
	_, name := t.find(key)
	return name
}

func (r Row) name() string {
	if r.Value == nil {
		return r.Flag
	}
	return "--" + r.flag()
}

func (r Row) flag() string {
	name, _, _ := strings.Cut(r.Flag, ",")
	return name
}

// AddColumns adds the flag of the columns of a trace.
func AddColumns(f *pflag.FlagSet, c *trace.Columns) { f.Var(Columns(c), "columns", columnsUsage) }

const columnsUsage = "columns of a table, such as timestamp=arrived_at,input=in,output=out; also session, " +
	"and unit: s, ms, us or ns"

// Columns returns a flag of columns, in the form that trace.ParseColumns reads.
func Columns(of *trace.Columns) pflag.Value { return (*columns)(of) }

type columns trace.Columns

func (c *columns) String() string { return trace.Columns(*c).String() }

func (c *columns) Type() string { return "columns" }

func (c *columns) Set(text string) error {
	given, err := trace.ParseColumns(text)
	*c = columns(given)
	return err
}

// Share returns a flag of a share, such as 0.05 or 5%.
func Share(of *float64) pflag.Value { return (*share)(of) }

type share float64

func (s *share) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

func (s *share) Type() string { return "share" }

func (s *share) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil {
		return fmt.Errorf("want a share such as 0.05 or 5%%, got %q", text)
	}
	if percent {
		v /= 100
	}
	*s = share(v)
	return nil
}
