package config

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/v2"
	commoncfg "github.com/prometheus/common/config"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"replayd/internal/fault"
	"replayd/internal/file"
	"replayd/internal/scalar"
	"replayd/internal/secret"
)

// maxFile is the maximum size of a configuration file in bytes.
const maxFile = 4 << 20

// pipePatience is how long the writer of a pipe may take.
const pipePatience = 10 * time.Second

// flagKeys maps flags to the keys that they set.
var flagKeys = map[string]string{
	"web.listen-address": "web.listen",
	"web.config.file":    "web.config_file",

	"web.enable-lifecycle": "web.enable_lifecycle",
	"web.enable-pprof":     "web.enable_pprof",
	"web.max-connections":  "web.max_connections",
	"web.allowed-hosts":    "web.allowed_hosts",
	"web.external-url":     "web.external_url",
	"web.runbook-url":      "web.runbook_url",
	"web.dashboards-url":   "web.dashboards_url",

	"exit-when-done": "exit_when_done",
}

// Load reads the file at path, the environment (REPLAYD_WEB__LISTEN) and the given flags, in rising precedence, and
// checks the result. If there are faults, Load returns an *Invalid error with all of them, each with file, line, key
// and expected value; the keys of the returned configuration without a fault are valid. Load calls ignored for each
// variable with the prefix REPLAYD_ that is not a key, with one that is near. One that differs by two letters at most is a fault.
func Load(path string, environ []string, flags *pflag.FlagSet, ignored func(said string)) (Config, error) {
	text, err := readFile(path)
	if err != nil {
		return Config{}, err
	}
	doc, err := readDocument(text)
	if err != nil {
		said := secret.InYAML(err.Error())
		switch {
		case strings.Contains(said, "did not find expected alphabetic or numeric character"):
			said += `: a text that begins with * or & needs quotes, such as "*/5 * * * *"`
		case strings.Contains(said, "found character that cannot start any token"):
			said += ": a tab, @ or ` begins no value: indent with spaces, and put quotes around such a text"
		}
		return Config{}, fmt.Errorf("%s: %s", path, said)
	}
	places := &Places{path, doc.lines, map[string]string{}}
	k := koanf.New(".")
	if err := k.Load(doc, nil); err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	set := func(key, value, by string) {
		places.named[key] = by
		_ = k.Set(key, value) // only a strict merge fails
	}
	misspelled := places.environment(environ, set, ignored)
	if flags != nil {
		for name, key := range flagKeys {
			if f := flags.Lookup(name); f != nil && f.Changed {
				set(key, f.Value.String(), "--"+name)
			}
		}
	}
	c, faults := decode(k.Raw())
	c.Places, faults = places, append(misspelled, faults...)
	faults = append(faults, Without(c.Resolve(), faults)...)
	// An unreadable value keeps its default, so Check may report a second fault for the same key.
	return c, c.Refuse(append(faults, Without(c.Check(), faults)...))
}

// Read implements koanf.Provider.
func (d document) Read() (keys map[string]any, err error) { return d.keys, nil }

// ReadBytes is for a provider that leaves the parsing to koanf.
func (d document) ReadBytes() ([]byte, error) { return nil, errors.ErrUnsupported }

func readFile(path string) ([]byte, error) {
	f, err := file.OpenSoon(path) // a check may get its file from a pipe
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_ = f.SetReadDeadline(time.Now().Add(pipePatience)) // only pipes have deadlines
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: want at most %d bytes, got more", path, maxFile)
	}
	if info, err := f.Stat(); err == nil && len(text) == 0 && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: want a configuration, got a pipe that nobody writes to", path)
	}
	return text, nil
}

// decode decodes the raw keys over the defaults; each list entry has its own defaults.
func decode(raw map[string]any) (Config, fault.List) {
	c := Default()
	top := maps.Clone(raw)
	var faults fault.List
	targets, _ := top["targets"].([]any)
	c.Targets, faults = decodeList(top, faults, "targets", DefaultTarget)
	for i := range c.Targets { // its entries are those of targets
		if keys, _ := targets[i].(map[string]any); keys["api"] == nil {
			c.Targets[i].FollowAddress()
		}
	}
	c.Workloads, faults = decodeList(top, faults, "workloads", DefaultWorkload)
	c.GPUs, faults = decodeList(top, faults, "gpus", DefaultGPU)
	c.Comparisons, faults = decodeList(top, faults, "comparisons", DefaultComparison)
	return c, append(faults, into(&c, "", top)...)
}

