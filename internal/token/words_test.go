package token

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The numbers come from the makers of the lists; see ORIGIN.md.
func TestListsAreWhatWasVerified(t *testing.T) {
	for _, c := range []struct {
		name, file, sum  string
		words, bytes     int
		firstID, lastID  int
		startersExpected int
	}{
		{"main", mainWords, "26cf673ba06d9b21efbb7ff4b822f6e70c3af4dc365c8256c7bde0149c00f24a", 13_912, 116_677, 1_000, 99_999, 25},
		{"all", allWords, "c2c8c201fb52446900d5a16f66caf7baf2e857829f06044585a51864530ea380", 6_152, 48_140, 1_027, 31_999, 25},
	} {
		w, err := List(c.name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(c.file))
		if got := hex.EncodeToString(sum[:]); got != c.sum {
			t.Errorf("%s: sha256 %s, want %s", c.name, got, c.sum)
		}
		if w.Len() != c.words || w.Bytes() != c.bytes || w.Starters() != c.startersExpected {
			t.Errorf("%s: %d words, %d bytes, %d starters; want %d, %d, %d",
				c.name, w.Len(), w.Bytes(), w.Starters(), c.words, c.bytes, c.startersExpected)
		}
		if w.FirstID != c.firstID || w.LastID != c.lastID {
			t.Errorf("%s: ids %d to %d, want %d to %d", c.name, w.FirstID, w.LastID, c.firstID, c.lastID)
		}
	}
}

func TestAppendGivesTheFilesWords(t *testing.T) {
	form := regexp.MustCompile(`^ [a-z]{3,15}$`)
	for name, file := range map[string]string{"main": mainWords, "all": allWords} {
		w, err := List(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(strings.TrimSuffix(file, "\n"), "\n") {
			if got := string(w.Append([]byte("x"), i)); got != "x "+line || !form.MatchString(got[1:]) {
				t.Fatalf("%s: word %d appends %q, want a space and the 3 to 15 letters %q", name, i, got, line)
			}
		}
		var starters []string
		for i := range w.Starters() {
			starters = append(starters, string(w.AppendStarter(nil, i)))
		}
		if want := strings.Fields(starting); !slices.Equal(starters, want) {
			t.Errorf("%s: starters %q, want %q", name, starters, want)
		}
	}
}

func TestUnknownList(t *testing.T) {
	w, err := List("Main")
	if want := `words: want "main" or "all", got "Main"`; w != nil || err == nil || err.Error() != want {
		t.Errorf("got %v, %v; want error %q", w, err, want)
	}
}
