package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// whyOne says why a request asks for one choice.
const whyOne = "the chunks of several choices come mixed, so that TPOT and ITL would be of none of them"

// several reports whether the value of n, in JSON, asks for more than one choice. Servers read "2" as 2.
func several(n []byte) bool {
	f, err := strconv.ParseFloat(string(bytes.Trim(n, `"`)), 64)
	return err == nil && f > 1
}

// severalIn is several for a value of the configuration.
func severalIn(n any) bool {
	raw, err := json.Marshal(n)
	return err == nil && several(raw)
}

// Several reports whether a row asks for more than one choice. The fields of extra replace those of extra_body, and
// those the payload's.
func (c *Client) Several(payload, extra json.RawMessage) bool {
	for _, fields := range [][]field{withN(extra), c.extra, withN(payload)} {
		if i := slices.IndexFunc(fields, func(f field) bool { return f.key == "n" }); i >= 0 {
			return several(fields[i].value)
		}
	}
	return false
}

// withN returns the fields of a row's object if n may be one of them.
func withN(raw json.RawMessage) []field {
	if !bytes.Contains(raw, []byte(`"n"`)) {
		return nil
	}
	fields, _ := objectFields(raw) // a broken one is told when its message is built
	return fields
}
