package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const dockerfile = "Dockerfile"

// A stage is a stage of the Dockerfile. The image of a release is made from the last one, so that both say the same about user, labels,
// files and commands.
type stage struct {
	name, base string
	steps      []instruction
}

// An instruction has its lines joined, and its comments and flags taken off.
type instruction struct {
	line  int
	op    string
	flags map[string]string
	text  string
	here  string // the text of a here-document
}

// stages parses the part of the Dockerfile syntax that the Dockerfile uses.
func stages(text string) (all []stage, err error) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		in := instruction{line: i + 1, flags: map[string]string{}}
		line := strings.TrimSpace(lines[i])
		if line == "" || line[0] == '#' {
			continue
		}
		for strings.HasSuffix(line, "\\") && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, "\\") + strings.TrimSpace(lines[i])
		}
		in.op, in.text, _ = strings.Cut(line, " ")
		in.text = strings.TrimSpace(in.text)
		for strings.HasPrefix(in.text, "--") {
			var flag string
			flag, in.text, _ = strings.Cut(in.text, " ")
			name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
			in.flags[name], in.text = value, strings.TrimSpace(in.text)
		}
		if end, rest, ok := strings.Cut(strings.TrimPrefix(in.text, "<<"), " "); ok && strings.HasPrefix(in.text, "<<") {
			n := slices.Index(lines[i+1:], end)
			if n < 0 {
				return nil, fmt.Errorf("%s:%d: want the here-document to end with %s", dockerfile, in.line, end)
			}
			in.here, in.text = strings.Join(lines[i+1:i+1+n], "\n")+"\n", rest
			i += n + 1
		}
		words := strings.Fields(in.text)
		switch {
		case in.op == "FROM" && (len(words) != 3 || words[1] != "AS"):
			return nil, fmt.Errorf("%s:%d: want FROM IMAGE AS NAME, got %s", dockerfile, in.line, line)
		case in.op == "FROM":
			all = append(all, stage{name: words[2], base: words[0]})
		case len(all) > 0:
			all[len(all)-1].steps = append(all[len(all)-1].steps, in)
		}
	}
	return all, nil
}

// A recipe is what the Dockerfile says about the default image.
type recipe struct {
	labels     map[string]string
	user       string
	ports      []string
	entrypoint []string
	command    []string
	health     health
	files      []entry // in the binary's place is the path /out/replayd in from
}

// health is Docker's extension of the image's configuration, with the field that go-containerregistry does not have.
type health struct {
	Test          []string      `json:"Test,omitempty"`
	Interval      time.Duration `json:"Interval,omitempty"`
	Timeout       time.Duration `json:"Timeout,omitempty"`
	StartPeriod   time.Duration `json:"StartPeriod,omitempty"`
	StartInterval time.Duration `json:"StartInterval,omitempty"`
	Retries       int           `json:"Retries,omitempty"`
}

// builtBinary is where the Dockerfile's stage build leaves the binary.
const builtBinary = "/out/replayd"

// readRecipe reads the Dockerfile of the repository. Its build arguments are these; one that is missing has its default.
func readRecipe(root string, arguments map[string]string) (*recipe, error) {
	text, err := os.ReadFile(filepath.Join(root, dockerfile))
	if err != nil {
		return nil, err
	}
	all, err := stages(string(text))
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || all[len(all)-1].base != "scratch" {
		return nil, fmt.Errorf("%s: want the last stage from scratch", dockerfile)
	}
	r := &recipe{labels: map[string]string{}}
	known := map[string]string{}
	for _, in := range all[len(all)-1].steps {
		if err := r.read(root, all, in, known, arguments); err != nil {
			return nil, fmt.Errorf("%s:%d: %s: %w", dockerfile, in.line, in.op, err)
		}
	}
	if r.user == "" || len(r.entrypoint) == 0 || len(r.health.Test) == 0 {
		return nil, fmt.Errorf("%s: want USER, ENTRYPOINT and HEALTHCHECK in the last stage, got %q, %q, %q", dockerfile, r.user, r.entrypoint, r.health.Test)
	}
	return r, nil
}

var (
	pairs     = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)=(?:"([^"]*)"|(\S*))`)
	variables = regexp.MustCompile(`\$\{?([A-Z_]+)\}?`)
)

