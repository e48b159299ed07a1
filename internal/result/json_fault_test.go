package result

import (
	"strings"
	"testing"
)

// An error names line, field, wanted and found type, and no Go type, for any JSON.
func TestGarbageIsNamed(t *testing.T) {
	for line, want := range map[string]string{
		`[1]`:                               "want a JSON object, got a list",
		`7`:                                 "want a JSON object, got a number",
		`"text"`:                            "want a JSON object, got text",
		`{"metadata": 5}`:                   "metadata: want an object, got a number",
		`{"metadata": {"x_request_id": 7}}`: "metadata.x_request_id: want text, got a number",
		`{"metadata": {}, "metrics": {"request_latency": "x"}}`: "metrics.request_latency: want an object, got text",
		`{"metadata": {"turn_index": 1.5}}`:                     "metadata.turn_index: want an integer, got a number 1.5",
		`{"metadata": {"turn_index": [1]}}`:                     "metadata.turn_index: want an integer, got a list",
		`{"metadata": {"was_cancelled": "x"}}`:                  "metadata.was_cancelled: want true or false, got text",
		`{"metrics": 5, "metadata": {}}`:                        "metrics: want an object, got a number",
		`{"id":7}`:                                              "id: want text, got a number",
		`{"id":"a","outcome":{}}`:                               "outcome: want text, got an object",
		`{"id":"a","due_ns":"x"}`:                               "due_ns: want an integer, got text",
		`{"id":"a","ttft_ns":true}`:                             "ttft_ns: want an integer, got true or false",
	} {
		x := &exportReader{}
		_, err := x.row([]byte(line))
		if err == nil || err.Error() != want {
			t.Errorf("%s: want %q, got %v", line, want, err)
		}
	}
	_, err := ReadJSON(strings.NewReader(`{"input_config": [1]}`), "f.json")
	if want := "f.json: want a profile_export_aiperf.json: input_config: want an object, got a list"; err == nil || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
}
