package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
)

const (
	keyRounds = 5
	keyOrders = 200 // number of concurrent call requests with the same Idempotency-Key
)

// TestSoakKey sends the same call request 200 times at once, with one Idempotency-Key, to a server that is killed
// repeatedly. There must be one call with one attempt that rings once, and every response must contain this call.
func TestSoakKey(t *testing.T) {
	soakOnly(t)
	s, over := newSoak(t, keyRounds)
	kills := 0
	for round := range keyRounds {
		cmd := s.serve()
		s.waitReady()
		var answers sync.Map
		var orders sync.WaitGroup
		for range keyOrders {
			orders.Go(func() { answers.Store(s.orderUntilAccepted(fmt.Sprintf("key-%d", round)), true) })
		}
		for range 3 {
			// Kills the server while it handles requests, and while it starts.
			<-time.After(time.Duration(rand.IntN(700)) * time.Millisecond)
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // the process was killed
			kills++
			cmd = s.serve()
		}
		orders.Wait()
		n := 0
		answers.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Errorf("round %d: %d different responses", round, n)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the process was killed
		kills++
	}
	last := s.serve()
	s.waitReady()
	s.waitDelivered()
	s.end(last)
	over()
	if n := s.count("SELECT count(*) FROM attempts"); n != keyRounds {
		t.Errorf("%d attempts for %d keys", n, keyRounds)
	}
	s.check(kills)
}

// orderUntilAccepted repeats a call request until it is accepted, and returns the response.
func (s *soak) orderUntilAccepted(key string) string {
	for {
		status, text := orderCall(s.t, s.api.URL, s.api.Key, demo.Number, key)
		switch status {
		case http.StatusAccepted:
			return text
		case 0, http.StatusConflict, http.StatusInternalServerError, http.StatusServiceUnavailable:
		default:
			s.t.Errorf("%d %s", status, text)
			return text
		}
		select {
		case <-time.After(time.Duration(50+rand.IntN(100)) * time.Millisecond):
		case <-s.t.Context().Done():
			return "the test ended"
		}
	}
}

// orderCall requests a call with an Idempotency-Key. The status is 0 if no complete response was received.
func orderCall(t testing.TB, url, apiKey, number, key string) (status int, text string) {
	body := strings.NewReader(fmt.Sprintf(`{"agent_id":"demo","to_number":%q}`, number))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/calls/phone", body)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(got)
}
