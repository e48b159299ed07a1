package scrape

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"replayd/internal/fault"
)

// A Row maps one metric family of an engine to a quantity of the vocabulary. If several rows of an engine have the same
// quantity, the first one found on the page counts.
type Row struct {
	Family   string `koanf:"family"` // counters with or without _total
	Quantity string `koanf:"as"`     // a name of the vocabulary, such as requests_waiting

	// Only rows of the table have these.
	Engine string  `koanf:"-"` // name of the engine
	Kind   Kind    `koanf:"-"` // type on the engine's page; empty: the type of the quantity
	Scale  float64 `koanf:"-"` // value × Scale is in the quantity's unit; 0 stands for 1
	Take   string  `koanf:"-"` // "sum": the counter is the sum of a histogram; else empty
	Select string  `koanf:"-"` // label=value: only these samples; label=*: only samples with the label
	Prefer string  `koanf:"-"` // label=value: only these samples, if there are any
	Merge  string  `koanf:"-"` // how samples of one rank are merged: sum (or empty) or max
	Rank   string  `koanf:"-"` // label of the data-parallel rank; empty: no ranks
	Less   string  `koanf:"-"` // family whose value is subtracted; gauges only
	// Plus has families, with spaces between, whose values are added. A counter without one of them has no figure; to a
	// gauge those that are there are added.
	Plus string `koanf:"-"`

	checked string // the page in testdata that confirms the row
}

//go:embed engines.csv
var enginesCSV string

//go:embed routers.csv
var routersCSV string

// engines and routers are the embedded tables.
var (
	engines = sync.OnceValues(func() ([]Row, error) { return readRoles("engines.csv", enginesCSV) })
	routers = sync.OnceValues(func() ([]Row, error) { return readRoles("routers.csv", routersCSV) })
)

func readRoles(name, text string) (rows []Row, err error) {
	const columns = "engine,family,type,canonical,scale,take,select,prefer,merge,rank,less,plus,checked,notes"
	err = ReadTable(name, text, columns, func(c []string) (err error) {
		row := Row{
			Engine: c[0], Family: c[1], Kind: Kind(c[2]), Quantity: c[3], Take: c[5],
			Select: c[6], Prefer: c[7], Merge: c[8], Rank: c[9], Less: c[10], Plus: c[11], checked: c[12],
		}
		if c[4] != "" {
			row.Scale, err = strconv.ParseFloat(c[4], 64)
		}
		rows = append(rows, row)
		return err
	})
	return rows, err
}

// ReadTable calls add with each row of an embedded table, whose first line names the columns.
func ReadTable(name, text, columns string, add func(row []string) error) error {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(rows) == 0 || strings.Join(rows[0], ",") != columns {
		return fmt.Errorf("%s:1: want the columns %s", name, columns)
	}
	for i, row := range rows[1:] {
		if err := add(row); err != nil {
			return fmt.Errorf("%s:%d: %w", name, i+2, err)
		}
	}
	return nil
}

