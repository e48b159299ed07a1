package openai

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/idna"

	"replayd/internal/fault"
)

// An endpoint is a target's address taken apart: where its requests go, and under which paths.
type endpoint struct {
	secure  bool
	host    string // as the Host header has it
	name    string // host without port and brackets, for the certificate
	address string // host:port to dial
	root    string // path of the API, in front of /chat/completions and /models; no slash at its end
	query   string // of every request, without its question mark
	path    string // of the generating endpoint where it is not one of the two behind root; with a query of its own
	api     API    // the endpoint that the address itself names; "": none
}

// The paths of the two generating endpoints behind the root of the API.
var apiPaths = map[API]string{Chat: "/chat/completions", Completions: "/completions"}

// endsIn returns the API with the path at the end of a path, and the root in front of it; "" for none.
func endsIn(path string) (api API, root string) {
	for _, api := range []API{Chat, Completions} { // the path of chat ends in that of completions
		if root, ok := strings.CutSuffix(path, apiPaths[api]); ok {
			return api, root
		}
	}
	return "", path
}

// CheckAddress returns why requests cannot go to the address and the path of o, or the API that the address names and o
// has not. No text shows a password or a query.
func (o *Options) CheckAddress() fault.List {
	_, f := o.endpoint()
	return f
}

// FollowAddress sets the API to the one that the address or the path names, if they name one. It is for options without
// a given API.
func (o *Options) FollowAddress() {
	if e, _ := o.endpoint(); e.api != "" {
		o.API = e.api
	}
}

// Base returns the address without an endpoint, a query and the API's /v1. The other pages of the server are beside the
// API.
func (o *Options) Base() string {
	e, _ := o.endpoint()
	return e.String()
}

func (o *Options) endpoint() (endpoint, fault.List) {
	e, err := parseURL(o.URL)
	if err != nil {
		return e, fault.At("url", err)
	}
	key := "url"
	if o.Path != "" {
		key = "endpoint_path"
		if err := e.put(o.Path); err != nil {
			return e, fault.At("endpoint_path", err)
		}
	}
	var f fault.List
	if other := e.api; other != "" && apiPaths[o.API] != "" && other != o.API {
		f.Add(key, "ends in %s, which is api %s, and api is %s: want api %[2]s, or an address without it",
			apiPaths[other], other, o.API)
	}
	return e, f
}

// put has requests go to another path than those of the API, behind the path of the address.
func (e *endpoint) put(path string) error {
	path, query, asks := strings.Cut("/"+strings.TrimLeft(path, "/"), "?")
	if err := printable("path", path); err != nil {
		return err
	}
	if asks {
		if err := printable("query", query); err != nil {
			return err
		}
		query = "?" + query
	}
	if strings.Contains(path, "#") {
		return errors.New("want no fragment, got one")
	}
	path = strings.TrimRight(path, "/")
	if e.api != "" && !asks && strings.HasSuffix(e.root+apiPaths[e.api], path) { // both name the same one
		return nil
	}
	if e.api != "" {
		return fmt.Errorf("want the endpoint here or in url, got both: url ends in %s", apiPaths[e.api])
	}
	base := strings.TrimSuffix(e.root, "/v1")
	api, root := endsIn(path)
	if e.api = api; api != "" {
		e.root = base + root
	}
	e.path = base + path + query
	return nil
}

// maxPath bounds a path and a query, in bytes: servers refuse a request line of more than 8 KiB.
const maxPath = 2 << 10

// printable returns why a part of an address cannot stand in a request line.
func printable(part, text string) error {
	if len(text) > maxPath || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("want a %s of at most %d printable characters without a space", part, maxPath)
	}
	return nil
}

// ownRoot matches paths that are the root of an API themselves, so that no /v1 is put behind them: a version, and a
// deployment in Azure, which has the name of its model.
var ownRoot = regexp.MustCompile(`/v\d+[a-z0-9]*$|/deployments/([^/]+)$`)

// otherEndpoint matches paths that end in another endpoint of the API, or in a half of one.
var otherEndpoint = regexp.MustCompile(
	`/v\d+[a-z0-9]*(/(?:chat|responses|messages|embeddings|rerank|generate|images/\w+|audio/\w+))$`)

