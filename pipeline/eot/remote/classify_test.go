package remote

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/parley-voice/parley/pipeline/eot"
)

// through serves requests in the process, so that the clock of a synctest bubble applies.
type through struct{ http.Handler }

func (h through) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() { defer close(done); h.ServeHTTP(w, r) }()
	<-done
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func ask(t *testing.T, h http.Handler) (eot.Guess, error) {
	t.Helper()
	c := New("http://classifier/", "s3cret", 0, &http.Client{Transport: through{h}})
	return c.Guess(t.Context(), eot.Pause{Text: "i want the", Asked: "What?", Language: "en", Prosody: eot.Prosody{Fall: 1, Trail: 2, Known: true}})
}

func says(status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

func TestGuess(t *testing.T) {
	var asked Question
	g, err := ask(t, Fake{P: 0.83, OnQuestion: func(q Question) { asked = q }})
	if err != nil || g.P != 0.83 || g.Reason != "classifier" {
		t.Errorf("%+v, %v", g, err)
	}
	if asked.Text != "i want the" || asked.Asked != "What?" || asked.Language != "en" || asked.Prosody == nil || *asked.Prosody != (Prosody{1, 2}) {
		t.Errorf("asked %+v", asked)
	}
}

// TestFallsBack checks that any classifier failure yields a local guess in time.
func TestFallsBack(t *testing.T) {
	for name, h := range map[string]http.Handler{
		"slow": Fake{P: 1, Delay: time.Hour}, "a fault": Fake{P: 1, Fault: 503}, "no JSON": says(200, "<html>"),
		"no p": says(200, `{"q":1}`), "p of null": says(200, `{"p":null}`), "p too high": says(200, `{"p":1.5}`), "p below": says(200, `{"p":-1}`),
		"endless": says(200, `{"p":`+strings.Repeat(" ", 1<<20)+"1}"), "nothing": says(200, ""), "no content": says(204, ""),
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			g, err := ask(t, h)
			if err == nil || g.Reason != "unfinished" || time.Since(began) > Timeout {
				t.Errorf("%s: %+v, %v, after %v", name, g, err, time.Since(began))
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: the error contains the key: %v", name, err)
			}
		})
	}
}

// TestBusy checks that questions beyond the limit are not sent.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New("http://classifier/", "", time.Minute, &http.Client{Transport: through{Fake{P: 1, Delay: time.Second}}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, maxOpen)
		for range maxOpen {
			go func() {
				_, err := c.Guess(ctx, eot.Pause{Text: "yes"})
				done <- err
			}()
		}
		synctest.Wait()
		if g, err := c.Guess(ctx, eot.Pause{Text: "yes"}); err == nil || g.Reason == "classifier" {
			t.Errorf("%+v, %v", g, err)
		}
		for range maxOpen {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if _, err := c.Guess(ctx, eot.Pause{Text: "yes"}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		cancel()
	})
}

func TestEnd(t *testing.T) {
	long := strings.Repeat("ж", maxText)
	if s := tail(long); len(s) > maxText || !utf8.ValidString(s) || len(s) < maxText-4 {
		t.Errorf("%d bytes, valid: %v", len(s), utf8.ValidString(s))
	}
}
