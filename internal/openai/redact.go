package openai

import "replayd/internal/secret"

// hidden has values that no text may show. It never changes.
type hidden struct {
	values []string
	set    secret.Set
}

func hide(values []string) *hidden { return &hidden{values, secret.NewSet(values)} }

// hiding returns the target's credentials and the secrets in request headers.
func (c *Client) hiding() secret.Set {
	own, request := c.secrets.Load(), c.requestSecrets.Load()
	switch {
	case own == nil && request == nil:
		return nil
	case own == nil:
		return request.set
	case request == nil:
		return own.set
	}
	return secret.NewSet(nil, own.set, request.set)
}

// redact removes the hidden values from a server's text: some servers repeat the key that they refuse.
func (c *Client) redact(text string) string { return c.hiding().Hide(text) }

// front returns at most n bytes from the beginning of a server's text, with our credentials redacted, including one that
// byte n truncates.
func (c *Client) front(b []byte, n int) string {
	if len(b) < n {
		return c.redact(string(b))
	}
	return c.hiding().HideCut(string(b[:n]), "")
}
