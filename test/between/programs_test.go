//go:build between

package between_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"replayd/test/outside"
)

// A place is where a program runs.
type place struct {
	t       *testing.T
	dir     string
	listen  string   // host:port
	engines []string // host:port
}

// A configuration is a program and the way it is set up.
type configuration struct {
	name    string // in the table
	program string
	args    func(place) []string
}

// usual are the programs as their documents configure them.
var usual = []configuration{
	nginx,
	nginxUnbuffered,
	{"haproxy", "haproxy", haproxy("", "")},
	{"envoy", "envoy", envoy("")},
	varnish,
	squid,
	uvicorn,
	{"hypercorn", "hypercorn", func(p place) []string {
		// With 0 workers it serves in this very process.
		return []string{"gateway:app", "--bind", p.listen, "--workers", "0", "--log-level", "warning"}
	}},
}

var (
	nginx           = configuration{"nginx", "nginx", nginxWith("")}
	nginxUnbuffered = configuration{"nginx, proxy_buffering off", "nginx", nginxWith("proxy_buffering off;")}
	varnish         = configuration{"varnish", "varnishd", func(p place) []string {
		return []string{"-F", "-n", p.dir + "/varnish", "-j", "none", "-a", p.listen, "-b", p.engines[0], "-s", "malloc,64m"}
	}}
	uvicorn = configuration{"uvicorn", "uvicorn", uvicornWith()}
)

// nginxWith returns the stock configuration with a line for the location. The paths are those of the folder, because
// others may belong to the machine's own nginx.
func nginxWith(line string) func(place) []string {
	return func(p place) []string {
		path := outside.Write(p.t, p.dir, "nginx.conf", fmt.Sprintf(`user root;
worker_processes 1;
pid nginx.pid;
error_log stderr notice;
events {}
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server { listen %s; location / { proxy_pass http://%s; %s } }
}
`, p.listen, p.engines[0], line))
		return []string{"-e", "stderr", "-p", p.dir, "-c", path, "-g", "daemon off;"}
	}
}

// haproxy returns a configuration with a line for the backend, and what follows the address of each server; NAME in it
// is the server's name.
func haproxy(line, server string) func(place) []string {
	return func(p place) []string {
		text := fmt.Sprintf(`defaults
  mode http
  option http-no-delay
  timeout connect 5s
  timeout client 5m
  timeout server 5m
frontend users
  bind %s
  default_backend engines
backend engines
  %s
`, p.listen, line)
		for i, e := range p.engines {
			name := string(rune('a' + i))
			text += fmt.Sprintf("  server %s %s %s\n", name, e, strings.ReplaceAll(server, "NAME", name))
		}
		return []string{"-db", "-f", outside.Write(p.t, p.dir, "haproxy.cfg", text)}
	}
}

// envoy returns a static configuration with a network filter before that of HTTP; "": none.
func envoy(filter string) func(place) []string {
	return func(p place) []string {
		const typed = "typed_config: {\"@type\": type.googleapis.com/envoy.extensions"
		text := fmt.Sprintf(`static_resources:
  listeners:
  - address: {socket_address: %s}
    filter_chains:
    - filters:%s
      - name: envoy.filters.network.http_connection_manager
        %s.filters.network.http_connection_manager.v3.HttpConnectionManager,
          stat_prefix: users,
          http_filters: [{name: envoy.filters.http.router, %s.filters.http.router.v3.Router}}],
          route_config: {virtual_hosts: [{name: engines, domains: ["*"], routes: [
            {match: {prefix: /}, route: {cluster: engines, timeout: 0s}}]}]}}
  clusters:
  - name: engines
    load_assignment: {cluster_name: engines, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: %s}}}]}]}
`, socket(p.listen), filter, typed, typed, socket(p.engines[0]))
		path := outside.Write(p.t, p.dir, "envoy.yaml", text)
		return []string{"-c", path, "--disable-hot-restart", "--concurrency", "1", "--log-level", "warn"}
	}
}

// socket writes an address for Envoy.
func socket(address string) string {
	host, port, _ := net.SplitHostPort(address)
	return fmt.Sprintf("{address: %s, port_value: %s}", host, port)
}

// squid is a reverse proxy, which Squid calls an accelerator.
var squid = configuration{"squid", "squid", func(p place) []string {
	host, port, _ := net.SplitHostPort(p.engines[0])
	path := outside.Write(p.t, p.dir, "squid.conf", fmt.Sprintf(`http_port %s accel defaultsite=engine no-vhost
cache_peer %s parent %s 0 no-query originserver
http_access allow all
visible_hostname localhost
access_log none
cache_log /dev/null
pid_filename none
netdb_filename none
pinger_enable off
shutdown_lifetime 0 seconds
`, p.listen, host, port))
	return []string{"-N", "-d", "1", "-f", path}
}}

// uvicornWith returns the arguments for the gateway, and further ones.
func uvicornWith(further ...string) func(place) []string {
	return func(p place) []string {
		host, port, _ := net.SplitHostPort(p.listen)
		return append([]string{"gateway:app", "--host", host, "--port", port, "--log-level", "warning"}, further...)
	}
}
