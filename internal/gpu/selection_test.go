package gpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/secret"
)

// eight returns the GPUs of a node: two have a pod, and one has two MIG instances.
func eight() []Device {
	var list []Device
	for i := range 8 {
		list = append(list, Device{
			Index: Label(fmt.Sprint(i)), UUID: Label(fmt.Sprintf("GPU-%d0000000-0000-4000-8000-000000000000", i)), Hostname: "node-1",
			Values: map[*Field]float64{fieldOf(155): float64(100 + i)},
		})
	}
	list[2].Namespace, list[2].Pod, list[2].Container = "llm", "vllm-7d9f-x2x4c", "vllm"
	list[3].Namespace, list[3].Pod, list[3].Container = "llm", "vllm-7d9f-q8q1z", "vllm"
	for _, id := range []secret.Text{"7", "13"} {
		mig := list[4]
		mig.Profile, mig.Instance = "1g.10gb", id
		mig.Namespace, mig.Pod, mig.Container = "batch", "job-"+id, "main"
		mig.Values = map[*Field]float64{fieldOf(1002): 0.5}
		list = append(list, mig)
	}
	return list
}

func TestSelect(t *testing.T) {
	f := func(s Select, want string) {
		t.Helper()
		if err := s.Check(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
		chosen, err := s.choose(eight())
		var got []string
		for _, d := range chosen {
			got = append(got, strings.TrimSuffix(string(d.Index+"/"+d.Instance), "/"))
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", s, diff)
		}
	}
	const none = "want one of 10 GPUs and MIG instances, got none: the selection fits no one"
	f(Select{}, "0 1 2 3 4 5 6 7 4/7 4/13")
	f(Select{UUID: []string{"GPU-6000", "GPU-1000"}}, "1 6")
	f(Select{UUID: []string{"GPU-4000"}}, "4 4/7 4/13")
	f(Select{UUID: []string{"GPU-50000000-0000-4000-8000-000000000000"}}, "5")
	f(Select{Namespace: "llm"}, "2 3")
	f(Select{Namespace: "llm", Pod: "vllm-7d9f-q8q1z"}, "3")
	f(Select{Pod: "vllm-*"}, "2 3")
	f(Select{Pod: "job-?"}, "4 4/7") // the power of the whole GPU is selected too
	f(Select{Pod: "job-*"}, "4 4/7 4/13")
	f(Select{Pod: "job-?", UUID: []string{"GPU-4000"}}, "4 4/7")
	f(Select{Pod: "job-*", UUID: []string{"GPU-3000"}}, none)
	f(Select{Pod: "vllm"}, none)
	f(Select{UUID: []string{"MIG-50000000"}}, none)
}

// TestSelectOfACutGPU selects a pod's MIG instance, on pages with and without repeated figures of the whole GPU. The
// selection includes the figures that only the whole GPU has, and none of the other pod's instance.
func TestSelectOfACutGPU(t *testing.T) {
	whole := `DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-265c9814"} 52
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-265c9814"} 3
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-2d20791a"} 60
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-265c9814",GPU_I_PROFILE="1g.6gb",GPU_I_ID="3",pod="a"} 1
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-265c9814",GPU_I_PROFILE="1g.6gb",GPU_I_ID="5",pod="b"} 2
`
	noPower := `DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-265c9814"} 3
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-265c9814",GPU_I_PROFILE="1g.6gb",GPU_I_ID="5",pod="b"} 2
`
	f := func(page, pod string, want map[string]map[*Field]float64) {
		t.Helper()
		chosen, err := (&Select{Pod: pod}).choose(parse(t, page))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]map[*Field]float64{}
		for _, d := range chosen {
			got[string(d.Index+"/"+d.Instance)] = d.Values
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) != len(chosen) {
			t.Errorf("%d devices (-want +got):\n%s", len(chosen), diff)
		}
	}
	type values = map[*Field]float64
	f(cutGPU, "a", map[string]map[*Field]float64{"0/": values{fieldOf(155): 52.636, fieldOf(156): 8}, "0/3": values{fieldOf(252): 1 << 20}})
	f(cutGPU, "b", map[string]map[*Field]float64{"0/": values{fieldOf(155): 52.636, fieldOf(156): 8}, "0/5": values{fieldOf(252): 2 << 20}})
	f(whole, "b", map[string]map[*Field]float64{"0/": values{fieldOf(155): 52}, "0/5": values{fieldOf(252): 2 << 20}})
	f(noPower, "b", map[string]map[*Field]float64{"0/5": values{fieldOf(252): 2 << 20}})
}

func TestSelectWithFaults(t *testing.T) {
	s := Select{UUID: []string{"GPU-123"}, Pod: "a[", Namespace: "b"}
	want := `uuid: want 8 characters or more, got "GPU-123"
pod: "a[": syntax error in pattern`
	if err := s.Check(); err == nil || err.Error() != want {
		t.Errorf("error %v\nwant %s", err, want)
	}
}

// TestTooManyDevices checks the limit on the devices of one source.
func TestTooManyDevices(t *testing.T) {
	list := make([]Device, maxSelected+1)
	for i := range list {
		list[i] = Device{Index: Label(fmt.Sprint(i))}
	}
	if chosen, err := (&Select{}).choose(list[:maxSelected]); err != nil || len(chosen) != 512 {
		t.Errorf("got %d, %v, want all 512", len(chosen), err)
	}
	if _, err := (&Select{}).choose(list); err == nil || err.Error() != "want at most 512 GPUs and MIG instances, got more: select some" {
		t.Errorf("error %v", err)
	}
	if _, err := (&Select{}).choose(nil); err == nil || err.Error() != "want a GPU, got none" {
		t.Errorf("error %v", err)
	}
}
