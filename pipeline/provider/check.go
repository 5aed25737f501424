package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// Times and bounds of probes.
const (
	checkTimeout = 5 * time.Second  // time limit of one probe
	checkRetry   = 5 * time.Second  // wait after a failed probe
	checkFresh   = 30 * time.Second // a result up to this age is recent
	checkExpiry  = 2 * time.Minute  // a failure of this age no longer counts
	maxChecks    = 4096             // maximum number of stored results; for other engines the breakers alone decide
)

// A Checker reports whether engines are usable. It combines the breakers, which calls update, with short probes of
// its own. One Checker serves all calls.
type Checker struct {
	Guards  *Guards
	Clients ClientSource

	mu   sync.Mutex
	last map[checkKey]checkResult
}

// A seam is the kind of an engine: "asr", "llm" or "tts".
type seam string

// A checkKey identifies an engine, without its fallbacks, and what it serves.
type checkKey struct {
	seam     seam
	endpoint string // endpoint ID
	key      string
}

// A checkResult is the result of the last probe.
type checkResult struct {
	err error
	at  time.Time
}

// A candidate is an engine or one of its fallbacks.
type candidate struct {
	seam   seam
	engine pipeline.Engine // without fallbacks
}

func (c candidate) key() checkKey { return checkKey{c.seam, c.engine.EndpointID(), c.engine.Key()} }

// Forget drops the results of endpoints whose settings have changed.
func (c *Checker) Forget(ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.last, func(k checkKey, _ checkResult) bool { return slices.Contains(ids, k.endpoint) })
}

// candidates returns the engines, each with its fallbacks.
func (c *Checker) candidates(e pipeline.Engines) [3][]candidate {
	clients := c.Clients.Current()
	var all [3][]candidate
	for i, x := range []candidate{{"asr", e.ASR}, {"llm", e.LLM}, {"tts", e.TTS}} {
		for _, one := range clients.resolveChain(string(x.seam), x.engine) {
			all[i] = append(all[i], candidate{x.seam, one})
		}
	}
	return all
}

// Usable returns nil if calls can use the recognizer, the model and the voice now, or a
// fallback of each; otherwise the reason.
func (c *Checker) Usable(e pipeline.Engines) error {
	now := time.Now()
	return c.firstError(e, func(p candidate) error { return c.unusable(p, now) })
}

// Verified reports whether each engine or its fallback is usable and was probed
// successfully within the last 30 s.
func (c *Checker) Verified(e pipeline.Engines) bool {
	now := time.Now()
	return c.firstError(e, func(p candidate) error {
		if err := c.unusable(p, now); err != nil {
			return err
		}
		if x, ok := c.lastResult(p); !ok || now.Sub(x.at) > checkFresh {
			return errUnchecked
		}
		return nil
	}) == nil
}

var errUnchecked = errors.New("not checked yet")

// firstError applies wrong to each engine and its fallbacks. It returns the joined errors of the first engine that
// fails together with all its fallbacks.
func (c *Checker) firstError(e pipeline.Engines, wrong func(candidate) error) error {
	for _, parts := range c.candidates(e) {
		var all []error
		for _, p := range parts {
			err := wrong(p)
			if all = append(all, err); err == nil {
				all = nil
				break
			}
		}
		if err := errors.Join(all...); err != nil {
			return err
		}
	}
	return nil
}

// unusable returns why an engine is unusable now, or nil.
func (c *Checker) unusable(p candidate, now time.Time) error {
	if open, _, _ := c.Guards.state(string(p.seam), p.engine.EndpointID()); open {
		return fmt.Errorf("%s %s: %w", string(p.seam), p.engine.Provider, ErrOpen)
	}
	if x, ok := c.lastResult(p); ok && x.err != nil && now.Sub(x.at) < checkExpiry {
		return fmt.Errorf("%s %s: %w", string(p.seam), p.engine.Provider, x.err)
	}
	return nil
}

func (c *Checker) lastResult(p candidate) (checkResult, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := c.last[p.key()]
	return x, ok
}

// Check probes the unusable engines whose breakers allow it. If all is set, it also probes engines without a recent
// result. A successful probe closes the breaker. Check returns when all probes have finished, after at most 5 s.
func (c *Checker) Check(ctx context.Context, e pipeline.Engines, all bool) {
	now := time.Now()
	var wg sync.WaitGroup
	for _, parts := range c.candidates(e) {
		for _, p := range parts {
			if c.due(p, now, all) {
				wg.Go(func() { c.store(p, c.probe(ctx, p)) })
			}
		}
	}
	wg.Wait()
}

func (c *Checker) due(p candidate, now time.Time, all bool) bool {
	open, tried, until := c.Guards.state(string(p.seam), p.engine.EndpointID())
	x, known := c.lastResult(p)
	switch {
	case open:
		return !tried && !now.Before(until)
	case known && x.err != nil:
		return now.Sub(x.at) >= checkRetry
	default:
		return all && (!known || now.Sub(x.at) >= checkFresh/2)
	}
}

