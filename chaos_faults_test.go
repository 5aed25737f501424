package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// note prints what happens, with the time since the start.
func (c *chaos) note(format string, args ...any) {
	fmt.Printf("%8s  %s\n", time.Since(c.began).Round(time.Second), fmt.Sprintf(format, args...))
}

// fault records a fault that has ended. n is the node that it affected, or nil.
func (c *chaos) fault(name string, n *chaosNode, from time.Time) {
	f := chaosFault{name: name, from: from, to: time.Now()}
	if n != nil {
		f.node, f.port = n.name, n.sip
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
}

// outage causes a fault for a random time of at least a second and less than longest, and records it. n is the node that
// it affects, or nil.
func (c *chaos) outage(r *rand.Rand, name string, n *chaosNode, longest time.Duration, begin, end func()) {
	from, last := time.Now(), between(r, time.Second, longest)
	on := ""
	if n != nil {
		on = " on " + n.name
	}
	c.note("%s%s for %v", name, on, last.Round(time.Second))
	begin()
	<-time.After(last)
	end()
	c.fault(name, n, from)
}

// awaitReady waits until all nodes are ready.
func (c *chaos) awaitReady() {
	began := time.Now()
	for i := range c.nodes {
		for n := c.node(i); !n.ready(); {
			if time.Since(began) > 3*time.Minute {
				c.t.Errorf("%s is not ready after 3 min", n.name)
				return
			}
			<-time.After(100 * time.Millisecond)
		}
	}
}

// between returns a random time of at least from, and less than to.
func between(r *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(r.Int64N(int64(to-from)))
}

// faultsInside causes faults of nodes and of the database, one after another, until ctx ends.
func (c *chaos) faultsInside(ctx context.Context) {
	r := rand.New(rand.NewPCG(c.seed, 1))
	faults := []func(r *rand.Rand){
		c.kill, c.kill, c.stopNode, c.stopNode, c.loseNode, c.restartDatabase, c.failOver, c.hang, c.readOnly, c.fillDisk, c.rollingRestart,
	}
	var order []int
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(between(r, 8*time.Second, 15*time.Second)):
		}
		if len(order) == 0 { // each fault once before any is repeated
			order = r.Perm(len(faults))
		}
		faults[order[0]](r)
		order = order[1:]
		c.awaitReady()
	}
}

// faultsOutside causes faults of the bucket, the webhook receiver and the providers, one after another, until ctx ends.
func (c *chaos) faultsOutside(ctx context.Context) {
	r := rand.New(rand.NewPCG(c.seed, 2))
	faults := []struct {
		name       string
		begin, end func()
	}{
		{"bucket down", func() { c.bucket.Break(true) }, func() { c.bucket.Break(false) }},
		{"webhook receiver down", func() { c.receiver.down.Store(true) }, func() { c.receiver.down.Store(false) }},
		{providersDown, c.providers.stop, c.providers.start},
	}
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(between(r, 30*time.Second, 60*time.Second)):
		}
		f := faults[n%len(faults)]
		c.outside.Lock()
		c.outage(r, f.name, nil, 30*time.Second, f.begin, f.end)
		c.outside.Unlock()
	}
}

// Names of faults that the oracle treats in a special way.
const (
	providersDown = "providers down"
	nodeLost      = "node lost"
	diskFull      = "disk full"
)

// victim returns a random node.
func (c *chaos) victim(r *rand.Rand) (int, *chaosNode) {
	i := r.IntN(len(c.nodes))
	return i, c.node(i)
}

// kill kills a node, and starts it again on its disk.
func (c *chaos) kill(r *rand.Rand) {
	_, n := c.victim(r)
	c.outage(r, "node killed", n, 30*time.Second, func() { n.end(syscall.SIGKILL) }, func() {
		n.start()
		c.awaitReady()
	})
}

// stopNode stops the process of a node for a time that may be longer than its lease.
func (c *chaos) stopNode(r *rand.Rand) {
	_, n := c.victim(r)
	c.outage(r, "node stopped", n, 40*time.Second, func() { _ = n.cmd.Process.Signal(syscall.SIGSTOP) }, func() {
		_ = n.cmd.Process.Signal(syscall.SIGCONT)
		c.awaitReady()
	})
}

// loseNode kills a node and removes its disk. Another node with another name replaces it.
func (c *chaos) loseNode(r *rand.Rand) {
	i, n := c.victim(r)
	c.outside.Lock() // the bucket must have the recordings
	<-time.After(10 * time.Second)
	defer c.outside.Unlock()
	from := time.Now()
	c.note("lose %s with its disk", n.name)
	n.end(syscall.SIGKILL)
	if err := syscall.Unmount(n.dir, syscall.MNT_DETACH); err != nil {
		c.t.Error(err)
	}
	<-time.After(between(r, 5*time.Second, 20*time.Second))
	other := c.newNode(i, n.name+"-new")
	c.mu.Lock()
	c.nodes[i] = other
	c.mu.Unlock()
	other.start()
	c.fault(nodeLost, n, from)
	<-time.After(70 * time.Second) // others take the recordings over
}

// restartDatabase kills the primary database and starts it again.
func (c *chaos) restartDatabase(r *rand.Rand) {
	c.outage(r, "database restart", nil, 20*time.Second, func() { c.pair.Kill(c.primary) }, func() { c.pair.Start(c.primary) })
}

// failOver kills the primary database and promotes its standby. Later the old primary follows as the standby.
func (c *chaos) failOver(r *rand.Rand) {
	from := time.Now()
	c.note("fail over to database %d", 1-c.primary)
	c.pair.Kill(c.primary)
	<-time.After(between(r, time.Second, 10*time.Second))
	c.primary = 1 - c.primary
	c.pair.Promote(c.primary)
	c.pair.Synchronize(c.primary, false)
	c.pooler.Point(c.primary)
	c.fault("database failover", nil, from)
	<-time.After(between(r, 5*time.Second, 20*time.Second))
	c.pair.Follow(1 - c.primary)
	c.pair.Synchronize(c.primary, true)
}

// hang stops PgBouncer, so that queries get no response.
func (c *chaos) hang(r *rand.Rand) {
	c.outage(r, "database hangs", nil, 30*time.Second, func() { c.pooler.Hang(true) }, func() { c.pooler.Hang(false) })
}

func (c *chaos) readOnly(r *rand.Rand) {
	c.outage(r, "database read-only", nil, 30*time.Second, func() { c.pair.ReadOnly(c.primary, true) }, func() { c.pair.ReadOnly(c.primary, false) })
}

// fillDisk fills the disk of a node.
func (c *chaos) fillDisk(r *rand.Rand) {
	_, n := c.victim(r)
	ballast := filepath.Join(n.dir, "ballast")
	c.outage(r, diskFull, n, 30*time.Second, func() {
		f, err := os.Create(ballast)
		for err == nil { // until the disk is full
			_, err = f.Write(make([]byte, 64<<10))
		}
		_ = f.Close()
	}, func() {
		if err := os.Remove(ballast); err != nil {
			c.t.Error(err)
		}
	})
}

// rollingRestart restarts the nodes in turn, each after its calls have ended.
func (c *chaos) rollingRestart(*rand.Rand) {
	from := time.Now()
	c.note("restart the nodes in turn")
	for i := range c.nodes {
		n := c.node(i)
		n.end(syscall.SIGTERM)
		n.start()
		c.awaitReady()
	}
	c.fault("rolling restart", nil, from)
}
