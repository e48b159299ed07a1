package chunk

import (
	"strings"
	"testing"
)

// ErrorText returns the message of an error answer, in the format of any engine, or else the whole body.
func TestErrorText(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"too long","type":"BadRequestError"}}`: "too long",
		`{"error":"too long"}`:                                 "too long",
		`{"object":"error","message":"too long"}`:              "too long",
		`{"detail":"Not Found"}`:                               "Not Found",
		`{"detail":[{"loc":["body"],"msg":"field required"}]}`: `[{"loc":["body"],"msg":"field required"}]`,
		`{"error":{"code":5}}`:                                 `{"code":5}`,
		`{"error":{"message":""},"detail":"a"}`:                "a", // an empty error is none
		`{"error":null,"status":5}`:                            `{"error":null,"status":5}`,
		`upstream is gone`:                                     "upstream is gone",
		``:                                                     "",
	} {
		if got, _ := ErrorText([]byte(body)); got != want {
			t.Errorf("%s: want %q, got %q", body, want, got)
		}
	}
}

// Only the beginning of a long error message is kept, also if the message is not a string.
func TestLongErrorIsCut(t *testing.T) {
	long := strings.Repeat("a", 2*MaxMessage)
	for in, want := range map[string]string{
		`{"error":{"code":1,"message":"` + long + `"}}`: long[:MaxMessage],
		`{"error":"` + long + `"}`:                      long[:MaxMessage],
		`{"error":{"code":"` + long + `"}}`:             (`{"code":"` + long)[:MaxMessage],
	} {
		var c Chunk
		if !c.Read([]byte(in), nil) || !c.Failed || c.Message != want {
			t.Errorf("%.40s: want failed with %d bytes, got %v with %d: %.40q", in, len(want), c.Failed, len(c.Message), c.Message)
		}
	}
}
