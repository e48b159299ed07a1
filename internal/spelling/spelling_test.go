package spelling

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"run", "report", "resume", "url", "model", "arrival", "timeout-total"}
	for word, want := range map[string]string{
		"rnu": "run", "ulr": "url", "mdoel": "model", "arrivl": "arrival", "timeout-toal": "timeout-total", "reprot": "report",
		"x": "", "": "", "concurrency": "", "run": "", "speed": "",
	} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%q: want %q, got %q", word, want, got)
		}
	}
	if got := DidYouMean("mdoel", "--", names); got != " (did you mean --model?)" {
		t.Error(got)
	}
}

func TestWant(t *testing.T) {
	for got, want := range map[string]string{
		Want([]string{"a"}, "x"):                                `want a, got "x"`,
		Want([]string{"chat", "completions"}, "chta"):           `want chat or completions, got "chta" (did you mean chat?)`,
		Want([]string{"exact", "poisson", "gamma"}, "constant"): `want exact, poisson or gamma, got "constant"`,
	} {
		if got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

func FuzzDistance(f *testing.F) {
	f.Add("abc", "acb")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 100 || len(b) > 100 {
			return
		}
		d := Distance(a, b)
		if d != Distance(b, a) || d > max(len(a), len(b)) || d < max(len(a), len(b))-min(len(a), len(b)) || (d == 0) != (a == b) {
			t.Errorf("%q, %q: %d", a, b, d)
		}
	})
}
