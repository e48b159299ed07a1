package config

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	yamlparser "github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	commoncfg "github.com/prometheus/common/config"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"replayd/internal/secret"
)

// maxFile is the maximum size of a configuration file in bytes.
const maxFile = 4 << 20

// flagKeys maps flags to the keys that they set.
var flagKeys = map[string]string{
	"web.listen-address": "web.listen",
	"web.config.file":    "web.config_file",

	"web.enable-lifecycle": "web.enable_lifecycle",
	"web.enable-pprof":     "web.enable_pprof",
}

// envKeys lists the keys that environment variables can set: all keys outside lists.
var envKeys = []string{
	"web.listen", "web.config_file", "web.enable_lifecycle", "web.enable_pprof", "drain", "max_waiting",
	"records.path", "records.max_bytes", "records.keep", "records.gzip", "state.path", "state.max_bytes",
}

// Load reads the file at path, the environment (REPLAYD_WEB__LISTEN) and the given flags, in rising precedence, and
// checks the result. If there are faults, Load returns an *Invalid error with all of them, each with file, line, key
// and expected value; the keys of the returned configuration without a fault are valid. Load calls ignored for each
// variable with the prefix REPLAYD_ that is not a key.
func Load(path string, environ []string, flags *pflag.FlagSet, ignored func(name string)) (Config, error) {
	text, err := read(path)
	if err != nil {
		return Config{}, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return Config{}, fmt.Errorf("%s: %s", path, secret.InYAML(err.Error()))
	}
	lines := lineTable(&doc)
	k := koanf.New(".")
	if err := k.Load(rawbytes.Provider(text), yamlparser.Parser()); err != nil {
		return Config{}, fmt.Errorf("%s: %s", path, secret.InYAML(err.Error()))
	}
	if err := k.Load(env.Provider(".", env.Opt{
		Prefix:      "REPLAYD_",
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			key := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "REPLAYD_"), "__", "."))
			if !slices.Contains(envKeys, key) {
				ignored(name)
				return "", nil
			}
			lines[key] = 0
			return key, value
		},
	}), nil); err != nil {
		return Config{}, err
	}
	if flags != nil {
		if err := k.Load(posflag.ProviderWithFlag(flags, ".", k, func(f *pflag.Flag) (string, any) {
			key, ok := flagKeys[f.Name]
			if !ok || !f.Changed {
				return "", nil
			}
			lines[key] = 0
			return key, f.Value.String()
		}), nil); err != nil {
			return Config{}, err
		}
	}
	c, faults := decode(k.Raw())
	c.Places = &Places{path, lines}
	faults = append(faults, c.Resolve().Without(faults)...)
	// An unreadable value keeps its default, so Check may report a second fault for the same key.
	return c, c.Refuse(append(faults, c.Check().Without(faults)...))
}

// read returns the content of a file.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: want a file, got a directory", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: want at most %d bytes, got more", path, maxFile)
	}
	return text, nil
}

// decode decodes the raw keys over the defaults; each list entry has its own defaults.
func decode(raw map[string]any) (Config, Faults) {
	c := Default()
	top := maps.Clone(raw)
	var faults Faults
	c.Targets, faults = list(top, faults, "targets", DefaultTarget)
	c.Workloads, faults = list(top, faults, "workloads", DefaultWorkload)
	c.GPUs, faults = list(top, faults, "gpus", DefaultGPU)
	c.Comparisons, faults = list(top, faults, "comparisons", DefaultComparison)
	return c, append(faults, into(&c, "", top)...)
}

// list removes a list from raw and decodes each entry over the defaults.
func list[T any](raw map[string]any, faults Faults, key string, defaults func() T) ([]T, Faults) {
	v := raw[key]
	delete(raw, key)
	if v == nil {
		return nil, faults
	}
	entries, ok := v.([]any)
	if !ok {
		return nil, append(faults, Fault{key, "want a list"})
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
func into(out any, at string, entry any) Faults {
	if entry == nil {
		return nil
	}
	if _, ok := entry.(map[string]any); !ok {
		return Faults{{at, "want keys and values"}}
	}
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result: out, TagName: "koanf", DecodeHook: scalars,
		MatchName: func(key, field string) bool { return key == field },
	})
	if err != nil {
		return Faults{{at, err.Error()}}
	}
	var faults Faults
	for _, err := range flatten(d.Decode(entry)) {
		var de *mapstructure.DecodeError
		if errors.As(err, &de) {
			faults = append(faults, Fault{join(at, de.Name()), cause(de)})
		} else {
			faults = append(faults, Fault{at, err.Error()})
		}
	}
	return append(faults, unknown(at, reflect.TypeOf(out).Elem(), entry)...)
}

