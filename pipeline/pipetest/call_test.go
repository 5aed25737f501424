package pipetest_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/mediatest"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/pipetest"
)

// model is the fake model. It keeps its requests. Each word of an answer contains the number of the request.
type model struct {
	mu    sync.Mutex
	began time.Time
	asked []question
	words func(k int) int // number of words of an answer
}

func (m *model) reply(messages []fakeprovider.Message) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := len(m.asked)
	n := m.words(k)
	m.asked = append(m.asked, question{time.Since(m.began), messages, n})
	var text []string
	for i := range n {
		text = append(text, answerWord(k, i))
	}
	return strings.Join(text, " ") + []string{"", "", ".", "?"}[k%4]
}

func (m *model) questions() []question {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// chance returns a random number below n that depends only on the seed and the purpose, because
// providers run concurrently.
func chance(seed uint64, what string, at, n int) int {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, what, at)
	return rand.New(rand.NewPCG(seed, h.Sum64())).IntN(n)
}

// providers returns the fake providers of a call: some are slow, some fail.
func providers(seed uint64, rnd *rand.Rand) (s fakeprovider.Script, breaks map[fakeprovider.Provider]int) {
	s = fakeprovider.Typical()
	if rnd.IntN(2) == 0 {
		s.FirstToken = time.Duration(rnd.IntN(1200)) * time.Millisecond
		s.FirstByte = time.Duration(rnd.IntN(500)) * time.Millisecond
		s.LeadingSilence = time.Duration(rnd.IntN(3)) * 50 * time.Millisecond
		s.FinalLag = time.Duration(rnd.IntN(900)) * time.Millisecond
		s.PartialLag = time.Duration(50+rnd.IntN(300)) * time.Millisecond
	}
	breaks = map[fakeprovider.Provider]int{} // n means that one of n requests fails, on average
	switch rnd.IntN(6) {
	case 0:
		breaks[fakeprovider.LLM] = 6
	case 1:
		breaks[fakeprovider.TTS] = 6 // the agent may then not know which words of an answer were spoken
	case 2:
		breaks[fakeprovider.ASR] = 2
	}
	ways := []fakeprovider.Fault{fakeprovider.Refuse, fakeprovider.Busy, fakeprovider.Drop, fakeprovider.Stall, fakeprovider.Freeze, fakeprovider.Garble}
	s.Fault = func(p fakeprovider.Provider, n int) fakeprovider.Fault {
		if breaks[p] == 0 || chance(seed, string(p), n, breaks[p]) > 0 {
			return fakeprovider.None
		}
		these := ways
		if p == fakeprovider.ASR {
			these = append(these, fakeprovider.Late, fakeprovider.Mute)
		} else {
			these = append(these, fakeprovider.Hang)
		}
		return these[chance(seed, "how "+string(p), n, len(these))]
	}
	return s, breaks
}

type memoryLog struct{ bytes.Buffer }

func (*memoryLog) Close() error { return nil }

// simulate lets a random caller talk with an agent in a synctest bubble. It returns the recording for the judge, and
// the turn log.
func simulate(t *testing.T, seed uint64) (recording, string) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 7))
	script, breaks := providers(seed, rnd)
	m := &model{began: time.Now(), words: func(k int) int { return 1 + chance(seed, "words", k, 10) }}
	script.Reply = m.reply
	stage := pipetest.New(script)
	log := &memoryLog{}
	stage.OpenTurnLog = func(string) (io.WriteCloser, error) { return log, nil }
	brief := pipeline.SessionConfig{Engines: pipetest.FakeEngines()}
	if rnd.IntN(3) > 0 {
		brief.Greeting = "welcome to the house of parley"
	}
	over := make(chan struct{})
	c := &caller{line: &line{Leg: mediatest.NewLeg(rate), began: time.Now()}, Rand: rnd, over: over}
	returns := rnd.IntN(6) == 0
	if returns {
		c.Echo(c.between(40, 300), []float64{0.1, 0.05, 0.02}[rnd.IntN(3)])
	}
	r := recording{asrFails: breaks[fakeprovider.ASR] > 0, ttsFails: breaks[fakeprovider.TTS] > 0, returns: returns}
	go func() {
		defer close(over)
		var err error
		if r.outcome, err = stage.Talk(context.Background(), c.line, brief); err != nil {
			t.Errorf("talk: %v", err)
		}
		r.over = c.now()
	}()
	for n, more := 6+rnd.IntN(10), c.pass(c.between(0, 3000)); n > 0 && more; n-- {
		more = c.act()
	}
	if rnd.IntN(4) > 0 {
		c.pass(5 * time.Second)
	} else { // the caller hangs up in the middle of a word
		pass := c.between(50, 800)
		go c.say(sentence, c.phrase())
		c.pass(pass)
	}
	_ = c.Hangup(media.RemoteHangup)
	<-over
	if err := stage.Close(); err != nil {
		t.Errorf("close the providers: %v", err)
	}
	r.heard, r.said, r.asked = c.Output(), c.said, m.questions()
	return r, log.String()
}