// store keeps a result. Results that say nothing about the provider are dropped.
func (c *Checker) store(p candidate, err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, ErrBusy) || errors.Is(err, ErrOpen) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[checkKey]checkResult{}
	}
	now := time.Now()
	for q, x := range c.last {
		if len(c.last) >= maxChecks && now.Sub(x.at) > checkFresh {
			delete(c.last, q)
		}
	}
	if _, ok := c.last[p.key()]; ok || len(c.last) < maxChecks {
		c.last[p.key()] = checkResult{err, now}
	}
}

// probe sends a short request to a provider through its guard.
func (c *Checker) probe(ctx context.Context, p candidate) error {
	guard := c.Guards.of(string(p.seam), p.engine.EndpointID())
	clients := c.Clients.Current().of(p.engine.OrgID)
	switch p.seam {
	case "asr":
		if x := clients.Recognizers[p.engine.Provider]; x != nil {
			return probeRecognizer(ctx, guardedRecognizer{guard, x, p.engine})
		}
	case "llm":
		if x := clients.Models[p.engine.Provider]; x != nil {
			return probeModel(ctx, guardedModel{guard, x, p.engine, nil})
		}
	case "tts":
		if x := clients.Voices[p.engine.Provider]; x != nil {
			return probeVoice(ctx, guardedVoice{guard, x, p.engine, nil})
		}
	}
	return errNotConfigured
}

// errNotConfigured is the result of a probe of a provider that this process does not have.
var errNotConfigured = errors.New("not configured")

// telephone is the sample rate of check requests to recognizers and voices, in Hz.
const telephone = 8000

// probeRecognizer sends a short silence and waits for the response to Finalize, because many providers refuse a model
// only after they have accepted the connection. A missing response is no failure.
func probeRecognizer(asker context.Context, e guardedRecognizer) error {
	ctx, cancel := context.WithTimeout(asker, checkTimeout)
	defer cancel()
	s := pipeline.Stream{Rate: telephone, Model: e.engine.Model, Options: e.engine.Options}
	if p, ok := e.Recognizer.(pipeline.Prober); ok {
		visit, err := e.begin(asker)
		if err == nil {
			err = p.Probe(ctx, s)
			visit.finish(err)
		}
		return err
	}
	rec, err := (&recognizer{chain: []guardedRecognizer{e}}).open(asker, ctx, 0, s)
	if err != nil {
		return err
	}
	for range probeFrames {
		if rec.WriteFrame(make(media.Frame, media.FrameLen(telephone))) != nil { // Close returns the reason of the failure
			break
		}
	}
	_ = rec.Finalize() // Close returns the reason of the failure
	limit := time.NewTimer(probeAnswer)
	defer limit.Stop()
	for {
		select {
		case r, more := <-rec.Results():
			if more && !r.Finalized {
				continue
			}
		case <-limit.C:
		case <-ctx.Done():
		}
		return rec.Close()
	}
}

const (
	probeFrames = 15              // 300 ms of silence
	probeAnswer = 2 * time.Second // time limit of the response to Finalize
)

// probeModel requests a one-word reply. A model that reasons may spend the few tokens before
// its first word; it counts as working.
func probeModel(ctx context.Context, b guardedModel) error {
	p := pipeline.Prompt{
		Instructions: "Answer with OK.",
		Messages:     []pipeline.Message{{Role: pipeline.RoleCaller, Text: "OK?"}},
		MaxTokens:    16,
		Tools:        []pipeline.Tool{ProbeTool()},
	}
	var failed error
	_, err := b.ask(ctx, p, checkTimeout, func(_ pipeline.Delta, err error) bool {
		failed = err
		return false
	})
	if errors.Is(err, pipeline.ErrUnusable) {
		err = nil
	}
	return errors.Join(err, failed)
}

// ProbeTool returns the tool that probes offer to models. Some models refuse tools, or a
// parameter in the presence of tools, and each phone call has at least one.
func ProbeTool() pipeline.Tool {
	return pipeline.Tool{
		Name: "opt_out", Description: "Call this only if the person asks not to be called again.",
		Parameters: []byte(`{"type":"object","properties":{}}`),
	}
}

// probeVoice synthesizes one word up to its first sound.
func probeVoice(asker context.Context, m guardedVoice) error {
	ctx, cancel := context.WithTimeout(asker, checkTimeout)
	defer cancel()
	sp, visit, err := m.open(asker, ctx, pipeline.Style{Rate: telephone})
	if err != nil {
		return err
	}
	err = errors.Join(sp.Write("OK."), sp.Flush())
	if err == nil {
		err = awaitSound(sp)
	}
	visit.finish(err)
	return errors.Join(err, sp.Close())
}

func awaitSound(sp pipeline.Synthesis) error {
	for s, err := range sp.Audio() {
		if err != nil || len(s.PCM) > 0 {
			return err
		}
	}
	return errNoSound
}

// state returns the state of a provider's breaker; closed before the first request.
func (g *Guards) state(seam, id string) (open, tried bool, until time.Time) {
	g.mu.Lock()
	x := g.guards[seam+" "+id]
	g.mu.Unlock()
	if x == nil {
		return false, false, time.Time{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.breaker.State()
}
