package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// jsonFault rewords a decoding error: the field, the wanted and the found type. encoding/json names Go types instead.
func jsonFault(err error) error {
	wrong := (*json.UnmarshalTypeError)(nil)
	if !errors.As(err, &wrong) {
		return err
	}
	want := "text"
	switch wrong.Type.Kind() {
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice, reflect.Array:
		want = "a list"
	case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Interface:
		want = "an object"
	case reflect.Float32, reflect.Float64:
		want = "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		want = "an integer"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		want = "an integer ≥ 0"
	}
	got := map[string]string{"array": "a list", "object": "an object", "string": "text", "bool": "true or false"}[wrong.Value]
	if got == "" {
		got = "a " + wrong.Value // number, perhaps with its digits
	}
	var field []string
	for name := range strings.SplitSeq(wrong.Field, ".") {
		if name != "" && name[0] >= 'a' && name[0] <= 'z' && !strings.ContainsFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' }) {
			field = append(field, name) // other names are those of embedded Go types
		}
	}
	if len(field) == 0 {
		return fmt.Errorf("want a JSON object, got %s", got)
	}
	return fmt.Errorf("%s: want %s, got %s", strings.Join(field, "."), want, got)
}
