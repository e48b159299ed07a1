package main

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// newLifecycle returns the command for one of the paths of a daemon's lifecycle API.
func newLifecycle(w *world, verb, short string) *cobra.Command {
	call := daemonCall{method: http.MethodPost, path: "/-/" + verb, timeout: 10 * time.Second}
	var workload string
	c := &cobra.Command{
		Use: verb + " [URL]", Short: short,
		Long:    short + ".\n\nThe daemon must run with --web.enable-lifecycle.",
		Example: "  replayd " + verb + "\n  replayd " + verb + " http://127.0.0.1:9797 --workload conversation",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			form := url.Values{}
			if c.Flags().Changed("workload") {
				if workload == "" { // an empty variable in a script must not pause everything
					return wrongInput(errors.New(`--workload: want the name of a workload, or no such flag for all, got ""`))
				}
				form.Set("workload", workload)
			}
			return call.do(c.Context(), w, args, form)
		},
	}
	c.Flags().StringVar(&workload, "workload", "", "name of one workload; empty: all")
	call.flags(c)
	return c
}
