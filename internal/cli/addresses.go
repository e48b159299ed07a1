package cli

import (
	"net"
	"strings"

	"replayd/internal/config"
	"replayd/internal/openai"
)

// addresses is the flag of a server: its address, or those of its pods with commas between them, or a DNS name with
// dns+ in front, each address of which is a pod.
type addresses struct{ target *config.Target }

// Set takes what can be taken apart. The check of the target refuses the rest.
func (a *addresses) Set(given string) error {
	t := a.target
	all := strings.Split(given, ",")
	t.URL, t.Pods, t.Metrics.Replicas = "", nil, ""
	if given != "" {
		t.URL = WithScheme(strings.TrimPrefix(all[0], "dns+"))
	}
	if host, port := openai.HostPort(t.URL); len(all) > 1 {
		t.Pods = all
	} else if strings.HasPrefix(given, "dns+") && port != "" { // else the fault of the address
		t.Metrics.Replicas = net.JoinHostPort(host, port)
		t.Pods = []string{"dns+" + t.Metrics.Replicas}
	}
	return nil
}

func (a *addresses) String() string {
	if len(a.target.Pods) > 0 {
		return strings.Join(a.target.Pods, ",")
	}
	return a.target.URL
}

func (a *addresses) Type() string { return "string" }
