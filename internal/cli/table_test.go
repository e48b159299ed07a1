package cli

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/config"
	"replayd/internal/fault"
	"replayd/internal/sim"
)

// fileOnly are the keys that no flag sets, by section.
const fileOnly = `
web: config_file enable_lifecycle enable_pprof max_connections allowed_hosts external_url runbook_url dashboards_url
: drain exit_when_done
records: max_bytes keep gzip
state: path
targets[0]: name idle pods
targets[0].metrics: url interval replicas http
targets[0].router: url interval replicas http
targets[0].router.map[0]: family as
workloads[0]: target
workloads[0].dataset: turns
workloads[0].stages[0]: rate over hold
workloads[0].repeat: mode every align offset cron timezone overlap
workloads[0].guard: waiting kv_cache_usage error_ratio on_missing_metrics resume_after
workloads[0].budget: requests_per_minute prompt_tokens_per_hour output_tokens_per_day
workloads[0].request: cache_salt user
comparisons[0]: name workload candidate mode
gpus[0]: target libdcgm interval http
gpus[0].select: namespace pod uuid
`

// noFlag are the options of trace synth and sim that have no flag.
const noFlag = ": wait users MaxQueue"

// An option is a field of a command's options.
type option struct {
	key   string
	field reflect.Value
	named bool // the file, or the faults of the command, have the key
}

// options returns the options in a struct. name returns the key of a field; "-": it has none.
func options(v reflect.Value, at string, name func(reflect.StructField) string) (all []option) {
	for f, field := range v.Fields() {
		key, section := name(f), field
		if key == "-" {
			all = append(all, option{fault.Join(at, snake(f)), field, false})
			continue
		}
		at := fault.Join(at, key)
		if f.Tag != "" && field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct {
			at, section = at+"[0]", reflect.New(field.Type().Elem()).Elem()
		}
		var below []option
		if section.Kind() == reflect.Struct {
			below = options(section, at, name)
		}
		if !slices.ContainsFunc(below, func(o option) bool { return o.named }) { // such as prometheus/common's client
			below = []option{{at, field, true}}
		}
		all = append(all, below...)
	}
	return all
}

// ofFile returns the key of a field in the configuration file.
func ofFile(f reflect.StructField) string {
	tag, ok := f.Tag.Lookup("koanf")
	if !ok && !f.Anonymous {
		return "-"
	}
	key, _, _ := strings.Cut(tag, ",")
	return key
}

func ofSim(f reflect.StructField) string { return f.Name }

func ofSynth(f reflect.StructField) string {
	if f.Name == "Rows" { // its options are beside those of the draft
		return ""
	}
	return snake(f)
}

// snake returns the name of a field as a key is written: MaxInput is max_input.
func snake(f reflect.StructField) string {
	var key strings.Builder
	for i, r := range f.Name {
		if unicode.IsUpper(r) && i > 0 {
			key.WriteByte('_')
		}
		key.WriteRune(unicode.ToLower(r))
	}
	return key.String()
}

// all returns the tables of all commands, and their options.
func all() (map[string]Table, []option) {
	run, compare, made, engine := NewFlags(), NewCompare(), NewSynth(), sim.Defaults()
	var opts []option
	for _, o := range []struct {
		options any
		at      string
		key     func(reflect.StructField) string
	}{
		{&config.Config{}, "", ofFile},
		{&run.Target, "targets[0]", ofFile},
		{&run.Workload, "workloads[0]", ofFile},
		{&compare.Baseline, "targets[0]", ofFile},
		{&compare.Candidate, "targets[1]", ofFile},
		{&compare.Workload, "workloads[0]", ofFile},
		{&compare.Options, "comparisons[0]", ofFile},
		{&engine, "", ofSim},
		{&made.Scale, "", ofSynth},
		{&made.Draft, "", ofSynth},
	} {
		opts = append(opts, options(reflect.ValueOf(o.options).Elem(), o.at, o.key)...)
	}
	listen, log := "", ""
	return map[string]Table{
		"run": run.tables[Own], "aiperf": run.tables[AIPerf], "tracereplay": run.tables[TraceReplay],
		"compare": compare.Table(), "sim": Sim(&engine, &listen, &log), "trace synth": made.Table(),
	}, opts
}