// decodeList removes a list from raw and decodes each entry over the defaults.
func decodeList[T any](raw map[string]any, faults fault.List, key string, defaults func() T) ([]T, fault.List) {
	v := raw[key]
	delete(raw, key)
	if v == nil {
		return nil, faults
	}
	entries, ok := v.([]any)
	if !ok {
		return nil, append(faults, fault.Fault{Key: key, Want: "want a list"})
	}
	var all []T
	for i, entry := range entries {
		one := defaults()
		faults = append(faults, into(&one, fmt.Sprintf("%s[%d]", key, i), entry)...)
		all = append(all, one)
	}
	return all, faults
}

// into decodes entry into out, which holds the defaults.
func into(out any, at string, entry any) fault.List {
	if entry == nil {
		return nil
	}
	if _, ok := entry.(map[string]any); !ok {
		return fault.List{{Key: at, Want: "want keys and values"}}
	}
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: out, TagName: "koanf", DecodeHook: scalars,
		MatchName: func(key, field string) bool { return key == field },
	})
	if err != nil {
		return fault.List{{Key: at, Want: err.Error()}}
	}
	var faults fault.List
	for _, err := range flatten(d.Decode(entry)) {
		if de, ok := errors.AsType[*mapstructure.DecodeError](err); ok {
			faults = append(faults, fault.Fault{Key: fault.Join(at, de.Name()), Want: cause(de)})
		} else {
			faults = append(faults, fault.Fault{Key: at, Want: err.Error()})
		}
	}
	return append(faults, unknownKeys(at, reflect.TypeOf(out).Elem(), entry)...)
}

// unknownKeys returns faults for keys without a field. Mapstructure's own list of unused keys is incomplete if a value
// next to or around them cannot be decoded.
func unknownKeys(at string, t reflect.Type, entry any) (faults fault.List) {
	if list, ok := entry.([]any); ok && t.Kind() == reflect.Slice {
		for i, one := range list {
			faults = append(faults, unknownKeys(fmt.Sprintf("%s[%d]", at, i), t.Elem(), one)...)
		}
	}
	keys, ok := entry.(map[string]any)
	if !ok || t.Kind() != reflect.Struct || t == reflect.TypeFor[HTTP]() { // its decoder rejects unknown keys
		return faults
	}
	fields, bounds := map[string]reflect.Type{}, false
	for _, f := range reflect.VisibleFields(t) {
		bounds = bounds || f.Type == reflect.TypeFor[Bounds]() // accepts any key; its check rejects unknown ones
		if key, ok := keyOf(f); ok && key != "" {
			fields[key] = f.Type
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if of := fields[key]; of == nil && !bounds {
			faults = append(faults, unknownAt(fault.Join(at, key), key, slices.Sorted(maps.Keys(fields))))
		} else if of != nil {
			faults = append(faults, unknownKeys(fault.Join(at, key), of, keys[key])...)
		}
	}
	return faults
}

// cause returns the text of the innermost error, without Go types where possible.
func cause(de *mapstructure.DecodeError) string {
	if kind, ok := errors.AsType[*mapstructure.UnconvertibleTypeError](de); ok {
		return fmt.Sprintf("want %s, got %s", kindName(kind.Expected.Type()), valueName(de.Name(), kind))
	}
	for _, known := range [][2]string{
		{"must be an array or slice", "want a list"},
		{"expected a map or struct", "want keys and values"},
		{"overflows uint", "want an integer ≥ 0"},
	} {
		if strings.Contains(de.Error(), known[0]) {
			return known[1]
		}
	}
	return de.Unwrap().Error()
}

// valueName returns a value for an error message. Values under secret-like keys, text where a section was expected, and
// sections and lists are not echoed, because they may be secret.
func valueName(path string, kind *mapstructure.UnconvertibleTypeError) string {
	switch value := reflect.ValueOf(kind.Value); value.Kind() {
	case reflect.Map:
		return "keys and values"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		if k := kind.Expected.Kind(); k == reflect.Map || k == reflect.Struct || secret.IsName(path) {
			return "a text"
		}
	default:
		if secret.IsName(path) {
			return "a " + value.Kind().String()
		}
	}
	return fmt.Sprint(kind.Value)
}

func kindName(t reflect.Type) string {
	if t == durationType || reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "one value"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Uint64:
		return "an integer ≥ 0"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Map, reflect.Struct:
		return "keys and values"
	}
	return "text"
}