func (r *recipe) read(root string, all []stage, in instruction, known, arguments map[string]string) (err error) {
	switch in.op {
	case "ARG":
		for _, m := range pairs.FindAllStringSubmatch(in.text, -1) {
			known[m[1]] = m[2] + m[3]
			if value, ok := arguments[m[1]]; ok {
				known[m[1]] = value
			}
		}
	case "LABEL":
		for _, m := range pairs.FindAllStringSubmatch(in.text, -1) {
			value := variables.ReplaceAllStringFunc(m[2]+m[3], func(v string) string {
				name := variables.FindStringSubmatch(v)[1]
				if _, ok := known[name]; !ok {
					err = fmt.Errorf("%s: want an ARG %s in the stage, there is none", m[1], name)
				}
				return known[name]
			})
			if value != "" {
				r.labels[m[1]] = value
			}
		}
	case "USER":
		r.user = in.text
	case "EXPOSE":
		r.ports = strings.Fields(in.text)
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(in.text), &r.entrypoint)
	case "CMD":
		return json.Unmarshal([]byte(in.text), &r.command)
	case "HEALTHCHECK":
		return r.readHealth(in)
	case "COPY":
		return r.copy(root, all, in)
	default:
		return fmt.Errorf("want an instruction that tools/release/dockerfile.go reads")
	}
	return err
}

func (r *recipe) readHealth(in instruction) error {
	text, ok := strings.CutPrefix(in.text, "CMD ")
	if !ok {
		return fmt.Errorf("want CMD, got %s", in.text)
	}
	var command []string
	if err := json.Unmarshal([]byte(text), &command); err != nil {
		return err
	}
	r.health.Test = append([]string{"CMD"}, command...)
	for name, value := range in.flags {
		to := map[string]*time.Duration{
			"interval": &r.health.Interval, "timeout": &r.health.Timeout,
			"start-period": &r.health.StartPeriod, "start-interval": &r.health.StartInterval,
		}[name]
		var err error
		switch {
		case name == "retries":
			r.health.Retries, err = strconv.Atoi(value)
		case to == nil:
			err = fmt.Errorf("want a flag that tools/release/dockerfile.go reads")
		default:
			*to, err = time.ParseDuration(value)
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	return nil
}

// madeFolders are the folders that a stage makes by `install -d`, with their modes.
var madeFolders = regexp.MustCompile(`install -d -m ([0-7]+) (\S+)`)

// copy adds the files of a COPY.
func (r *recipe) copy(root string, all []stage, in instruction) error {
	words := strings.Fields(in.text)
	if len(words) == 0 {
		return fmt.Errorf("want a path")
	}
	from, to := words[:len(words)-1], strings.TrimPrefix(words[len(words)-1], "/")
	id := 0
	if owner := in.flags["chown"]; owner != "" {
		user, group, _ := strings.Cut(owner, ":")
		var err error
		if id, err = strconv.Atoi(user); err != nil || user != group {
			return fmt.Errorf("--chown: want one number for user and group, got %s", owner)
		}
	}
	switch name := in.flags["from"]; {
	case in.here != "":
		r.files = append(r.files, entry{path: to, mode: 0o644, id: id, data: []byte(in.here)})
	case name == "":
		for _, file := range from {
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				return err
			}
			r.files = append(r.files, entry{path: to + file, mode: 0o644, id: id, data: text})
		}
	case len(from) == 1 && from[0] == builtBinary:
		r.files = append(r.files, entry{path: to, mode: 0o755, id: id, from: builtBinary})
	case len(from) == 1 && from[0] == "/etc/ssl/certs/ca-certificates.crt":
		r.files = append(r.files, entry{path: to, mode: 0o644, id: id, data: certificates()})
	case len(from) == 1 && strings.HasSuffix(from[0], "/"):
		found := false
		for _, step := range all[max(slices.IndexFunc(all, func(s stage) bool { return s.name == name }), 0)].steps {
			for _, m := range madeFolders.FindAllStringSubmatch(step.text, -1) {
				inside, ok := strings.CutPrefix(m[2], from[0])
				mode, err := strconv.ParseUint(m[1], 8, 12)
				if err != nil {
					return err
				}
				if ok {
					found = true
					r.files = append(r.files, entry{path: to + inside + "/", mode: os.FileMode(mode), id: id})
				}
			}
		}
		if !found {
			return fmt.Errorf("%s: want a folder that the stage %s makes by install -d", from[0], name)
		}
	default:
		return fmt.Errorf("%s: want a file that tools/release/dockerfile.go knows", in.text)
	}
	return nil
}
