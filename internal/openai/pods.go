package openai

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"replayd/internal/fault"
	"replayd/internal/openai/internal/wire"
)

// MaxPods is the largest number of pods of a target.
const MaxPods = 64

// dnsPods begins a DNS name that stands for all its addresses, as in Thanos.
const dnsPods = "dns+"

// A pod is a server of a target with connections of its own.
type pod struct {
	address string // host:port to dial
	pool    wire.Pool
}

// pods are the pods of a target at one time, in the order of their numbers. It never changes.
type pods struct {
	all []*pod
	err error // why the latest look-up of the name has failed; nil: it has not
}

// IsDNSName reports whether a text is a DNS name.
func IsDNSName(s string) bool { return dnsName.MatchString(s) }

var dnsName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9.])?$`)

// LookupName returns the DNS name of which each address is a pod, and the pods' port. No other name is looked up.
func (o *Options) LookupName() (name, port string, ok bool) {
	if len(o.Pods) != 1 {
		return "", "", false
	}
	at, ok := strings.CutPrefix(o.Pods[0], dnsPods)
	if !ok {
		return "", "", false
	}
	name, port, err := net.SplitHostPort(at)
	number, _ := strconv.ParseUint(port, 10, 16)
	return name, port, err == nil && number > 0
}

// podAddresses returns host:port of each pod, in the order given; none for a name that is to be looked up. No fault
// shows a password or a query.
func (o *Options) podAddresses() (addresses []string, f fault.List) {
	f.If(len(o.Pods) > MaxPods, "pods", "want at most %d pods, got %d", MaxPods, len(o.Pods))
	if len(f) > 0 {
		return nil, f
	}
	base, err := parseURL(o.URL)
	if err != nil {
		return nil, nil // the fault of url
	}
	for i, given := range o.Pods {
		key := fmt.Sprintf("pods[%d]", i)
		if strings.HasPrefix(given, dnsPods) {
			name, _, ok := o.LookupName()
			_, err := netip.ParseAddr(name)
			f.If(!ok || err == nil || !IsDNSName(name), key,
				"want dns+NAME:PORT with a DNS name, and no other pod beside it")
			continue
		}
		e, err := parsePod(given, base)
		switch {
		case err != nil:
			f.Add(key, "%v", err)
		case slices.Contains(addresses, e):
			f.Add(key, "want each pod once, got %s again", e)
		default:
			addresses = append(addresses, e)
		}
	}
	return addresses, f
}

// parsePod returns host:port of a pod. It has the scheme of url, and its path, or none.
func parsePod(given string, base endpoint) (string, error) {
	if !strings.Contains(given, "://") {
		given = map[bool]string{true: "https://", false: "http://"}[base.secure] + given
	}
	e, err := parseURL(given)
	if err != nil {
		return "", err
	}
	u, _ := url.Parse(given) // parseURL has parsed it
	bare := strings.Trim(u.Path, "/") == "" && u.RawQuery == ""
	if e.secure != base.secure || !bare && (e.root != base.root || e.api != base.api || e.query != base.query) {
		return "", errors.New("want host:port, or an address with the scheme and the path of url")
	}
	return strings.ToLower(e.address), nil
}

// Pods returns the addresses that requests go to now, host:port each: the first is pod 1. A target without pods has
// the address of its url.
func (c *Client) Pods() []string {
	now := c.pods.Load().all
	addresses := make([]string, len(now))
	for i, p := range now {
		addresses[i] = p.address
	}
	return addresses
}

// Addresses returns the address of url and those of Pods.
func (c *Client) Addresses() []string { return append(c.Pods(), c.base.address) }

// NumPods is the number of Pods.
func (c *Client) NumPods() int { return len(c.pods.Load().all) }

// Named reports whether the pods are the addresses of a DNS name.
func (c *Client) Named() bool {
	_, _, named := c.target.LookupName()
	return named
}

// LookupErrors is the number of look-ups that have failed.
func (c *Client) LookupErrors() int64 { return c.failed.Load() }

// lookupTime bounds a look-up of the name.
const lookupTime = 2 * time.Second

// Lookup looks the name of the pods up, if they have one, and uses the addresses that it has now, at most MaxPods,
// sorted. It reports whether there are others than before. After an error the pods stay as they were; with more
// addresses than MaxPods there are both. Connections to pods that stay are kept, and requests to pods that are gone go
// on.
func (c *Client) Lookup(ctx context.Context) (changed bool, err error) {
	name, port, named := c.target.LookupName()
	if !named {
		return false, nil
	}
	c.looking.Lock()
	defer c.looking.Unlock()
	bounded, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	found, err := c.resolve(bounded, name)
	if err == nil && len(found) == 0 {
		err = errors.New("it has no address")
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	before := c.pods.Load()
	if err != nil {
		err = fmt.Errorf("look-up of %s: %w", name, err)
		c.failed.Add(1)
		c.pods.Store(&pods{before.all, err})
		return false, err
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	slices.SortFunc(found, netip.Addr.Compare)
	if found = slices.Compact(found); len(found) > MaxPods {
		err = fmt.Errorf("%s has %d addresses, and only the first %d get requests", name, len(found), MaxPods)
		found = found[:MaxPods]
	}
	addresses := make([]string, len(found))
	for i, a := range found {
		addresses[i] = net.JoinHostPort(a.String(), port)
	}
	if slices.Equal(addresses, c.Pods()) {
		c.pods.Store(&pods{all: before.all})
		return false, err
	}
	c.usePods(addresses)
	return true, err
}

func (c *Client) usePods(addresses []string) {
	var kept []*pod
	if before := c.pods.Load(); before != nil {
		kept = before.all
	}
	next := &pods{}
	for _, address := range addresses {
		i := slices.IndexFunc(kept, func(p *pod) bool { return p.address == address })
		if i < 0 {
			next.all = append(next.all, &pod{address: address})
		} else {
			next.all = append(next.all, kept[i])
		}
	}
	c.pods.Store(next)
	for _, p := range kept {
		if !slices.Contains(next.all, p) {
			p.pool.Close()
		}
	}
}

// PodOf returns the index in Pods of the pod at a place: places that follow each other have pods that do. Without any
// pod it is -1.
func (c *Client) PodOf(place uint64) int { return c.pods.Load().of(place) }

func (p *pods) of(place uint64) int {
	if len(p.all) == 0 {
		return -1
	}
	return int(place % uint64(len(p.all)))
}

// Aim has the next message of the lane go to the pod at a place, and returns its number, from 1; 0: no pod is known. It
// comes before Begin.
func (l *Lane) Aim(place uint64) (number uint16) {
	now := l.client.pods.Load()
	i := now.of(place)
	if i < 0 {
		l.pod = nil
		return 0
	}
	if l.pod != now.all[i] {
		l.drop()
		l.pod = now.all[i]
	}
	return uint16(i + 1)
}

// rest leaves the lane's connection to the next request, of this lane or another.
func (l *Lane) rest() {
	if l.client.target.Connections == ConnectionsEach {
		l.drop()
		return
	}
	l.pod.pool.Put(l.conn)
	l.conn = nil
}
