package gpu

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/scrape"
	"replayd/internal/secret"
	"replayd/internal/sim"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func itoa(id uint16) string { return strconv.Itoa(int(id)) }

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// parse returns the devices of a page.
func parse(t testing.TB, text string) []Device {
	t.Helper()
	return onGPUs(mustParse(t, text)).Devices
}

func mustParse(t testing.TB, text string) *scrape.Page {
	t.Helper()
	p, err := scrape.Parse([]byte(text), "text/plain; version=0.0.4", onPage)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// describe formats devices, with their fields in the order of the table.
func describe(list []Device) string {
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "gpu %s uuid %s model %q host %s mig %q %q pod %q %q %q\n",
			d.Index, d.UUID, d.Model, d.Hostname, d.Profile, d.Instance, d.Namespace, d.Pod, d.Container)
		for _, f := range Fields() {
			if v, ok := d.Values[f]; ok {
				fmt.Fprintf(&b, "  %s %s %s\n", f.Name, f.Reason, strconv.FormatFloat(v, 'f', -1, 64))
			}
		}
	}
	return b.String()
}

func TestPages(t *testing.T) {
	pages, err := filepath.Glob("testdata/pages/*.txt")
	if err != nil || len(pages) < 4 {
		t.Fatalf("pages: %v %v", pages, err)
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(page, ".txt")+".golden", describe(parse(t, string(text))))
		})
	}
}

// TestSyntheticPageHasAll checks that the page of the golden tests has every field.
func TestSyntheticPageHasAll(t *testing.T) {
	list := parse(t, string(read(t, "pages/synthetic_4.6.txt")))
	if len(list) != 2 || len(list[0].Values) != len(Fields()) {
		t.Errorf("got %d devices, the first with %d figures; want 2 and %d", len(list), len(list[0].Values), len(Fields()))
	}
}

// TestLabelSpellings reads the same GPU in each spelling of the labels.
func TestLabelSpellings(t *testing.T) {
	want := Device{
		Index: "1", UUID: "GPU-1", Model: "M", Hostname: "h", Namespace: "n", Pod: "p", Container: "c",
		Profile: "1g.5gb", Instance: "7", Values: map[*Field]float64{fieldOf(1002): 0.5},
	}
	for _, labels := range []string{
		`gpu="1",UUID="GPU-1",modelName="M",Hostname="h",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7",namespace="n",pod="p",container="c"`,
		`gpu="1",uuid="GPU-1",model_name="M",hostname="h",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7",pod_namespace="n",pod_name="p",container_name="c"`,
		`gpu="1",UUID="GPU-1",modelName="M",hostname="h",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7",exported_namespace="n",exported_pod="p",exported_container="c",namespace="gpu-operator",pod="dcgm-exporter-x",container="exporter"`,
		`gpu="1",UUID="GPU-1",modelName="M",hostname="h",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7",namespace="n",pod="p",container="c",nvlink="",cpu="",err_code="13",window_size_in_ms="1"`,
	} {
		for _, name := range []string{"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"} {
			got := parse(t, name+"{"+labels+"} 0.5\n")
			if diff := cmp.Diff([]Device{want}, got); diff != "" {
				t.Errorf("%s{%s} (-want +got):\n%s", name, labels, diff)
			}
		}
	}
}

func TestRowsOfNoGPU(t *testing.T) {
	for _, labels := range []string{
		``, `{hostname="h"}`, `{nvswitch="0",hostname="h"}`, `{cpu="0",hostname="h"}`, `{cpucore="1",cpu="0"}`,
		`{nvlink="1",nvswitch="0",gpu="0",gpu_uuid="GPU-1",device="nvidia0",model_name="M",hostname="h"}`, `{gpu="",UUID=""}`,
	} {
		if got := parse(t, "DCGM_FI_DEV_GPU_TEMP"+labels+" 1\n"); len(got) > 0 {
			t.Errorf("%s: %v, want no device", labels, got)
		}
	}
}

// TestSharedGPU has a GPU that two pods share: the page has its rows once per pod.
func TestSharedGPU(t *testing.T) {
	list := parse(t, `DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",namespace="n",pod="a",container="c"} 9
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-1",namespace="n",pod="b",container="c"} 9
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1",namespace="n",pod="b",container="c"} 40
`)
	pods := map[string]int{}
	for _, d := range list {
		pods[string(d.Pod)] = len(d.Values)
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 2}, pods); diff != "" {
		t.Fatalf("figures by pod (-want +got):\n%s", diff)
	}
	chosen, err := (&Select{}).choose(list)
	if err != nil || len(chosen) != 1 || len(chosen[0].Values) != 2 {
		t.Errorf("got %v, %v, want the GPU once, with both figures", chosen, err)
	}
}