func parseURL(raw string) (endpoint, error) {
	if raw == "" {
		return endpoint{}, errors.New("want http://HOST:PORT, got none")
	}
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok { // it repeats its input, and with it a password
			err = outer.Err
		}
		if strings.Contains(raw, "@") { // it repeats the part that it could not read, too
			err = errors.New("want an address, got one that is none and has an @ in it")
		}
		return endpoint{}, err
	}
	name, err := asciiHost(u.Hostname())
	if err != nil {
		return endpoint{}, err
	}
	e := endpoint{secure: u.Scheme == "https", query: u.RawQuery}
	e.name, _, _ = strings.Cut(name, "%") // a zone is this machine's affair (RFC 6874)
	if e.host = e.name; strings.Contains(e.name, ":") {
		e.host = "[" + e.name + "]"
	}
	if p := u.Port(); p != "" {
		e.host += ":" + p
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return e, fmt.Errorf("want scheme http or https, got %q", u.Scheme)
	case e.name == "":
		return e, errors.New("want a host, got none")
	case u.User != nil:
		return e, errors.New("want no user or password in it: use http.basic_auth")
	case u.Fragment != "":
		return e, errors.New("want no fragment, got one")
	}
	if err := cmp.Or(printable("path", u.EscapedPath()), printable("query", u.RawQuery)); err != nil {
		return e, err
	}
	e.address = net.JoinHostPort(name, cmp.Or(u.Port(), map[bool]string{true: "443", false: "80"}[e.secure]))
	path := strings.TrimRight(u.EscapedPath(), "/")
	if found := otherEndpoint.FindStringSubmatch(path); found != nil {
		const want = "ends in %s: want an address that ends in /chat/completions, /completions or in front of them"
		return e, fmt.Errorf(want, found[1])
	}
	e.api, e.root = endsIn(path)
	root, list := strings.CutSuffix(e.root, "/models")
	switch {
	case e.api != "":
	case list:
		e.root = root
	case !ownRoot.MatchString(path):
		e.root = path + "/v1"
	}
	return e, nil
}

// asciiHost returns a host as it stands on the wire: a name outside ASCII in the form of RFC 5891.
func asciiHost(name string) (string, error) {
	if !strings.ContainsFunc(name, func(r rune) bool { return r > '~' }) {
		return name, nil
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil {
		return "", fmt.Errorf("want the name of a host, got %q: %w", name, err)
	}
	return ascii, nil
}

// HostPort returns the host and the port of a checked address, each in one spelling. The host is a name in lower case
// or an address.
func HostPort(raw string) (host, port string) {
	e, err := parseURL(raw)
	if err != nil {
		return raw, ""
	}
	host, port, _ = net.SplitHostPort(e.address) // parseURL has joined them
	return strings.ToLower(strings.TrimSuffix(host, ".")), port
}

// generates returns the path and the query of the requests of an API.
func (e endpoint) generates(api API) string { return e.asks(cmp.Or(e.path, e.root+apiPaths[api])) }

// lists returns the path and the query of the list of models.
func (e endpoint) lists() string { return e.asks(e.root + "/models") }

func (e endpoint) asks(path string) string {
	switch {
	case e.query == "":
		return path
	case strings.Contains(path, "?"):
		return path + "&" + e.query
	}
	return path + "?" + e.query
}

// custom reports whether requests go elsewhere than under /v1, as at gateways and in Azure, where there may be no list
// of models.
func (e endpoint) custom() bool { return e.path != "" || !strings.HasSuffix(e.root, "/v1") }

// deployment returns the name of a deployment, if the root is that of one; "": it is not.
func (e endpoint) deployment() string {
	if found := ownRoot.FindStringSubmatch(e.root); found != nil {
		return found[1]
	}
	return ""
}

// list returns the address of the list of models without the query.
func (e endpoint) list() string {
	return e.site() + e.root + "/models"
}

// BaseURL returns the address that clients of OpenAI's call base_url, such as http://vllm:8000/v1. It has no user, password, query
// or fragment, and no single quote: between two of them a shell takes it as it is.
func (c *Client) BaseURL() string { return c.base.baseURL() }

func (e endpoint) baseURL() string { return strings.ReplaceAll(e.site()+e.root, "'", "%27") }

// String returns the address without the query, and without the API's /v1.
func (e endpoint) String() string { return e.site() + strings.TrimSuffix(e.root, "/v1") }

func (e endpoint) site() string {
	if e.secure {
		return "https://" + e.host
	}
	return "http://" + e.host
}
