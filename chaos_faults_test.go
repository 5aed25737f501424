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

// faultsOutside causes faults of what the nodes use, one after another, until ctx ends.
func (c *chaos) faultsOutside(ctx context.Context) {
	r := rand.New(rand.NewPCG(c.seed, 2))
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(between(r, 30*time.Second, 60*time.Second)):
		}
		c.outside.Lock()
		from, last := time.Now(), between(r, 10*time.Second, 30*time.Second)
		name := []string{"bucket down", "webhook receiver down", "providers down"}[n%3]
		c.note("%s for %v", name, last.Round(time.Second))
		switch n % 3 {
		case 0:
			c.bucket.Break(true)
			<-time.After(last)
			c.bucket.Break(false)
		case 1:
			c.receiver.down.Store(true)
			<-time.After(last)
			c.receiver.down.Store(false)
		case 2:
			c.providers.stop()
			<-time.After(last)
			c.providers.start()
		}
		c.fault(name, nil, from)
		c.outside.Unlock()
	}
}

// victim returns a random node.
func (c *chaos) victim(r *rand.Rand) (int, *chaosNode) {
	i := r.IntN(len(c.nodes))
	return i, c.node(i)
}

// kill kills a node, and starts it again on its disk.
func (c *chaos) kill(r *rand.Rand) {
	_, n := c.victim(r)
	from, down := time.Now(), between(r, time.Second, 30*time.Second)
	c.note("kill %s, start it after %v", n.name, down.Round(time.Second))
	n.end(syscall.SIGKILL)
	<-time.After(down)
	n.start()
	c.awaitReady()
	c.fault("node killed", n, from)
}

// stopNode stops the process of a node for a time that may be longer than its lease.
func (c *chaos) stopNode(r *rand.Rand) {
	_, n := c.victim(r)
	from, down := time.Now(), between(r, 2*time.Second, 40*time.Second)
	c.note("stop %s for %v (SIGSTOP)", n.name, down.Round(time.Second))
	_ = n.cmd.Process.Signal(syscall.SIGSTOP)
	<-time.After(down)
	_ = n.cmd.Process.Signal(syscall.SIGCONT)
	c.awaitReady()
	c.fault("node stopped", n, from)
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
	c.fault("node lost", n, from)
	<-time.After(70 * time.Second) // others take the recordings over
}

// restartDatabase kills the primary database and starts it again.
func (c *chaos) restartDatabase(r *rand.Rand) {
	from, down := time.Now(), between(r, time.Second, 20*time.Second)
	c.note("restart the database after %v", down.Round(time.Second))
	c.pair.Kill(c.primary)
	<-time.After(down)
	c.pair.Start(c.primary)
	c.fault("database restart", nil, from)
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
	from, down := time.Now(), between(r, 3*time.Second, 30*time.Second)
	c.note("the database hangs for %v", down.Round(time.Second))
	c.pooler.Hang(true)
	<-time.After(down)
	c.pooler.Hang(false)
	c.fault("database hangs", nil, from)
}

func (c *chaos) readOnly(r *rand.Rand) {
	from, down := time.Now(), between(r, 3*time.Second, 30*time.Second)
	c.note("the database is read-only for %v", down.Round(time.Second))
	c.pair.ReadOnly(c.primary, true)
	<-time.After(down)
	c.pair.ReadOnly(c.primary, false)
	c.fault("database read-only", nil, from)
}

// fillDisk fills the disk of a node.
func (c *chaos) fillDisk(r *rand.Rand) {
	_, n := c.victim(r)
	from, down := time.Now(), between(r, 5*time.Second, 30*time.Second)
	c.note("the disk of %s is full for %v", n.name, down.Round(time.Second))
	ballast := filepath.Join(n.dir, "ballast")
	f, err := os.Create(ballast)
	for err == nil { // until the disk is full
		_, err = f.Write(make([]byte, 64<<10))
	}
	_ = f.Close()
	<-time.After(down)
	if err = os.Remove(ballast); err != nil {
		c.t.Error(err)
	}
	c.fault("disk full", n, from)
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
