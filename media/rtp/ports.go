package rtp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ErrNoPort means that each port of the range is in use, is resting after a call (portRest), or cannot be bound.
var ErrNoPort = errors.New("no free media port")

// portRest is how long a port stays unused after a call, so that late packets of the call do not reach the next call.
const portRest = 5 * time.Second

// bindTries is the maximum number of ports tried, if other processes use some of them.
const bindTries = 64

// Ports is a pool of even UDP ports. The odd port above each is for RTCP.
type Ports struct {
	first, count int // first is even; if count is 0, the kernel chooses ports

	mu    sync.Mutex
	next  int               // index to try next; ports are used in turn, so that each rests as long as possible
	used  map[int]time.Time // for each port: zero while in use, otherwise the end of its rest
	inUse int
}

// ParsePorts parses a range such as "20000-29999", which includes both ends. With "0-0" the kernel chooses the ports.
func ParsePorts(text string) (*Ports, error) {
	from, to, ok := strings.Cut(text, "-")
	first, err := strconv.ParseUint(from, 10, 16)
	last, err2 := strconv.ParseUint(to, 10, 16)
	if !ok || err != nil || err2 != nil || first > last {
		return nil, fmt.Errorf("media ports %q: want FIRST-LAST", text)
	}
	p := &Ports{used: map[int]time.Time{}}
	if last == 0 {
		return p, nil
	}
	p.first = int(first+1) &^ 1
	p.count = (int(last) - p.first + 1) / 2 // the odd port above each must be in the range too
	if first == 0 || p.count < 1 {
		return nil, fmt.Errorf("media ports %q: the range has no even port followed by its odd one", text)
	}
	p.next = rand.IntN(p.count) //nolint:gosec // not a secret
	return p, nil
}

// InUse returns the number of bound ports.
func (p *Ports) InUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inUse
}

func (p *Ports) take(ip netip.Addr, now time.Time) (pair, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count == 0 {
		return p.ephemeral(ip)
	}
	var failed error
	tries := 0
	for i := 0; i < p.count && tries < bindTries; i++ {
		n := (p.next + i) % p.count
		port := p.first + 2*n
		if until, used := p.used[port]; used && (until.IsZero() || now.Before(until)) {
			continue
		}
		tries++
		s, err := listenPair(netip.AddrPortFrom(ip, uint16(port))) //nolint:gosec // within 16 bits
		if err != nil {
			failed = err
			continue
		}
		p.next = n + 1
		p.used[port] = time.Time{}
		p.inUse++
		return s, nil
	}
	if failed != nil {
		return pair{}, fmt.Errorf("%w: %w", ErrNoPort, failed)
	}
	return pair{}, ErrNoPort
}

// pair is an RTP socket and the RTCP socket one port above.
type pair struct {
	audio, reports *udpSocket
}

func listenPair(addr netip.AddrPort) (pair, error) {
	audio, err := listenUDP(addr)
	if err != nil {
		return pair{}, err
	}
	above := netip.AddrPortFrom(addr.Addr(), audio.Local().Port()+1)
	reports, err := listenUDP(above)
	if err != nil {
		audio.Close()
		return pair{}, err
	}
	return pair{audio, reports}, nil
}

func (p pair) close() {
	p.audio.Close()
	p.reports.Close()
}

// ephemeral asks the kernel for ports until it gets an even one whose next port is free.
func (p *Ports) ephemeral(ip netip.Addr) (pair, error) {
	var rejected []*udpSocket // kept open, because the kernel might offer these ports again
	defer func() {
		for _, s := range rejected {
			s.Close()
		}
	}()
	for range bindTries {
		s, err := listenUDP(netip.AddrPortFrom(ip, 0))
		if err != nil {
			return pair{}, fmt.Errorf("%w: %w", ErrNoPort, err)
		}
		if s.Local().Port()%2 == 0 {
			above, err := listenUDP(netip.AddrPortFrom(ip, s.Local().Port()+1))
			if err == nil {
				p.inUse++
				return pair{s, above}, nil
			}
		}
		rejected = append(rejected, s)
	}
	return pair{}, ErrNoPort
}

func (p *Ports) release(port uint16, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inUse--
	if p.count > 0 {
		p.used[int(port)] = now.Add(portRest)
	}
}
