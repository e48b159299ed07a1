package upgrade_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// readers read a file of a folder with the real binary, as users do, and give what it says.
var readers = map[string]func(t *testing.T, folder string) (figures any, err error){
	"replayd.yaml":  readConfig,
	"records.jsonl": readRecords,
	"state.json":    readState,
}

// copied copies a folder, with its records unpacked, to a place where a daemon may write.
func copied(t *testing.T, folder string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), filepath.Base(folder))
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(dir, "records.jsonl.gz")
	text, err := os.ReadFile(packed)
	if os.IsNotExist(err) {
		return dir
	}
	if err != nil {
		t.Fatal(err)
	}
	in, err := gzip.NewReader(bytes.NewReader(text))
	if err == nil {
		text, err = io.ReadAll(in)
	}
	if err != nil {
		t.Fatal(err)
	}
	outside.Write(t, dir, "records.jsonl", string(text))
	if err := os.Remove(packed); err != nil {
		t.Fatal(err)
	}
	return dir
}

// replayd runs a command in a folder and returns its output.
func replayd(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), binary, args...)
	c.Dir = folder
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said.String())
	}
	return out.String(), nil
}

func readConfig(t *testing.T, folder string) (any, error) {
	t.Helper()
	_, err := replayd(t, folder, "check-config", "replayd.yaml")
	return nil, err
}

// readRecords gives the figures and the ledger, without the words.
func readRecords(t *testing.T, folder string) (figures any, err error) {
	t.Helper()
	out, err := replayd(t, folder, "report", "--json", "-", "records.jsonl")
	if err != nil {
		return nil, err
	}
	var report struct {
		Runs []struct {
			Attainment        any `json:"attainment"`
			ServiceAttainment any `json:"service_attainment"`
			Ledger            any `json:"ledger"`
			Figures           any `json:"figures"`
		} `json:"runs"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return nil, err
	}
	return plain(t, report), nil
}

// A comparison is its evidence in /-/comparisons, without the words.
type comparison struct {
	Name    string    `json:"name"`
	Epoch   time.Time `json:"epoch"`
	Verdict string    `json:"verdict,omitempty"`
	Pairs   struct {
		Judged int `json:"judged"`
		Void   int `json:"void"`
	} `json:"pairs"`
	Metrics []struct {
		Metric   string             `json:"metric"`
		Blocks   int                `json:"blocks"`
		Ratio    float64            `json:"ratio,omitempty"`
		Lower    float64            `json:"lower,omitempty"`
		Upper    float64            `json:"upper,omitempty"`
		Excess   float64            `json:"excess,omitempty"`
		Evidence map[string]float64 `json:"evidence_log10,omitempty"`
	} `json:"metrics"`
}

// A daemon runs in a folder.
type daemon struct {
	process *os.Process
	url     string
	ended   chan error
}

var listening = regexp.MustCompile(`msg="Listening on" address=(\S+)\n`)

// serve starts a daemon, waits until it has comparisons and returns their list, or the error with which it ended.
func serve(t *testing.T, folder string) (d daemon, comparisons []byte, err error) {
	t.Helper()
	out, err := os.Create(filepath.Join(folder, "serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := exec.Command(binary, "serve", "--config", "replayd.yaml", "--web.listen-address", "127.0.0.1:0")
	c.Dir, c.Stdout, c.Stderr = folder, out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	d = daemon{c.Process, "", make(chan error, 1)}
	over := make(chan struct{})
	go func() {
		d.ended <- c.Wait()
		close(over)
	}()
	t.Cleanup(func() {
		_ = d.process.Kill() // it may have ended
		<-over
	})
	var early error
	outside.Until(t, 20*time.Second, func() error {
		select {
		case early = <-d.ended:
			said, err := os.ReadFile(out.Name())
			early = errors.Join(fmt.Errorf("serve ended: %s", said), early, err)
			return nil
		default:
		}
		// A port chosen here could be that of another test's daemon, which would answer in place of this one.
		said, err := os.ReadFile(out.Name())
		if err != nil {
			return err
		}
		address := listening.FindSubmatch(said)
		if address == nil {
			return errors.New("want the daemon's address in its log, got none yet")
		}
		d.url = "http://" + string(address[1])
		var status int
		status, comparisons, err = outside.Call(t.Context(), http.DefaultClient, http.MethodGet, d.url+"/-/comparisons")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("want 200, got %d: %s", status, comparisons)
		}
		if err == nil && strings.TrimSpace(string(comparisons)) == "[]" {
			err = errors.New("want comparisons, got none yet")
		}
		return err
	})
	return d, comparisons, early
}

// readState starts a daemon, whose first pairs are due half a minute later. The servers are not there, which is no matter for that.
func readState(t *testing.T, folder string) (any, error) {
	t.Helper()
	_, answer, err := serve(t, folder)
	if err != nil {
		return nil, err
	}
	said, err := os.ReadFile(filepath.Join(folder, "serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	other := map[string]bool{}
	for _, found := range otherRules.FindAllSubmatch(said, -1) {
		other[string(found[1])] = true
	}
	said = otherRules.ReplaceAll(said, nil)
	if anew := regexp.MustCompile(`.*comparisons? begins? anew.*`).FindAllString(string(said), -1); anew != nil {
		return nil, errors.New(strings.Join(anew, "\n"))
	}
	var all []comparison
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, err
	}
	for i, c := range all {
		if other[c.Name] {
			all[i] = comparison{Name: c.Name}
		}
	}
	return plain(t, all), nil
}

// otherRules is what the log says of a verdict that begins anew because the rules of verdicts have changed.
var otherRules = regexp.MustCompile(`.*the kept evidence is of other rules: the comparison begins anew" comparison=(\S+)`)

// plain gives a value as encoding/json reads it.
func plain(t *testing.T, v any) (read any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// within says where a wanted figure is missing or another one. There may be further figures.
func within(at string, want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: want an object, got %v", at, got)
		}
		var errs []error
		for key, v := range want {
			errs = append(errs, within(at+"/"+key, v, have[key]))
		}
		return errors.Join(errs...)
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return fmt.Errorf("%s: want a list of %d, got %v", at, len(want), got)
		}
		var errs []error
		for i, v := range want {
			errs = append(errs, within(fmt.Sprint(at, "/", i), v, have[i]))
		}
		return errors.Join(errs...)
	case float64:
		if have, ok := got.(float64); ok && math.Abs(have-want) <= 1e-9*math.Abs(want) {
			return nil
		}
	default:
		if got == want {
			return nil
		}
	}
	return fmt.Errorf("%s: want %v, got %v", at, want, got)
}
