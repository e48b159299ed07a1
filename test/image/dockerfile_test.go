//go:build real

package image_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"replayd/owner"
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

// labels returns the labels of a stage, with their variables expanded.
func (s stage) labels(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, m := range regexp.MustCompile(`([a-z.]+)="([^"]*)"`).FindAllStringSubmatch(s.last(t, "LABEL").text, -1) {
		all[m[1]] = m[2]
	}
	return all
}

// Both images have labels, run as a numeric user without rights, and differ only in their base.
func TestImages(t *testing.T) {
	all := stages(t)
	plain, dcgm := all[len(all)-1], named(t, "dcgm")
	if plain.name != "replayd" || plain.base != "scratch" {
		t.Errorf("want the default target replayd, from scratch, got %s from %s", plain.name, plain.base)
	}
	const oci = "org.opencontainers.image."
	o, err := owner.Read(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []stage{plain, dcgm} {
		want := map[string]string{
			"title": "replayd", "licenses": "Apache-2.0", "vendor": "The replayd Authors", "version": "$VERSION", "revision": "$REVISION",
			"url": o.Repository, "source": o.Repository, "documentation": "",
		}
		if o.Repository != "" {
			want["documentation"] = o.Repository + "/blob/main/README.md"
		}
		got := s.labels(t)
		for key, value := range want {
			if got[oci+key] != value {
				t.Errorf("%s: want the label %s%s %q, got %q", s.name, oci, key, value, got[oci+key])
			}
		}
		if got[oci+"description"] == "" {
			t.Errorf("%s: want a description", s.name)
		}
		for op, want := range map[string]string{"USER": nobody, "EXPOSE": "9797"} {
			if got := s.last(t, op).text; got != want {
				t.Errorf("%s: want %s %s, got %s", s.name, op, want, got)
			}
		}
	}
	if got := dcgm.labels(t)[oci+"base.name"]; got != dcgm.base {
		t.Errorf("want the label %sbase.name %s, got %s", oci, dcgm.base, got)
	}
	for _, op := range []string{"ENTRYPOINT", "CMD", "HEALTHCHECK"} {
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

// A pushed image has the tag of its version, with only the characters that a tag may have, and not only latest.
func TestPushedTags(t *testing.T) {
	said, err := exec.CommandContext(t.Context(), "make", "--dry-run", "--directory", repository, "image-push", "IMAGE=registry.example/replayd", "VERSION=v1.2.3-4-gabc+5").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	var tags []string
	words := strings.Fields(string(said))
	for i, word := range words[:len(words)-1] {
		if word == "-t" {
			tags = append(tags, words[i+1])
		}
	}
	if want := []string{"registry.example/replayd:latest", "registry.example/replayd:1.2.3-4-gabc-5"}; !slices.Equal(tags, want) {
		t.Errorf("want %q, got %q", want, tags)
	}
}
