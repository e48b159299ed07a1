//go:build real

package flagger_test

import (
	"maps"
	"strings"

	flaggerv1 "github.com/fluxcd/flagger/pkg/apis/flagger/v1beta1"
)

// These are the changes to canary.yaml that its README describes or warns of.

// blueGreen is the analysis without a mesh.
func blueGreen(iterations int) func(*flaggerv1.Canary) {
	return func(c *flaggerv1.Canary) {
		c.Spec.Provider = flaggerv1.KubernetesProvider
		c.Spec.Analysis.StepWeight, c.Spec.Analysis.MaxWeight, c.Spec.Analysis.Iterations = 0, 0, iterations
	}
}

// withoutLoadTester counts undecided checks as failed.
func withoutLoadTester(c *flaggerv1.Canary) {
	c.Spec.Analysis.Webhooks = c.Spec.Analysis.Webhooks[:1]
	c.Spec.Analysis.Metrics[0].ThresholdRange.Min = new(1.0)
}

// gateOfTraffic holds before there is a weight.
func gateOfTraffic(c *flaggerv1.Canary) {
	c.Spec.Analysis.Webhooks[1].Type = flaggerv1.ConfirmTrafficIncreaseHook
}

// rollbackHook asks for a fail.
func rollbackHook(c *flaggerv1.Canary) {
	h := c.Spec.Analysis.Webhooks[1]
	h.Type, h.Name = flaggerv1.RollbackHook, "comparison-failed"
	of := maps.Clone(*h.Metadata)
	of["cmd"] = strings.Replace(of["cmd"], `verdict="pass"`, `verdict="fail"`, 1)
	h.Metadata = &of
	c.Spec.Analysis.Webhooks = append(c.Spec.Analysis.Webhooks, h)
}
