package conversation_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/eot/remote"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/pipetest"
)

// through serves HTTP requests within the process, so that the fake clock applies to them.
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

func judged(t *testing.T, words string, f *remote.Fake) (turn pipeline.Turn, heard string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		stage := pipetest.New(fakeprovider.Typical())
		if f != nil {
			stage.Classifier = remote.New("http://judge/", "", 0, &http.Client{Transport: through{f}})
		}
		c := talkOn(t, stage, pipeline.SessionConfig{Engines: pipetest.FakeEngines()})
		c.pass(time.Second)
		c.say(words)
		c.pass(6 * time.Second)
		heard = c.words()
		o := c.hangup()
		if len(o.Turns) != 1 {
			t.Fatalf("%d turns, heard %q", len(o.Turns), heard)
		}
		turn = o.Turns[0]
		checkTurn(t, turn, 0)
	})
	return turn, heard
}

func span(t pipeline.Turn, p pipeline.Phase) (time.Duration, bool) {
	for _, s := range t.Spans {
		if s.Phase == p {
			return s.For, true
		}
	}
	return 0, false
}

// committed returns how long after the caller's last sound the turn was committed.
func committed(t pipeline.Turn) (sum time.Duration) {
	for _, p := range []pipeline.Phase{pipeline.PhaseJitter, pipeline.PhaseVAD, pipeline.PhaseASR, pipeline.PhaseClassifier, pipeline.PhaseEOUWait} {
		d, _ := span(t, p)
		sum += d
	}
	return sum
}

func TestClassifier(t *testing.T) {
	const ms = time.Millisecond
	const whole, open = "i have a question", "i have the"
	for name, c := range map[string]struct {
		words    string
		judge    *remote.Fake
		from, to time.Duration // range of the time from the caller's last sound to the commit
		reason   string        // reason of the commit, if it comes from the classifier
		exposed  time.Duration // minimum of classifier_ms; 0 means that it must be absent
	}{
		"none":                 {whole, nil, 400 * ms, 440 * ms, "", 0},
		"says finished":        {open, &remote.Fake{P: 0.95, Delay: 20 * ms}, 300 * ms, 400 * ms, "classifier", 20 * ms},
		"says finished, alone": {open, nil, 1500 * ms, 2500 * ms, "", 0},
		"says not finished":    {whole, &remote.Fake{P: 0.05, Delay: 20 * ms}, 2350 * ms, 2500 * ms, "classifier", 20 * ms},
		"hangs":                {whole, &remote.Fake{P: 0.05, Delay: time.Hour}, 400 * ms, 560 * ms, "", 100 * ms},
		"breaks":               {whole, &remote.Fake{Fault: 503, Delay: 30 * ms}, 400 * ms, 440 * ms, "", 30 * ms},
		"is almost too late":   {open, &remote.Fake{P: 0.95, Delay: 149 * ms}, 400 * ms, 560 * ms, "classifier", 149 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			turn, heard := judged(t, c.words, c.judge)
			if heard != "you said "+c.words {
				t.Errorf("heard %q", heard)
			}
			if at := committed(turn); at < c.from || at > c.to {
				t.Errorf("committed after %v, want %v to %v: %+v", at, c.from, c.to, turn.Spans)
			}
			if (turn.Reason == "classifier") != (c.reason == "classifier") {
				t.Errorf("got reason %q", turn.Reason)
			}
			if d, has := span(turn, pipeline.PhaseClassifier); has != (c.exposed > 0) || d < c.exposed-5*ms || d > remote.Timeout {
				t.Errorf("classifier_ms %v (%v), want %v", d, has, c.exposed)
			}
		})
	}
}
