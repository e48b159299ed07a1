package main

import (
	"fmt"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
)

func newVersion(w *world) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit, Go version, platform and build tags", Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(w.out, version.Print("replayd"))
			return err
		},
	}
}
