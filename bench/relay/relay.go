package relay

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxFlows    = 1024
	maxDatagram = 1 << 16
	buffered    = 1 << 20 // bytes of the socket buffers, so that the kernel drops nothing
)

// A Relay forwards datagrams between clients and one target. Each client has its own flows and,
// as behind a NAT, its own port toward the target. Set the exported fields before Start.
type Relay struct {
	Target      netip.AddrPort
	There, Back Path // from the clients to the target, and back
	Seed        uint64
	// Tap is called for each datagram, in the goroutine that reads its direction; nil disables
	// it. Passing.Data is valid during the call only.
	Tap func(Passing)

	front *net.UDPConn
	queue queue
	cut   atomic.Bool
	work  sync.WaitGroup
	there counter
	back  counter

	mu     sync.Mutex
	closed bool
	flows  map[netip.AddrPort]*client
}

// A Passing is a datagram and its delivery times.
type Passing struct {
	There bool // the datagram goes to the target
	Data  []byte
	In    time.Time
	Out   []time.Time // delivery times: none if it was lost, two if it was duplicated
}

// A client is the address of one client, with its flows.
type client struct {
	addr        netip.AddrPort
	socket      *net.UDPConn // socket towards the target
	began       time.Time
	there, back *Flow
	shut        [2]gate // silence suppression of both directions: to the target, and back
}

// Count counts the datagrams of one direction.
type Count struct {
	In        int64 // datagrams received
	Out       int64 // datagrams sent, including duplicates
	Lost      int64
	Duplicate int64 // how many of Out are duplicates
}

// Stats counts the datagrams of both directions.
type Stats struct {
	There, Back Count
	Flows       int
}

type counter struct{ in, out, lost, duplicate atomic.Int64 }

func (c *counter) count() Count {
	return Count{In: c.in.Load(), Out: c.out.Load(), Lost: c.lost.Load(), Duplicate: c.duplicate.Load()}
}

// Start listens on a port of 127.0.0.1.
func (r *Relay) Start() error {
	if err := errors.Join(r.There.Check(), r.Back.Check()); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	front, err := open()
	if err != nil {
		return err
	}
	r.front, r.flows = front, map[netip.AddrPort]*client{}
	r.queue.wake, r.queue.done = make(chan struct{}, 1), make(chan struct{})
	r.work.Go(r.queue.run)
	r.work.Go(r.serve)
	return nil
}

// Between starts a relay between the endpoints a and b. a must send to toB, and b to toA. Each
// sees the relay as the other endpoint. there is the direction from a to b.
func Between(a, b netip.AddrPort, there, back Path, seed uint64) (r *Relay, toB, toA netip.AddrPort, err error) {
	r = &Relay{Target: b, There: there, Back: back, Seed: seed}
	if toB, toA, err = r.Join(a); err != nil {
		return nil, toB, toA, err
	}
	return r, toB, toA, nil
}

// Join starts the relay between a and r.Target. a must send to toB, and the target to toA.
func (r *Relay) Join(a netip.AddrPort) (toB, toA netip.AddrPort, err error) {
	if err = r.Start(); err != nil {
		return toB, toA, err
	}
	c, err := r.client(a)
	if err != nil {
		return toB, toA, errors.Join(err, r.Close())
	}
	return r.Addr(), address(c.socket), nil
}

// Addr returns the address for clients.
func (r *Relay) Addr() netip.AddrPort { return address(r.front) }

// Cut drops new datagrams of both directions while on is true. Datagrams in flight still arrive.
func (r *Relay) Cut(on bool) { r.cut.Store(on) }

// Stats returns the counts so far.
func (r *Relay) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{There: r.there.count(), Back: r.back.count(), Flows: len(r.flows)}
}

// Close stops the relay and drops datagrams in flight. It may be called twice.
func (r *Relay) Close() error {
	r.mu.Lock()
	var err error
	if !r.closed && r.front != nil {
		r.closed = true
		close(r.queue.done)
		err = r.front.Close()
		for _, c := range r.flows {
			err = errors.Join(err, c.socket.Close())
		}
	}
	r.mu.Unlock()
	r.work.Wait()
	return err
}

// serve reads from clients.
func (r *Relay) serve() {
	b := make([]byte, maxDatagram)
	for {
		n, from, err := r.front.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the error is the ICMP reply to an earlier datagram
		}
		c, err := r.client(from)
		if err != nil {
			r.there.in.Add(1)
			r.there.lost.Add(1)
			continue
		}
		r.pass(way{c.there, &r.there, &c.shut[0], true}, b[:n], datagram{from: c.socket, to: r.Target}, c.began)
	}
}

// answer reads from the target for one client.
func (r *Relay) answer(c *client) {
	b := make([]byte, maxDatagram)
	for {
		n, from, err := c.socket.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || from != r.Target {
			continue // datagrams of other senders are ignored
		}
		r.pass(way{c.back, &r.back, &c.shut[1], false}, b[:n], datagram{from: r.front, to: c.addr}, c.began)
	}
}

// A way is the state of one direction of a client.
type way struct {
	flow  *Flow
	count *counter
	gate  *gate
	there bool
}

// pass decides when to deliver datagram b, and queues it. Only the goroutine that reads the
// direction calls pass.
func (r *Relay) pass(w way, b []byte, d datagram, began time.Time) {
	now := time.Now()
	var space [2]time.Duration
	if w.flow.path.DTX && w.gate.drops(b) {
		return // DTX dropped the datagram
	}
	c := w.count
	c.in.Add(1)
	outs := w.flow.Decide(space[:0], now.Sub(began), len(b))
	if r.cut.Load() {
		outs = nil
	}
	if r.Tap != nil {
		var at []time.Time
		for _, d := range outs {
			at = append(at, began.Add(d))
		}
		r.Tap(Passing{w.there, b, now, at})
	}
	if len(outs) == 0 {
		c.lost.Add(1)
		return
	}
	d.data = bytes.Clone(b)
	for i, at := range outs {
		d.due = began.Add(at)
		switch ok := r.queue.add(d); {
		case ok:
			c.out.Add(1)
			c.duplicate.Add(int64(i))
		case i == 0:
			c.lost.Add(1)
		}
	}
}

// client returns the client with an address, creating it if necessary.
func (r *Relay) client(addr netip.AddrPort) (*client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.flows[addr]; c != nil {
		return c, nil
	}
	if r.closed || len(r.flows) >= maxFlows {
		return nil, errors.New("relay: no more flows")
	}
	socket, err := open()
	if err != nil {
		return nil, err
	}
	n := uint64(len(r.flows)) * 2
	c := &client{
		addr: addr, socket: socket, began: time.Now(), there: NewFlow(&r.There, r.Seed+n), back: NewFlow(&r.Back, r.Seed+n+1),
	}
	r.flows[addr] = c
	r.work.Go(func() { r.answer(c) })
	return c, nil
}

func open() (*net.UDPConn, error) {
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	if err := errors.Join(c.SetReadBuffer(buffered), c.SetWriteBuffer(buffered)); err != nil {
		return nil, errors.Join(fmt.Errorf("relay: %w", err), c.Close())
	}
	return c, nil
}

func address(c *net.UDPConn) netip.AddrPort {
	if a, ok := c.LocalAddr().(*net.UDPAddr); ok {
		return netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), a.AddrPort().Port())
	}
	return netip.AddrPort{}
}