// familyNames matches the names that the text format of OpenMetrics allows, up to 200 characters.
var familyNames = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]{0,199}$`)

// Check returns the faults of a user's row for pages of a role. They have no keys: their texts name what is wrong.
func (r Row) Check(of *Role) (f fault.List) {
	if named(of.quantities, r.Quantity) == nil {
		names := make([]string, len(of.quantities))
		for i, q := range of.quantities {
			names[i] = q.Name
		}
		f.Add("", "want a quantity of %s, got %q", strings.Join(names, ", "), r.Quantity)
	}
	f.If(!familyNames.MatchString(r.Family), "", "want the name of a metric family, got %q", r.Family)
	return f
}

// kind returns the type of the family on the engine's page.
func (r Row) kind() Kind {
	if r.Kind != "" {
		return r.Kind
	}
	if q := quantity(r.Quantity); q != nil && r.Take == "" {
		return q.Kind
	}
	return Histogram
}

func (r Row) scale() float64 { return cmp.Or(r.Scale, 1) }

// reads returns the names of all samples that the row's figure depends on.
func (r Row) reads() []string {
	names := r.names()
	if r.Less != "" {
		names = append(names, r.Less)
	}
	for _, other := range r.added() {
		names = append(names, other.names()...)
	}
	return names
}

// added returns the rows of the families in r.Plus.
func (r Row) added() (rows []Row) {
	for family := range strings.FieldsSeq(r.Plus) {
		other := r
		other.Family, other.Plus = family, ""
		rows = append(rows, other)
	}
	return rows
}

// names returns the names that the row's samples can have. In OpenMetrics, Python's client writes _ instead of : in
// samples, but not in TYPE and HELP lines.
func (r Row) names() []string {
	names := r.spelled()
	for _, name := range names {
		if strings.Contains(name, ":") {
			names = append(names, strings.ReplaceAll(name, ":", "_"))
		}
	}
	return names
}

func (r Row) spelled() []string {
	switch r.kind() {
	case Counter: // Python's client declares x and writes x_total, and OpenMetrics requires it
		base := strings.TrimSuffix(r.Family, "_total")
		return []string{base, base + "_total"}
	case Histogram:
		if r.Take == "sum" {
			return []string{r.Family + "_sum"}
		}
		return []string{r.Family, r.Family + "_bucket", r.Family + "_count", r.Family + "_sum"}
	default:
		return []string{r.Family}
	}
}

// A Vocabulary holds the rows of all engines and of the user.
type Vocabulary struct {
	engines []string // in the order of the table
	rows    map[string][]Row
	user    []Row
	wanted  map[string]bool
}

// NewVocabulary returns the vocabulary of a role's embedded table and the user's rows. For any engine, a user's row
// replaces the table's rows for the same quantity.
func NewVocabulary(of *Role, user []Row) (*Vocabulary, error) {
	table, err := of.table()
	if err != nil {
		return nil, err
	}
	v := &Vocabulary{rows: map[string][]Row{}, user: slices.Clone(user), wanted: map[string]bool{}}
	for i, r := range user {
		if err := r.Check(of); err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
	}
	for _, r := range table {
		if v.rows[r.Engine] == nil {
			v.engines = append(v.engines, r.Engine)
		}
		v.rows[r.Engine] = append(v.rows[r.Engine], r)
	}
	for _, r := range slices.Concat(table, v.user) {
		for _, name := range r.reads() {
			v.wanted[name] = true
		}
	}
	return v, nil
}

// A prefix of names says which engine's or router's they are.
type prefix struct{ text, engine string }

func (p prefix) begins(name string) bool {
	return strings.HasPrefix(name, p.text) || strings.HasPrefix(name, strings.ReplaceAll(p.text, ":", "_"))
}

// prefixes identify an engine, or a router, by a metric name on its page, even if the page has no figures yet: some
// engines write a family only after it has a value. The engine's own prefix comes before Dynamo's, because a Dynamo
// worker has both. The router of vLLM's production stack uses vLLM's prefix and some of its names.
var prefixes = []prefix{
	{"vllm:current_qps", "production-stack"},
	{"vllm:", "vllm"},
	{"sglang:", "sglang"},
	{"trtllm_", "trtllm"},
	{"tgi_", "tgi"},
	{"llamacpp:", "llamacpp"},
	{"nv_trt_llm_", "triton"},
	{"nv_inference_", "triton"},
	{"lmdeploy:", "lmdeploy"},
	{"dynamo_frontend_", "dynamo"},
	{"dynamo_component_", "dynamo"},
	{"smg_", "smg"},
	{"llm_d_epp_", "llm-d"},
	{"inference_objective_", "gie"},
	{"inference_model_", "gie"},
	{"inference_pool_", "gie"},
	{"inference_extension_", "gie"},
	{"gen_ai_server_", "envoy"},
}

// wrappers are prefixes that servers around an engine put before its names: Ray Serve (ray_vllm_, before 2.46 ray_vllm:)
// and KServe.
var wrappers = []string{"ray_", "kserve_"}

// plain returns the engine's own name of a sample or a family.
func plain(name string) string {
	for _, w := range wrappers {
		inner, wrapped := strings.CutPrefix(name, w)
		if wrapped && slices.ContainsFunc(prefixes, func(p prefix) bool { return p.begins(inner) }) {
			return inner
		}
	}
	return name
}

// unwrap gives samples the engine's own names, where those are free.
func (p *Page) unwrap() {
	for name, list := range p.Samples {
		if inner := plain(name); inner != name && p.Samples[inner] == nil {
			delete(p.Samples, name)
			p.Samples[inner] = list
		}
	}
	for family := range p.damaged {
		p.damaged[plain(family)] = true
	}
}

// Recognizer returns the filter for Parse, and a function that returns the engine recognized by that filter; "" if no
// name matched.
func (v *Vocabulary) Recognizer() (wanted func(name string) bool, engine func() string) {
	best := len(prefixes)
	wanted = func(name string) bool {
		name = plain(name)
		for i, p := range prefixes[:best] {
			if p.begins(name) {
				best = i
				break
			}
		}
		return v.wanted[name]
	}
	return wanted, func() string {
		if best == len(prefixes) {
			return ""
		}
		return prefixes[best].engine
	}
}
