//go:build real

package image_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A stage is the part from one FROM to the next.
type stage struct {
	name, base string
	steps      []step
}

// A step is an instruction of a Dockerfile, without comments and with its lines joined.
type step struct {
	op    string
	flags map[string]string
	text  string // what follows the flags
	here  string // the text of a here-document
}

// words returns the words of a step's text, in either form.
func (s step) words() (words []string) {
	if json.Unmarshal([]byte(s.text), &words) == nil {
		return words
	}
	return strings.Fields(s.text)
}

// stages parses the subset of the Dockerfile syntax that the Dockerfile uses; BuildKit knows the rest.
func stages(t *testing.T) (all []stage) {
	t.Helper()
	text, err := os.ReadFile(repository + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.ReplaceAll(string(text), "\\\n", ""), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		if line == "" || line[0] == '#' {
			continue
		}
		s := step{flags: map[string]string{}}
		s.op, s.text, _ = strings.Cut(line, " ")
		s.text = strings.TrimSpace(s.text)
		for strings.HasPrefix(s.text, "--") {
			var flag string
			flag, s.text, _ = strings.Cut(s.text, " ")
			s.text = strings.TrimSpace(s.text)
			name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
			s.flags[name] = value
		}
		if end, rest, ok := strings.Cut(strings.TrimPrefix(s.text, "<<"), " "); ok && strings.HasPrefix(s.text, "<<") {
			n := slices.Index(lines[i+1:], end)
			if n < 0 {
				t.Fatalf("Dockerfile:%d: the here-document does not end", i+1)
			}
			s.here, s.text = strings.Join(lines[i+1:i+1+n], "\n")+"\n", rest
			i += n + 1
		}
		if s.op == "FROM" {
			words := strings.Fields(s.text)
			if len(words) != 3 || words[1] != "AS" {
				t.Fatalf("Dockerfile: want every stage with a name, got %s", line)
			}
			all = append(all, stage{name: words[2], base: words[0]})
		} else if len(all) > 0 {
			all[len(all)-1].steps = append(all[len(all)-1].steps, s)
		}
	}
	return all
}

// named returns the stage with a name.
func named(t *testing.T, name string) stage {
	t.Helper()
	all := stages(t)
	i := slices.IndexFunc(all, func(s stage) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("the Dockerfile has no stage %s", name)
	}
	return all[i]
}

// last returns the last instruction with a name, which is the one that counts.
func (s stage) last(t *testing.T, op string) step {
	t.Helper()
	for _, step := range slices.Backward(s.steps) {
		if step.op == op {
			return step
		}
	}
	t.Fatalf("%s: want %s, there is none", s.name, op)
	return step{}
}

// command is the command of a container of the stage; probe is its health check.
func (s stage) command(t *testing.T) []string {
	t.Helper()
	return append(s.last(t, "ENTRYPOINT").words(), s.last(t, "CMD").words()...)
}

func (s stage) probe(t *testing.T) []string {
	t.Helper()
	probe := s.last(t, "HEALTHCHECK")
	probe.text = strings.TrimPrefix(probe.text, "CMD ")
	return probe.words()
}

// Both images run as a numeric user without rights, have the same labels, and differ only in their base.
func TestImages(t *testing.T) {
	all := stages(t)
	plain, dcgm := all[len(all)-1], named(t, "dcgm")
	if plain.name != "replayd" || plain.base != "scratch" {
		t.Errorf("want the default target replayd, from scratch, got %s from %s", plain.name, plain.base)
	}
	for _, s := range []stage{plain, dcgm} {
		for _, label := range []string{
			`title="replayd"`, `description="`, `licenses="Apache-2.0"`, `vendor="The replayd Authors"`, `version="$VERSION"`,
			`revision="$REVISION"`,
		} {
			if text := s.last(t, "LABEL").text; !strings.Contains(text, " org.opencontainers.image."+label) &&
				!strings.HasPrefix(text, "org.opencontainers.image."+label) {
				t.Errorf("%s: want the label %s, got %s", s.name, label, text)
			}
		}
	}
	if user, port := plain.last(t, "USER").text, plain.last(t, "EXPOSE").text; user != nobody || port != "9797" {
		t.Errorf("want user %s and port 9797, got %s and %s", nobody, user, port)
	}
	if want := `base.name="` + dcgm.base + `"`; !strings.Contains(dcgm.last(t, "LABEL").text, want) {
		t.Errorf("dcgm: want the label %s", want)
	}
	for _, op := range []string{"USER", "EXPOSE", "ENTRYPOINT", "CMD", "HEALTHCHECK"} {
		if a, b := plain.last(t, op), dcgm.last(t, op); a.text != b.text || !maps.Equal(a.flags, b.flags) {
			t.Errorf("want one %s for both images, got %v and %v", op, a, b)
		}
	}
}

// The builds of the Makefile and of the Dockerfile differ only in their platform.
func TestBuildFlags(t *testing.T) {
	text, err := os.ReadFile(repository + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`(^|[ "'])-(tags dcgm|buildvcs=\S+|trimpath|ldflags)`)
	stamp := regexp.MustCompile(`-X (\S+)=`)
	stamps := strings.ReplaceAll(string(text), "$(STAMP)", "github.com/prometheus/common/version")
	for target, name := range map[string]string{"build": "build", "build-dcgm": "build-dcgm"} {
		recipe := regexp.MustCompile(`(?m)^` + target + `:.*\n\t(.*)$`).FindStringSubmatch(string(text))
		if recipe == nil {
			t.Fatalf("the Makefile has no target %s", target)
		}
		run := named(t, name).last(t, "RUN").text
		if want, got := flag.FindAllString(recipe[1], -1), flag.FindAllString(run, -1); len(want) < 3 || !slices.Equal(want, got) {
			t.Errorf("%s: want the Makefile's flags, %q, got %q", name, want, got)
		}
		if want, got := stamp.FindAllString(stamps, -1), stamp.FindAllString(run, -1); len(want) != 4 || !slices.Equal(want, got) {
			t.Errorf("%s: want the Makefile's stamps, %q, got %q", name, want, got)
		}
	}
}