// cutGPU is a GPU with two MIG instances, as in NVIDIA/dcgm-exporter#317 (and its 0 as in #216): each instance's rows
// repeat the figures of the whole GPU.
const cutGPU = `DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-265c9814",modelName="NVIDIA A30",GPU_I_PROFILE="1g.6gb",GPU_I_ID="3",namespace="n",pod="a"} 52.636
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-265c9814",modelName="NVIDIA A30",GPU_I_PROFILE="1g.6gb",GPU_I_ID="5",namespace="n",pod="b"} 52.746
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-265c9814",modelName="NVIDIA A30",GPU_I_PROFILE="1g.6gb",GPU_I_ID="3",namespace="n",pod="a"} 7000
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-265c9814",modelName="NVIDIA A30",GPU_I_PROFILE="1g.6gb",GPU_I_ID="5",namespace="n",pod="b"} 8000
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-265c9814",modelName="NVIDIA A30",GPU_I_PROFILE="1g.6gb",GPU_I_ID="3",namespace="n",pod="a"} 0
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-265c9814",modelName="NVIDIA A30",GPU_I_PROFILE="1g.6gb",GPU_I_ID="3",namespace="n",pod="a"} 1
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-265c9814",modelName="NVIDIA A30",GPU_I_PROFILE="1g.6gb",GPU_I_ID="5",namespace="n",pod="b"} 2
`

// TestCutGPU checks that figures of the whole GPU are exported once, and that a counter has its greatest value for any
// order of the rows.
func TestCutGPU(t *testing.T) {
	lines := strings.SplitAfter(cutGPU, "\n")
	for _, page := range []string{cutGPU, strings.Join(append([]string{lines[0], lines[1], lines[3], lines[2]}, lines[4:]...), "")} {
		for _, pods := range []bool{true, false} {
			if !pods {
				page = strings.NewReplacer(`,namespace="n",pod="a"`, "", `,namespace="n",pod="b"`, "").Replace(page)
			}
			chosen, err := (&Select{}).choose(parse(t, page))
			if err != nil {
				t.Fatal(err)
			}
			for i := range chosen {
				chosen[i].Namespace, chosen[i].Pod = "", ""
			}
			want := []Device{
				{Index: "0", UUID: "GPU-265c9814", Model: "NVIDIA A30", Values: map[*Field]float64{fieldOf(155): 52.636, fieldOf(156): 8}},
				{Index: "0", UUID: "GPU-265c9814", Model: "NVIDIA A30", Profile: "1g.6gb", Instance: "3", Values: map[*Field]float64{fieldOf(252): 1 << 20}},
				{Index: "0", UUID: "GPU-265c9814", Model: "NVIDIA A30", Profile: "1g.6gb", Instance: "5", Values: map[*Field]float64{fieldOf(252): 2 << 20}},
			}
			if diff := cmp.Diff(want, chosen); diff != "" {
				t.Errorf("pods %t (-want +got):\n%s", pods, diff)
			}
		}
	}
}

// serve reads the page of a handler through an Exporter.
func serve(t *testing.T, path string, h http.Handler) ([]Device, error) {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	pages, err := scrape.NewFetcher(scrape.FetchOptions{HTTP: commoncfg.DefaultHTTPClientConfig})
	if err != nil {
		t.Fatal(err)
	}
	e := NewExporter(pages, s.URL+path)
	r, err := e.Read(context.Background())
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s", strings.ReplaceAll(err.Error(), s.URL, "URL"))
	}
	return r.Devices, nil
}

func plain(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8") // pkg/server/server.go of dcgm-exporter
		_, _ = w.Write([]byte(body))
	})
}

func TestExporterReads(t *testing.T) {
	page := string(read(t, "pages/synthetic_4.6.txt"))
	list, err := serve(t, "/metrics", plain(page))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(describe(parse(t, page)), describe(list)); diff != "" {
		t.Errorf("over HTTP (-want +got):\n%s", diff)
	}
}

