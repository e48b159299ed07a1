//go:build real

package flagger_test

import (
	"maps"
	"strings"

	flaggerv1 "github.com/fluxcd/flagger/pkg/apis/flagger/v1beta1"
)

// These are the changes to canary.yaml that its README describes or warns of.

// gate is the hook that lets users in.
func gate(c *flaggerv1.Canary) *flaggerv1.CanaryWebhook {
	all := c.Spec.Analysis.Webhooks
	return &all[len(all)-1]
}

// blueGreen is the analysis without a mesh.
func blueGreen(iterations int) func(*flaggerv1.Canary) {
	return func(c *flaggerv1.Canary) {
		c.Spec.Provider = flaggerv1.KubernetesProvider
		c.Spec.Analysis.StepWeight, c.Spec.Analysis.MaxWeight, c.Spec.Analysis.Iterations = 0, 0, iterations
		gate(c).Type = flaggerv1.ConfirmPromotionHook
	}
}

// withoutLoadTester counts undecided checks, with users, as failed.
func withoutLoadTester(c *flaggerv1.Canary) {
	c.Spec.Analysis.Webhooks = c.Spec.Analysis.Webhooks[:1]
	c.Spec.Analysis.Metrics[0].ThresholdRange.Min = new(1.0)
}

// withoutVersion begins the evidence anew at each check.
func withoutVersion(c *flaggerv1.Canary) {
	c.Spec.Analysis.Webhooks[0].URL, _, _ = strings.Cut(c.Spec.Analysis.Webhooks[0].URL, "?")
}

// rollbackHook asks for a fail.
func rollbackHook(c *flaggerv1.Canary) {
	h := *gate(c)
	h.Type, h.Name = flaggerv1.RollbackHook, "comparison-failed"
	of := maps.Clone(*h.Metadata)
	of["cmd"] = strings.Replace(of["cmd"], `verdict="pass"`, `verdict="fail"`, 1)
	h.Metadata = &of
	c.Spec.Analysis.Webhooks = append(c.Spec.Analysis.Webhooks, h)
}