// unknownField matches the error of prometheus/common's decoder for an unknown key. Its line number is relative to the
// section.
var unknownField = regexp.MustCompile(`yaml: unmarshal errors:\n  line \d+: field (\w+) not found in type [\w.]+`)

// maxExact is the limit up to which a float64 represents every integer.
const maxExact = 1 << 53

// durationType is the type of durations. Their text in the file is that of scalar.Duration.
var durationType = reflect.TypeFor[time.Duration]()

// scalars is a decode hook that gives keys for texts the text as it is written, and calls UnmarshalText. prometheus/common decodes the
// http section.
func scalars(_, to reflect.Type, data any) (any, error) {
	if to == reflect.TypeFor[map[string]any]() {
		return inJSON(data)
	}
	if w, ok := data.(written); ok && to != reflect.TypeFor[HTTP]() {
		if data = w.Value; isText(to, data) {
			data = w.Text
		} else if _, text := data.(string); !text && octal.MatchString(w.Text) { // 8 or 10, by the version of YAML
			return nil, fmt.Errorf("want %s without a zero in front, got %s", kindName(to), w.Text)
		}
	}
	if to == reflect.TypeFor[HTTP]() {
		text, err := yaml.Marshal(inYAML(data))
		if err != nil {
			return nil, err
		}
		c, err := commoncfg.LoadHTTPConfig(string(text))
		if err != nil {
			return nil, errors.New(unknownField.ReplaceAllString(secret.InYAML(err.Error()), "unknown key $1"))
		}
		return *c, nil
	}
	// mapstructure would truncate out-of-range values
	if k := to.Kind(); k == reflect.Int || k == reflect.Uint64 || to == reflect.TypeFor[int64]() {
		n, isFloat := data.(float64)
		large, isUint := data.(uint64)
		switch {
		case isFloat && n != math.Trunc(n):
			return nil, fmt.Errorf("want %s, got %v", kindName(to), n)
		case isFloat && !(math.Abs(n) <= maxExact):
			return nil, fmt.Errorf("want %s of at most 64 bits, written in digits, got %v", kindName(to), n)
		case isUint && large > math.MaxInt && to.Kind() != reflect.Uint64:
			return nil, fmt.Errorf("want an integer ≤ %d, got %d", math.MaxInt, large)
		}
	}
	if text, ok := data.(string); ok { // from the environment or a flag
		switch to.Kind() {
		case reflect.Bool:
			if text == "true" || text == "false" {
				return text == "true", nil
			}
		case reflect.Int:
			if n, err := strconv.Atoi(text); err == nil && to == reflect.TypeFor[int]() {
				return n, nil
			}
		}
	}
	if to == durationType { // 30 without a unit must not become 30 nanoseconds
		to = reflect.TypeFor[scalar.Duration]()
	}
	p := reflect.New(to)
	u, ok := p.Interface().(encoding.TextUnmarshaler)
	if !ok {
		return data, nil
	}
	if several, ok := data.([]any); ok && to == reflect.TypeFor[scalar.Words]() {
		words := make(scalar.Words, len(several))
		for i, one := range several {
			w, _ := one.(written)
			words[i] = w.Text
		}
		return words, nil
	}
	switch data.(type) {
	case string, int, int64, uint64, float64, bool:
		if err := u.UnmarshalText([]byte(fmt.Sprint(data))); err != nil {
			return nil, err
		}
		if d, ok := p.Interface().(*scalar.Duration); ok {
			return time.Duration(*d), nil
		}
		return p.Elem().Interface(), nil
	}
	return data, nil
}

// octal matches integers that YAML 1.1 takes for octal ones, and YAML 1.2 does not.
var octal = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

// isText reports whether a key takes the text of a scalar, and not what YAML takes it for. A date is only a text.
func isText(to reflect.Type, value any) bool {
	_, date := value.(time.Time)
	number := to.Kind() == reflect.Int || to.Kind() == reflect.Int64 // or auto, or a size
	return date || to.Kind() == reflect.String || to == durationType ||
		!number && reflect.PointerTo(to).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// flatten returns the errors joined in err.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	return []error{err}
}