// AMD's exporter puts a prefix before the names if its configuration says so, as its examples do.
func TestPrefixOfAMD(t *testing.T) {
	page := string(read(t, "pages/synthetic_amd.txt"))
	prefixed := regexp.MustCompile(`(?m)^(# \w+ )?gpu_`).ReplaceAllString(page, "${1}amd_gpu_")
	if diff := cmp.Diff(describe(parse(t, page)), describe(parse(t, prefixed))); diff != "" {
		t.Errorf("with the prefix (-want +got):\n%s", diff)
	}
}

// An exporter that is told to ask localhost:5555 says that its GPUs are at localhost. A loopback name means the machine of the page.
func TestLoopbackHostnames(t *testing.T) {
	for name, want := range map[string]secret.Text{
		"localhost": Label(Hostname()), "127.0.0.1": Label(Hostname()), "::1": Label(Hostname()), "node-7": "node-7", "": "",
	} {
		list, err := serve(t, "/metrics", plain(strings.ReplaceAll(string(read(t, "pages/dcgm_exporter_h100_load.txt")), "localhost", name)))
		if err != nil || len(list) != 1 || list[0].Hostname != want {
			t.Errorf("%q: got %+v, %v, want the host %s", name, list, err, want)
		}
	}
	for host, want := range map[string]string{"node-7": "node-7", "10.0.0.7": "10.0.0.7", "127.0.0.2": Hostname()} {
		if got := Machine(host); got != want {
			t.Errorf("%s is the machine %s, want %s", host, got, want)
		}
	}
}

func TestExporterFaults(t *testing.T) {
	f := func(h http.Handler, want string) {
		t.Helper()
		if _, err := serve(t, "/metrics", h); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	f(plain("up 1\n"), "URL/metrics: want the page of a dcgm-exporter, of AMD's exporter or of all-smi, got 1 samples and none of a GPU")
	f(plain("DCGM_FI_DEV_GPU_TEMP{gpu="), "URL/metrics: line 1: ")
	f(http.NotFoundHandler(), "URL/metrics: want status 200, got")
}

// TestExporterHidesPassword checks that no error contains the password of the URL.
func TestExporterHidesPassword(t *testing.T) {
	for _, h := range []http.Handler{plain("up 1\n"), plain("DCGM_FI_DEV_GPU_TEMP{gpu="), http.NotFoundHandler()} {
		s := httptest.NewServer(h)
		pages, err := scrape.NewFetcher(scrape.FetchOptions{HTTP: commoncfg.DefaultHTTPClientConfig})
		if err != nil {
			t.Fatal(err)
		}
		e := NewExporter(pages, strings.Replace(s.URL, "://", "://user:secret@", 1)+"/metrics")
		_, err = e.Read(t.Context())
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), "http://xxxxx@127.0.0.1:") {
			t.Errorf("error %v", err)
		}
		s.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSimulatedEngine reads the GPU page of the simulated engine and compares an idle GPU with its constants.
func TestSimulatedEngine(t *testing.T) {
	e, err := sim.New(sim.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	list, err := serve(t, "/dcgm/metrics", e.Handler())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 {
		t.Fatalf("got %d devices, want 1", len(list))
	}
	d := list[0]
	if d.Index != "0" || d.UUID != "GPU-5e000000-0000-4000-8000-000000000000" || d.Model != "Simulated GPU" || d.Hostname != "sim" {
		t.Errorf("got %s %s %s %s", d.Index, d.UUID, d.Model, d.Hostname)
	}
	for id, want := range map[uint16]float64{
		100: 345e6, 101: 2619e6, 150: 32, 140: 38, 155: 70, 203: 0, 204: 0, 230: 0, 1001: 0, 1002: 0, 1005: 0,
		251: 0.1 * 81559 * (1 << 20), 252: 0.9 * 81559 * (1 << 20),
	} {
		if got, ok := d.Values[fieldOf(id)]; !ok || got < want*(1-1e-12) || got > want*(1+1e-12) {
			t.Errorf("%s = %v, %v, want %v", fieldOf(id).Name, got, ok, want)
		}
	}
	if joules, ok := d.Values[fieldOf(156)]; !ok || joules < 0 {
		t.Errorf("energy = %v, %v", joules, ok)
	}
	if len(d.Values) != 14 {
		t.Errorf("%d figures, want the 14 of the page", len(d.Values))
	}
}
