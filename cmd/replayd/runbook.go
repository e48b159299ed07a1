package main

import (
	"github.com/spf13/cobra"

	"replayd/internal/web"
)

func newRunbook(w *world) *cobra.Command {
	return &cobra.Command{
		Use: "runbook", Short: "Print the runbook of the alerts as an HTML page",
		Long: "Print the runbook of the alerts as an HTML page, to be published where it can be read while no replayd runs. " +
			"Its address is for --web.runbook-url.",
		Example: "  replayd runbook > runbook.html",
		Args:    usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			page, err := web.Runbook()
			if err != nil {
				return err
			}
			_, err = w.out.Write(page)
			return err
		},
	}
}
