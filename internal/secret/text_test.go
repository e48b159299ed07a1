package secret

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A text from outside becomes one printable line within its bound, without the secrets.
func TestText(t *testing.T) {
	set := NewSet([]string{"kanarie one", "kanarie-two"})
	for raw, want := range map[string]string{
		"":                                       "",
		"Qwen/Qwen3":                             "Qwen/Qwen3",
		"  a  b ":                                "a b",
		"a\x1b[31mb\x07c\r\nd\te":                "a [31mb c d e",
		"a\u202eb\u2066c\u200bd\u0085e\x7ff":     "a b c d e f",
		"\xff\xfea":                              "\uFFFDa",
		"Authorization: Bearer kanarie-two \x1b": "Authorization: Bearer <secret>",
		"kanarie\r\none":                         "<secret>", // joined by the door
		"cut by another: kanarie-t…":             "cut by another: <secret>…",
		strings.Repeat("a", 40):                  strings.Repeat("a", 40),
		strings.Repeat("a", 41):                  strings.Repeat("a", 37) + "…",
		strings.Repeat("é", 41):                  strings.Repeat("é", 18) + "…",
		strings.Repeat("kanarie-two ", 9):        strings.Repeat("<secret> ", 4) + "<…",
		strings.Repeat("\x1b", 1<<20) + "a":      "…",
	} {
		if got := set.Text(raw, 40); string(got) != want {
			t.Errorf("%.60q: want %q, got %q", raw, want, got)
		}
	}
	if got := Set(nil).Text("kanarie-two\x1b", 40); got != "kanarie-two" {
		t.Errorf("without secrets: got %q", got)
	}
}

// No bound divides a secret so that a part of it stays.
func TestTextIsCutAnywhere(t *testing.T) {
	set := NewSet([]string{canary})
	for n := range 4*64 + lookahead + 20 {
		for _, raw := range []string{strings.Repeat(".", n) + canary + strings.Repeat(".", 2000), strings.Repeat("\x00", n) + canary + strings.Repeat(".", 2000)} {
			if got := string(set.Text(raw, 64)); strings.Contains(got, canary[:least]) || len(got) > 64 {
				t.Fatalf("%d bytes before it: got %q", n, got)
			}
		}
	}
}

// An error keeps its cause. One that needs no change stays as it is.
func TestTextOfError(t *testing.T) {
	cause := errors.New("a\x1b kanarie-two")
	if err := NewSet([]string{"kanarie-two"}).Error(cause, 99); err.Error() != "a <secret>" || !errors.Is(err, cause) {
		t.Errorf("got %q", err)
	}
	if err := NewSet(nil).Error(errors.ErrUnsupported, 99); !errors.Is(err, errors.ErrUnsupported) || err.Error() != errors.ErrUnsupported.Error() {
		t.Errorf("got %v", err)
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b[31m kanarie-two", 40)
	f.Add("\xe2\x80", 9)
	f.Add("a\x1b[31m kanarie-tso", 9)
	set := NewSet([]string{"kanarie-two"})
	f.Fuzz(func(t *testing.T, raw string, most int) {
		most = 8 + max(0, most)%1000
		got := string(set.Text(raw, most))
		if len(got) > most || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) ||
			strings.Contains(got, "kanarie-two") {
			t.Errorf("%q, %d: got %q", raw, most, got)
		}
		// A text may pass twice. If it was cut, its end may look like a part of a secret, and is masked then.
		if again := string(set.Text(got, most)); again != got && !strings.HasSuffix(got, cutMark) {
			t.Errorf("%q, %d: got %q, and then %q", raw, most, got, again)
		}
	})
}