// A key has a flag, and only one of a command, or it is in a list of those without. A flag that writes to a field has
// the field's key.
func TestEachKeyHasOneFlag(t *testing.T) {
	tables, opts := all()
	fields, keys, without, with := map[uintptr]string{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, o := range opts {
		fields[o.field.Addr().Pointer()] = o.key
		keys[o.key] = o.named
	}
	for line := range strings.Lines(strings.TrimSpace(fileOnly) + "\n" + noFlag) {
		section, names, _ := strings.Cut(line, ":")
		for name := range strings.FieldsSeq(names) {
			key := fault.Join(section, name)
			if without[key] = true; !keys[key] {
				t.Errorf("the list has %s, which is no key", key)
			}
		}
	}
	for command, table := range tables {
		flags := map[string]string{}
		for _, g := range table {
			for _, r := range g.Rows {
				for _, key := range g.keys(r) {
					if flags[key] != "" {
						t.Errorf("%s: %s has two flags: %s and %s", command, key, flags[key], r.name())
					}
					flags[key] = r.name()
					below := func(o option) bool { return o.key == key || strings.HasPrefix(o.key, key+".") }
					if !slices.ContainsFunc(opts, below) {
						t.Errorf("%s: %s has the key %s, which does not exist", command, r.name(), key)
					}
					with[strings.ReplaceAll(key, "[1]", "[0]")] = true
				}
				if v := reflect.ValueOf(r.Value); v.Kind() == reflect.Pointer {
					if key := fields[v.Pointer()]; key != "" && !slices.Contains(g.keys(r), key) {
						t.Errorf("%s: %s writes to the key %s, which its row does not have", command, r.name(), key)
					}
				}
			}
		}
	}
	for _, o := range opts {
		key := strings.ReplaceAll(o.key, "[1]", "[0]")
		if without[key] && with[key] {
			t.Errorf("%s has a flag, and is in the list of keys without", key)
		} else if o.named && !without[key] && !with[key] {
			t.Errorf("%s has no flag, and is not in the list of those without", key)
		}
	}
}

// badValues are wrong for most flags.
var badValues = []string{
	"-1", "", "a,b", "x", "-1s", "NaN", "1e400", "9223372036854775808", "-0.5", "2000000000", "0,1:1;0,2:1",
}

// texts are flags that take any text: names, and files that are opened later.
var texts = []string{
	"endpoint-path", "endpoint", "model", "baseline-model", "candidate-model", "tokenizer", "lora", "api-key", "format",
	"web.listen-address", "artifact-dir", "records", "input-file", "html", "log", "output",
}

// otherName maps a flag to another name: its fault belongs to several flags together.
var otherName = map[string]string{
	"aiperf --shared-system-prompt-length": "--isl", "aiperf --session-turn-delay-mean": "--isl",
	"aiperf --session-turn-delay-stddev": "--isl", "aiperf --synthesis-max-isl": "--synthesis-*",
	"aiperf --synthesis-max-osl": "--synthesis-*", "trace synth --rate": "--duration",
}

// A wrong value of a flag is refused under the name of that flag, and no fault shows a key.
func TestBadValuesNameTheirFlag(t *testing.T) {
	values := badValues
	if testing.Short() {
		values = values[:3]
	}
	tables, _ := all()
	hit := map[string]bool{}
	for _, l := range [][2]string{
		{"run", "t.jsonl --url h:1"},
		{"run", "t.jsonl --url h:1 --arrival gamma --rate 1"},
		{"run", "t.jsonl --url h:1 --sessions-at-once 2"},
		{"run", "--request-count 5"},
		{"aiperf", "--request-count 5"},
		{"aiperf", "--input-file t.jsonl"},
		{"aiperf", "--request-rate 2 --arrival-pattern gamma"},
		{"tracereplay", "--trace-path t.jsonl --tokenizer x --trace-mode benchmark --dataset-path d"},
		{"compare", "t.jsonl --baseline a:1 --candidate b:1"},
		{"sim", ""},
		{"trace synth", "--rate 1 --duration 1m"},
		{"trace synth", "t.jsonl"},
	} {
		command, line := l[0], l[1]
		for _, g := range tables[command] {
			for _, r := range g.Rows {
				for _, value := range values {
					if r.Value == nil {
						continue
					}
					flags, err := evaluated(command, append(strings.Fields(line), r.name()+"="+value))
					if err == nil {
						continue
					}
					hit[command+r.name()] = true
					for fault := range strings.Lines(err.Error()) {
						flag, _, _ := strings.Cut(fault, ": ")
						if flags.Lookup(strings.TrimPrefix(flag, "--")) == nil && !strings.HasSuffix(flag, "-*") {
							t.Errorf("%s %s %s=%s: want a flag, got %s", command, line, r.name(), value, fault)
						}
					}
					other := otherName[command+" "+r.name()]
					if text := err.Error(); !strings.Contains(text, r.name()) && (other == "" || !strings.Contains(text, other)) {
						t.Errorf("%s %s %s=%s: want the flag, got %v", command, line, r.name(), value, err)
					}
				}
			}
		}
	}
	for command, table := range tables {
		for _, g := range table {
			for _, r := range g.Rows {
				if r.Value != nil && !hit[command+r.name()] && !slices.Contains(texts, r.flag()) {
					t.Errorf("%s %s: want one of the values refused", command, r.name())
				}
			}
		}
	}
}

// evaluated evaluates the flags of a command without running it.
func evaluated(command string, args []string) (*pflag.FlagSet, error) {
	c := &cobra.Command{Use: command}
	parse := func(add func(*cobra.Command), wrong func(*cobra.Command, error) error) error {
		add(c)
		if err := c.ParseFlags(InWords(args)); err != nil {
			return wrong(c, err)
		}
		args = c.Flags().Args()
		return nil
	}
	switch command {
	case "compare":
		o := NewCompare()
		if err := parse(o.Table().Add, FlagError); err != nil {
			return c.Flags(), err
		}
		cfg, err := o.Config(args[0])
		if err != nil {
			return c.Flags(), err
		}
		found := cfg.Resolve()
		return c.Flags(), o.ByFlag(append(found, config.Without(cfg.Check(), found)...))
	case "sim":
		o, listen, log := sim.Defaults(), "", ""
		table := Sim(&o, &listen, &log)
		err := parse(table.Add, FlagError)
		return c.Flags(), cmp.Or(err, o.Check().Named(table.NameOf).Err())
	case "trace synth":
		o := NewSynth()
		if err := parse(o.Add, FlagError); err != nil {
			return c.Flags(), err
		}
		err := o.Check(c.Flags(), args)
		if len(args) > 0 {
			return c.Flags(), cmp.Or(err, o.Scale.Check().Named(o.Table().NameOf).Err())
		}
		return c.Flags(), cmp.Or(err, o.Draft.Check().Named(o.Table().NameOf).Err())
	}
	o := NewFlags()
	if err := parse(o.Add, FlagError); err != nil {
		return c.Flags(), err
	}
	_, err := o.Order(args)
	return c.Flags(), err
}
