package synth

import (
	"testing"
	"time"

	"replayd/internal/trace"
)

func TestSaltsAreApart(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	seen := map[uint64]string{}
	add := func(name string, v uint64) {
		if other, ok := seen[v]; ok {
			t.Errorf("%s and %s are the same salt %x", name, other, v)
		}
		seen[v] = name
	}
	add("none", SaltNone.At("a", at, 0, nil))
	add("loop", SaltLoop.At("a", at, 0, nil))
	add("next loop", SaltLoop.At("a", at.Add(time.Hour), 0, nil))
	add("a second later", SaltLoop.At("a", at.Add(time.Second), 0, nil))
	add("other workload", SaltLoop.At("b", at, 0, nil))
	add("before 1970", SaltLoop.At("a", time.Unix(-1_700_000_000, 0), 0, nil))
	add("second pass", SaltLoop.At("a", at, 1, nil))
	add("third pass", SaltLoop.At("a", at, 2, nil))
	turn, single := &trace.Record{Session: "1", Number: 5}, &trace.Record{Number: 1}
	add("session", SaltSession.At("a", at, 0, turn))
	add("row without a session", SaltSession.At("a", at, 0, single))
	add("other session", SaltSession.At("a", at, 0, &trace.Record{Session: "2", Number: 5}))
	add("session in the next loop", SaltSession.At("a", at.Add(time.Hour), 0, turn))
	if SaltSession.At("a", at, 0, turn) != SaltSession.At("a", at, 0, &trace.Record{Session: "1", Number: 6}) {
		t.Error("turns of a session have different salts")
	}
	add("fixed:a", Salt("fixed:a").At("a", at, 0, nil))
	add("fixed:b", Salt("fixed:b").At("a", at, 0, nil))

	for _, s := range []Salt{SaltNone, "fixed:a"} {
		if s.At("a", at, 0, nil) != s.At("b", at.Add(time.Hour), 3, nil) {
			t.Errorf("%s depends on workload, loop or pass", s)
		}
	}
	if SaltLoop.At("a", at, 0, nil) != SaltLoop.At("a", at.Add(999*time.Millisecond).In(time.FixedZone("", 3600)), 0, nil) {
		t.Error("the salt of a loop depends on more than its second")
	}
	// The first 8 bytes of `printf 'loop\0a\0%s' 1700000000 | sha256sum`, and of `printf 'fixed\0a' | sha256sum`.
	if got, want := SaltLoop.At("a", at, 0, nil), uint64(0x48418020f7e885b8); got != want {
		t.Errorf("loop of workload a: %#x, want %#x", got, want)
	}
	if got, want := Salt("fixed:a").At("", at, 0, nil), uint64(0x23debdb841421e73); got != want {
		t.Errorf("fixed:a: %#x, want %#x", got, want)
	}
}

func TestSaltCheck(t *testing.T) {
	for _, s := range []Salt{SaltLoop, SaltSession, SaltNone, "fixed:x", "fixed:a b"} {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []Salt{"", "Loop", "fixed", "fixed:", "NAME"} {
		err := s.Check()
		if want := `want loop, session, none or fixed:NAME, got "` + string(s) + `"`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A cache_salt differs where the salt of the prompts differs. Its 256 bits are not those of the prompts' salt.
func TestSaltText(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	seen := map[string]string{}
	for name, text := range map[string]string{
		"loop": SaltLoop.Text("a", at, 0, nil), "next loop": SaltLoop.Text("a", at.Add(time.Hour), 0, nil), "other workload": SaltLoop.Text("b", at, 0, nil),
		"second pass": SaltLoop.Text("a", at, 1, nil), "third pass": SaltLoop.Text("a", at, 2, nil),
		"fixed:a": Salt("fixed:a").Text("a", at, 0, nil), "fixed:b": Salt("fixed:b").Text("a", at, 0, nil),
	} {
		if len(text) != 43 || seen[text] != "" {
			t.Errorf("%s and %q: want 43 characters of their own, got %q", name, seen[text], text)
		}
		seen[text] = name
	}
	if got := SaltNone.Text("a", at, 0, nil); got != "" {
		t.Errorf("none: want nothing, got %q", got)
	}
	if Salt("fixed:a").Text("a", at, 0, nil) != Salt("fixed:a").Text("b", at.Add(time.Hour), 3, nil) {
		t.Error("fixed:a depends on workload, loop or pass")
	}
	if SaltLoop.Text("a", at, 0, nil) != SaltLoop.Text("a", at.Add(999*time.Millisecond), 0, nil) {
		t.Error("the salt of a loop depends on more than its second: shards would not agree")
	}
	// printf 'cache\0loop\0a\0%s' 1700000000 | openssl dgst -sha256 -binary | basenc --base64url
	if got, want := SaltLoop.Text("a", at, 0, nil), "G73dhi_PPKCZ4ImXLMESvhdf-JVoyQMgKOq-MlES5Fg"; got != want {
		t.Errorf("loop of workload a: want %s, got %s", want, got)
	}
}
