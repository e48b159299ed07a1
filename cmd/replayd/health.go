package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newHealth(w *world) *cobra.Command {
	timeout := 5 * time.Second
	c := &cobra.Command{
		Use: "health [URL]", Short: "Exit 0 if a daemon there is healthy: for containers without a shell",
		Example: "  replayd health\n  replayd health http://127.0.0.1:9797",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			url := "http://127.0.0.1:9797"
			if len(args) == 1 {
				url = args[0]
			}
			if !strings.Contains(url, "://") {
				url = "http://" + url
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/-/healthy", nil)
			if err != nil {
				return wrongInput(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // what came is enough to print
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%s: want status 200, got %s", url, resp.Status)
			}
			_, err = fmt.Fprintln(w.out, strings.TrimSpace(string(text)))
			return err
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", timeout, "longest wait for the answer, such as 5s")
	return c
}
