package providers

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// checker is a Checker for a single provider.
type checker struct {
	down          atomic.Bool
	checked, full atomic.Int32
}

func (c *checker) Usable(pipeline.Engines) error {
	if c.down.Load() {
		return errors.New("down")
	}
	return nil
}

func (c *checker) Verified(pipeline.Engines) bool { return c.full.Load() > 0 }

func (c *checker) Check(_ context.Context, _ pipeline.Engines, all bool) {
	c.checked.Add(1)
	if all {
		c.full.Add(1)
	}
}

// TestMonitor checks that providers are tested while calls wait, and for one minute longer. An agent must be
// unavailable until its providers are usable again.
func TestMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &checker{}
		reads := 0
		m := &Monitor{Checker: c, Read: func(_ context.Context, a Agent) (e pipeline.Engines, wrong, err error) {
			if reads++; a.ID == "typo" {
				wrong = errors.New("no such provider")
			}
			if a.ID == "unreadable" {
				err = errors.New("the database is unavailable")
			}
			return e, wrong, err
		}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go m.Run(ctx)
		checkReady := func(id string, want bool) {
			t.Helper()
			if got, err := m.IsReady(ctx, id, 1); got != want || err != nil {
				t.Errorf("%s: %v, %v", id, got, err)
			}
		}
		checkReady("a", true)
		checkReady("a", true)
		checkReady("typo", false)
		m.Forget()
		checkReady("typo", false)
		if _, err := m.IsReady(ctx, "unreadable", 1); err == nil || reads != 4 {
			t.Errorf("%v after %d reads", err, reads)
		}
		<-time.After(10500 * time.Millisecond)
		if c.checked.Load() != 0 || len(m.UnavailableAgents()) != 0 {
			t.Errorf("%d checks, unavailable %v, while the provider works", c.checked.Load(), m.UnavailableAgents())
		}
		c.down.Store(true)
		checkReady("a", false)
		if got := m.UnavailableAgents(); !slices.Equal(got, []string{"a:1"}) {
			t.Errorf("unavailable: %v", got)
		}
		if !m.MustWait(ctx, Agent{"b", 2}, pipeline.Engines{}) || len(m.UnavailableAgents()) != 2 {
			t.Errorf("unavailable: %v", m.UnavailableAgents())
		}
		<-time.After(3 * time.Second)
		if n := c.checked.Load(); n != 6 || c.full.Load() != 0 {
			t.Errorf("%d checks of two agents in 3 s", n)
		}
		c.down.Store(false)
		if len(m.UnavailableAgents()) != 0 {
			t.Errorf("unavailable: %v", m.UnavailableAgents())
		}
		checkReady("a", true)
		<-time.After(2 * time.Minute) // until the demand has expired
		c.checked.Store(0)
		if ok, err := m.IsVerified(ctx, "a", 1); ok || err != nil {
			t.Errorf("verified: %v, %v", ok, err)
		}
		<-time.After(1500 * time.Millisecond)
		if ok, err := m.IsVerified(ctx, "a", 1); !ok || err != nil || c.full.Load() == 0 {
			t.Errorf("verified: %v, %v", ok, err)
		}
	})
}