// unknown returns faults for keys without a field. Mapstructure's own list of unused keys is incomplete if a value next
// to or around them cannot be decoded.
func unknown(at string, t reflect.Type, entry any) (faults Faults) {
	if list, ok := entry.([]any); ok && t.Kind() == reflect.Slice {
		for i, one := range list {
			faults = append(faults, unknown(fmt.Sprintf("%s[%d]", at, i), t.Elem(), one)...)
		}
	}
	keys, ok := entry.(map[string]any)
	if !ok || t.Kind() != reflect.Struct || t == reflect.TypeFor[HTTP]() { // its decoder rejects unknown keys
		return faults
	}
	fields, bounds := map[string]reflect.Type{}, false
	for _, f := range reflect.VisibleFields(t) {
		bounds = bounds || f.Type == reflect.TypeFor[Bounds]() // accepts any key; its check rejects unknown ones
		if key := f.Tag.Get("koanf"); key != "-" {
			fields[key] = f.Type
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if of := fields[key]; of == nil && !bounds {
			faults = append(faults, unknownAt(join(at, key), key, slices.Sorted(maps.Keys(fields))))
		} else if of != nil {
			faults = append(faults, unknown(join(at, key), of, keys[key])...)
		}
	}
	return faults
}

// cause returns the text of the innermost error, without Go types where possible.
func cause(de *mapstructure.DecodeError) string {
	var kind *mapstructure.UnconvertibleTypeError
	if errors.As(de, &kind) {
		return fmt.Sprintf("want %s, got %s", kindName(kind.Expected.Type()), valueName(de.Name(), kind))
	}
	if strings.Contains(de.Error(), "must be an array or slice") {
		return "want a list"
	}
	if strings.Contains(de.Error(), "expected a map or struct") {
		return "want keys and values"
	}
	if strings.Contains(de.Error(), "overflows uint") {
		return "want an integer ≥ 0"
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
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
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

// scalars is a decode hook that calls UnmarshalText for text and for numbers: 30 without a unit must not become 30
// nanoseconds. prometheus/common decodes the http section.
func scalars(_, to reflect.Type, data any) (any, error) {
	if to == reflect.TypeFor[HTTP]() {
		text, err := yaml.Marshal(data)
		if err != nil {
			return nil, err
		}
		c, err := commoncfg.LoadHTTPConfig(string(text))
		if err != nil {
			return nil, errors.New(unknownField.ReplaceAllString(secret.InYAML(err.Error()), "unknown key $1"))
		}
		return HTTP{*c}, nil
	}
	if to.Kind() == reflect.Int || to.Kind() == reflect.Uint64 { // mapstructure would truncate out-of-range values
		n, isFloat := data.(float64)
		large, isUint := data.(uint64)
		switch {
		case isFloat && n != math.Trunc(n):
			return nil, fmt.Errorf("want %s, got %v", kindName(to), n)
		case isFloat && !(math.Abs(n) <= maxExact):
			return nil, fmt.Errorf("want %s of at most 64 bits, written in digits, got %v", kindName(to), n)
		case isUint && large > math.MaxInt && to.Kind() == reflect.Int:
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
	p := reflect.New(to)
	u, ok := p.Interface().(encoding.TextUnmarshaler)
	if !ok {
		return data, nil
	}
	if several, ok := data.([]any); ok && to == reflect.TypeFor[Words]() {
		words := make(Words, len(several))
		for i, one := range several {
			words[i] = fmt.Sprint(one)
		}
		return words, nil
	}
	switch data.(type) {
	case string, int, int64, uint64, float64, bool:
		if err := u.UnmarshalText([]byte(fmt.Sprint(data))); err != nil {
			return nil, err
		}
		return p.Elem().Interface(), nil
	}
	return data, nil
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

func join(at, key string) string {
	if at == "" || key == "" {
		return at + key
	}
	return at + "." + key
}
