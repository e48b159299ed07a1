//go:build real

package kubernetes_test

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
)

func TestNetworkPolicy(t *testing.T) {
	n := one[networkingv1.NetworkPolicy](t, objects(t, render(t, chart, full("deployment")...)), "NetworkPolicy", "")
	if len(n.Spec.Ingress) != 1 || n.Spec.Ingress[0].Ports[0].Port.IntValue() != 9898 || len(n.Spec.Ingress[0].From) != 1 {
		t.Errorf("want the page's port, for those who scrape, got %v", n.Spec.Ingress)
	}
	var ports []int
	for _, rule := range n.Spec.Egress {
		for _, p := range rule.Ports {
			ports = append(ports, p.Port.IntValue())
		}
	}
	if !slices.Equal(ports, []int{53, 53, 5353, 5353, 8000, 9400, 443}) {
		t.Errorf("want names, engine, GPUs and what is named besides, got %v", ports)
	}
	n = one[networkingv1.NetworkPolicy](t, objects(t, render(t, chart, append(full("shards"), "--set", "monitor.enabled=false", "--set", "networkPolicy.metricsFrom=null")...)), "NetworkPolicy", "")
	if len(n.Spec.Ingress) != 0 || !slices.Contains(n.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
		t.Errorf("want nobody in where nobody is named, got %v", n.Spec)
	}
}
