package security_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"replayd/test/outside"
)

// Visitors that request page after page and never read an answer do not block others. Each visitor comes back at once
// when its connection is cut. One from the scraper's own address shares its slots: on a busy machine a scrape that was not
// written for a quarter of a second is then cut in place of a visitor. So the visitors have other addresses, where this
// host has others.
func TestVisitorsThatNeverRead(t *testing.T) {
	workloads := outside.Knob(t, "SECURITY_WORKLOADS", 4, strconv.Atoi)
	visitors := outside.Knob(t, "SECURITY_VISITORS", 16, strconv.Atoi)
	s := outside.NewStageAlone(t, binary)
	text := "targets: [{name: t, url: \"http://127.0.0.1:1\", metrics: {interval: 0s}}]\nworkloads:\n"
	for i := range workloads { // with no due requests
		text += fmt.Sprintf("- {name: w%d, synthetic: {input_tokens: 9, output_tokens: 9, requests: 9}, arrival: constant, rate: 1, repeat: {mode: cron, cron: \"0 3 29 2 *\"}}\n", i)
	}
	s.Write(t, text)
	daemon, _ := s.Serve(t)
	for _, path := range []string{"/metrics", "/live/events", "/config"} {
		for name, addresses := range map[string]int{"one address": 1, "many addresses": visitors} {
			if runtime.GOOS != "linux" && addresses > 1 {
				continue // elsewhere only 127.0.0.1 is an address of this host
			}
			t.Run(strings.Trim(path, "/")+" from "+name, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				var all sync.WaitGroup
				defer all.Wait()
				defer end()
				for i := range visitors {
					all.Go(func() { pester(ctx, s.Listen, visitor(i%addresses), path) })
				}
				const asked = 30
				answered, slowest := 0, time.Duration(0)
				tick := time.NewTicker(100 * time.Millisecond)
				defer tick.Stop()
				for i := range asked {
					<-tick.C
					begin := time.Now()
					err := scrape(ctx, s.URL())
					slowest = max(slowest, time.Since(begin))
					if err == nil {
						answered++
					} else if i-answered < 3 {
						t.Log(err)
					}
				}
				t.Logf("%d workloads, %d visitors: %d of %d scrapes answered, the slowest in %v", workloads, visitors, answered, asked, slowest.Round(time.Millisecond))
				if answered != asked {
					t.Errorf("want all %d scrapes answered, got %d", asked, answered)
				}
			})
		}
	}
	if _, err := os.Stat("/proc/self/status"); err == nil {
		t.Logf("peak RSS: %.0f MiB", peak(t, daemon.Cmd.Process.Pid))
	}
	daemon.Term(t)
}

// visitor returns the address of a visitor, by its number from 0.
func visitor(n int) net.IP {
	if runtime.GOOS != "linux" {
		return net.IPv4(127, 0, 0, 1)
	}
	return net.IPv4(127, 0, 1, byte(1+n))
}

// pester requests a page again and again from an address of this host, and reads nothing.
func pester(ctx context.Context, server string, from net.IP, path string) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		c, err := d.DialContext(ctx, "tcp", server)
		for err == nil && ctx.Err() == nil {
			_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)) // a TCP connection has one
			_, err = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: here\r\n\r\n")
			if errors.Is(err, os.ErrDeadlineExceeded) { // the server has not read the earlier requests, so the connection is open
				err = nil
			}
			<-tick.C
		}
		if c != nil {
			_ = c.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// scrape scrapes as Prometheus does, with a longer timeout: on a busy machine only a scrape without an answer fails.
func scrape(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, outside.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return err
}
