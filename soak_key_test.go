package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
)

const (
	keyRounds = 5
	keyOrders = 200 // at a time, with one key
)

// TestSoakKey sends the same order 200 times at once, with one Idempotency-Key, to a service that is killed
// repeatedly: one call, one attempt that rings once, and every request returns that call.
func TestSoakKey(t *testing.T) {
	if os.Getenv("PARLEYTEST_SOAK") == "" {
		t.Skip("make soak")
	}
	s, over := newSoak(t, keyRounds)
	kills := 0
	for round := range keyRounds {
		cmd := s.serve()
		s.ready()
		var answers sync.Map
		var orders sync.WaitGroup
		for range keyOrders {
			orders.Go(func() { answers.Store(s.insist(fmt.Sprintf("key-%d", round)), true) })
		}
		for range 3 {
			// Kills during accepted orders, and while the service is down.
			<-time.After(time.Duration(rand.IntN(700)) * time.Millisecond)
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // killed
			kills++
			cmd = s.serve()
		}
		orders.Wait()
		told := 0
		answers.Range(func(any, any) bool { told++; return true })
		if told != 1 {
			t.Errorf("round %d: %d different answers", round, told)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
		kills++
	}
	last := s.serve()
	s.ready()
	s.settle()
	s.end(last)
	over()
	if n := s.count("SELECT count(*) FROM attempts"); n != keyRounds {
		t.Errorf("%d attempts for %d keys", n, keyRounds)
	}
	s.judge(kills)
}

// insist repeats an order until it is accepted and returns the response.
func (s *soak) insist(key string) string {
	body := fmt.Sprintf(`{"agent_id":"demo","to_number":%q}`, demo.Number)
	for {
		status, text, err := s.order(s.t.Context(), body, key)
		switch {
		case err == nil && status == http.StatusAccepted:
			return text
		case err == nil && status != http.StatusConflict && status < http.StatusInternalServerError:
			s.t.Errorf("%d %s", status, text)
			return text
		}
		select {
		case <-time.After(time.Duration(50+rand.IntN(100)) * time.Millisecond):
		case <-s.t.Context().Done():
			return "given up"
		}
	}
}

func (s *soak) order(ctx context.Context, body, key string) (status int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.api.URL+"/v1/calls/phone", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+s.api.Key)
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err // the service is down
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	got, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(got), err
}
