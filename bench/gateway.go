package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/pace"
	"github.com/parley-voice/parley/media/rtp"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/converse"
	"github.com/parley-voice/parley/pipeline/fake"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tts"
	"github.com/parley-voice/parley/sip"
)

// A job is what a gateway is asked to do.
type job struct {
	Proxy   string        `json:"proxy"`
	Fakes   string        `json:"fakes"` // host:port
	Calls   int           `json:"calls"`
	Stagger time.Duration `json:"stagger"` // between two calls
}

// A result is the outcome of one of a gateway's calls.
type result struct {
	ID    string          `json:"id"`
	Err   string          `json:"err,omitempty"`
	Turns []time.Duration `json:"turns"` // the server's own turn times; 0 where nothing was heard
}

// Gateway is the measured process of a turn bench: it dials calls, talks on
// them, and reports the turns as it measured them itself.
func Gateway(ctx context.Context, in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clock := &pace.Clock{Precise: true}
	var ticking sync.WaitGroup
	defer ticking.Wait()
	ticking.Go(func() { clock.Run(ctx) })
	defer cancel()
	ports, err := rtp.ParsePorts("0-0")
	if err != nil {
		return err
	}
	transport, err := rtp.NewTransport(clock, ports, netip.MustParseAddr("127.0.0.1"), netip.Addr{})
	if err != nil {
		return err
	}
	defer transport.Close()
	ua := &sip.UA{Listen: "127.0.0.1:0", Media: transport}
	if err = ua.Start(); err != nil {
		return err
	}
	agent := &converse.Agent{
		Recognizers: map[string]pipeline.Recognizer{"fake": asr.Deepgram{URL: "ws://" + j.Fakes + "/v1/listen"}},
		Models:      map[string]pipeline.Model{"fake": llm.OpenAI{URL: "http://" + j.Fakes + "/v1"}},
		Voices:      map[string]pipeline.Voice{"fake": tts.ElevenLabs{URL: "ws://" + j.Fakes}},
	}
	results := make(chan result)
	var calls sync.WaitGroup
	for i := range j.Calls {
		calls.Go(func() {
			pause(ctx, time.Duration(i)*j.Stagger)
			results <- place(ctx, ua, agent, fmt.Sprintf("bench-%d", i), j.Proxy)
		})
	}
	go func() { calls.Wait(); close(results) }()
	answer := json.NewEncoder(out)
	for r := range results {
		if err == nil {
			err = answer.Encode(r)
		}
	}
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	_ = ua.Close(closing) // loopback only
	return err
}

// place makes one call and talks on it to its end.
func place(ctx context.Context, ua *sip.UA, agent *converse.Agent, id, proxy string) result {
	leg, err := ua.Dial(ctx, media.Target{ID: id, To: "12025550199", From: "12025550100", Trunk: media.Trunk{Proxy: proxy}},
		func(media.Progress) {})
	if err != nil {
		return result{ID: id, Err: err.Error()}
	}
	engine := pipeline.Engine{Provider: "fake"}
	o, err := agent.Talk(ctx, leg, pipeline.Brief{
		CallID: id, Greeting: "hello this is parley", AnsweredAt: time.Now(),
		Engines: pipeline.Engines{ASR: engine, LLM: engine, TTS: engine},
	})
	if err != nil {
		return result{ID: id, Err: err.Error()}
	}
	r := result{ID: id}
	for _, t := range o.Turns {
		var total time.Duration
		if t.Audible() {
			total = t.Total()
		}
		r.Turns = append(r.Turns, total)
	}
	return r
}

// Providers plays the fakes that a gateway asks, tells their address, and ends
// with in.
func Providers(ctx context.Context, in io.Reader, out io.Writer) error {
	fakes, err := fake.Start(ctx, "127.0.0.1:0", fake.Typical())
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintln(out, fakes.Addr()); err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	if closing := fakes.Close(); err == nil {
		err = closing
	}
	return err
}
