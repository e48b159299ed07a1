package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"replayd/internal/cli"
	"replayd/internal/secret"

	commoncfg "github.com/prometheus/common/config"
	"github.com/spf13/cobra"
)

func newHealth(w *world) *cobra.Command {
	call := daemonCall{method: http.MethodGet, path: "/-/healthy", timeout: 5 * time.Second}
	c := &cobra.Command{
		Use: "health [URL]", Short: "Exit 0 if a daemon is healthy, for containers without a shell",
		Example: "  replayd health\n  replayd health https://127.0.0.1:9797 --http.config.file client.yaml",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE:    func(c *cobra.Command, args []string) error { return call.do(c.Context(), w, args, nil) },
	}
	call.flags(c)
	return c
}

// A daemonCall is one request to a running daemon. health, pause and resume use it.
type daemonCall struct {
	method, path string
	timeout      time.Duration
	clientFile   string // prometheus/common's HTTP client configuration; "": neither password nor CA
}

const (
	daemonURL = "http://127.0.0.1:9797" // default address of serve
	maxAnswer = 64 << 10                // bytes
	maxError  = 1 << 10                 // likewise
)

func (d *daemonCall) flags(c *cobra.Command) {
	c.Flags().Var(cli.Duration(&d.timeout), "timeout", "longest wait for the answer, such as 5s")
	c.Flags().StringVar(&d.clientFile, "http.config.file", "",
		"Prometheus' HTTP client configuration: keys, passwords, TLS")
}

// do sends the request to the URL in args, or to the default one, and prints the daemon's answer. A status other than
// 200 is an error that contains the answer.
func (d *daemonCall) do(ctx context.Context, w *world, args []string, form url.Values) error {
	u, err := daemonAt(args)
	if err != nil {
		return wrongInput(err)
	}
	if d.timeout <= 0 {
		return wrongInput(fmt.Errorf("--timeout: want a duration > 0, got %v", d.timeout))
	}
	client, own, err := d.client()
	if err != nil {
		return wrongInput(err)
	}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	sent := secret.NewSent(secret.OfClient(own))
	req, err := http.NewRequestWithContext(sent.Watch(ctx), d.method, u.JoinPath(d.path).String(), strings.NewReader(form.Encode()))
	if err != nil {
		return wrongInput(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := client.Do(req)
	if err != nil {
		return sent.Set().Error(err, maxError)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // print what came, even after an error
	text, hidden := strings.TrimSpace(string(body)), sent.Set() // another program at the address may repeat the password
	if text = hidden.Hide(text); len(body) == maxAnswer {
		text = hidden.HideCut(text, "")
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: want status 200, got %s: %s%s", u.Redacted(), hidden.Hide(resp.Status), text, d.advice(resp.StatusCode))
	}
	_, err = fmt.Fprintln(w.out, text)
	return err
}

// advice returns a hint for a status, on a line of its own.
func (d *daemonCall) advice(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "\n--http.config.file gives the password"
	case status == http.StatusForbidden && d.method == http.MethodPost:
		return "\nthe daemon needs --web.enable-lifecycle, or web.enable_lifecycle in its configuration"
	}
	return ""
}

// daemonAt returns the address in args, with or without a scheme, or the default one.
func daemonAt(args []string) (*url.URL, error) {
	if len(args) == 0 {
		return url.Parse(daemonURL)
	}
	u, err := url.Parse(cli.WithScheme(args[0]))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		got := strconv.Quote(args[0])
		if strings.Contains(got, "@") { // the text before the @ may be a password
			got = "one that is none and has an @ in it"
		}
		return nil, fmt.Errorf("want an http or https address such as %s, got %s", daemonURL, got)
	}
	u.RawQuery, u.Fragment = "", ""
	return u, nil
}

// client returns a client, and its configuration. The client follows no redirects: the page behind one, such as a proxy's
// login, would pass for the daemon's answer.
func (d *daemonCall) client() (client *http.Client, c commoncfg.HTTPClientConfig, err error) {
	client = &http.Client{}
	if d.clientFile != "" {
		if c, err = cli.HTTPConfig(d.clientFile); err != nil {
			return nil, c, fmt.Errorf("--http.config.file: %w", err)
		}
		if client, err = commoncfg.NewClientFromConfig(c, "replayd"); err != nil {
			return nil, c, fmt.Errorf("--http.config.file: %s: %w", d.clientFile, err)
		}
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, c, nil
}
