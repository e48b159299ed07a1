package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"replayd/internal/fault"
)

// A NamedFile is a file or a folder that a configuration names.
type NamedFile struct {
	Key  string // such as targets[0].http.authorization.credentials_file; "": the configuration itself
	Path string
}

// Opened reports whether a library opens the file: replayd's own opens take no pipe and no device.
func (f NamedFile) Opened() bool {
	last := f.Key[strings.LastIndexByte(f.Key, '.')+1:]
	return f.Key != "web.config_file" && (strings.HasSuffix(last, "_file") || strings.HasPrefix(last, "files["))
}

// Files returns the files that the configuration names, and its own, in the order of the keys. They need not exist; a
// tokenizer may be a name.
func (c *Config) Files() (all []NamedFile) {
	if c.Places != nil {
		all = append(all, NamedFile{"", c.Places.file})
	}
	eachText(reflect.ValueOf(*c), "", func(key string, v reflect.Value) {
		if namesFile(key) && v.String() != "" {
			all = append(all, NamedFile{key, v.String()})
		}
	})
	return all
}

// namesFile reports whether the text of a key is a path, by the last word of the key. A test lists all other keys of
// texts.
func namesFile(key string) bool {
	last := key[strings.LastIndexByte(key, '.')+1:]
	return last == "path" || last == "tokenizer" || last == "nvidia_smi" || strings.HasSuffix(last, "_file") || strings.HasPrefix(last, "files[")
}

// eachText calls each for every text in a section, with its key.
func eachText(v reflect.Value, at string, each func(key string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.String:
		each(at, v)
	case reflect.Pointer:
		if !v.IsNil() {
			eachText(v.Elem(), at, each)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if key, ok := keyOf(v.Type().Field(i)); ok {
				eachText(v.Field(i), fault.Join(at, key), each)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachText(v.Index(i), fmt.Sprintf("%s[%d]", at, i), each)
		}
	case reflect.Map:
		if v.Type().Elem().Kind() != reflect.Struct { // free keys, such as those of extra_body
			return
		}
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			eachText(v.MapIndex(key), fault.Join(at, key.String()), each)
		}
	}
}

// keyOf returns the key of a field, and "" for one whose keys stand beside those around it.
func keyOf(f reflect.StructField) (key string, ok bool) {
	tag, ok := f.Tag.Lookup("koanf")
	if !ok {
		tag = f.Tag.Get("yaml")
	}
	key, _, _ = strings.Cut(tag, ",")
	return key, f.IsExported() && key != "-"
}
