package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-voice/parley/bench/demo"
	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/sip/siptest"
)

// Unit prices, as a price file and as constants for the test's own calculation.
const (
	costFile = `
as_of: 2026-11-23
prices:
- {provider: fake, serves: asr, per_minute: 0.0077}
- {provider: fake, serves: llm, per_million_prompt_tokens: 2.55, per_million_cached_tokens: 0.255, per_million_completion_tokens: 10.3}
- {provider: fake, serves: tts, per_million_characters: 49.99}
`
	minutePrice, trunkPrice                   = "0.0077", "0.0137"
	promptPrice, cachedPrice, completionPrice = "2.55", "0.255", "10.3"
	characterPrice                            = "49.99"
	perMillion, secondsPerMinute, nano        = 1_000_000, 60, 1_000_000_000
)

// costTalker uses the fake providers as a conversation does, but does not wait for audio to be played.
type costTalker struct {
	srv *server

	mu     sync.Mutex
	frames map[string]int // audio frames sent, by call
	chars  map[string]int
}

// Talk implements control.Talker.
func (k *costTalker) Talk(ctx context.Context, leg media.Leg, b pipeline.SessionConfig) (pipeline.Outcome, error) {
	meter, agent := &pipeline.UsageMeter{}, k.srv.agent
	n := 1 + rand.IntN(20)
	text := strings.Repeat("Grüße, ", rand.IntN(5)) + "goodbye. "
	k.mu.Lock()
	k.frames[b.CallID], k.chars[b.CallID] = n, len([]rune(text))
	k.mu.Unlock()
	err := k.hear(ctx, agent.Guards.Recognizer(agent.Clients.Current(), b.Engines.ASR, meter), n)
	if err == nil {
		for _, broke := range agent.Guards.Model(agent.Clients.Current(), b.Engines.LLM, meter).Reply(ctx, pipeline.Prompt{
			Instructions: b.Prompt, Messages: []pipeline.Message{{Role: pipeline.RoleCaller, Text: text}},
		}) {
			err = broke
		}
	}
	if err == nil {
		err = k.say(ctx, agent.Guards.Voice(agent.Clients.Current(), b.Engines.TTS, meter), text)
	}
	if err != nil {
		return pipeline.Outcome{Reason: pipeline.AgentError, Err: err, Usage: meter.Total()}, err
	}
	return pipeline.Outcome{
		Reason: pipeline.AgentHungUp, Usage: meter.Total(), Lines: []pipeline.Line{{Role: pipeline.RoleCaller, Text: text}},
	}, leg.Hangup(media.LocalHangup)
}

func (*costTalker) hear(ctx context.Context, r pipeline.Recognizer, frames int) error {
	rec, err := r.Recognize(ctx, pipeline.Stream{Rate: 8000})
	if err != nil {
		return err
	}
	for range frames {
		if err = rec.WriteFrame(make(media.Frame, media.FrameLen(8000))); err != nil {
			return err
		}
	}
	if err = rec.Finalize(); err != nil {
		return err
	}
	for res := range rec.Results() {
		if res.Final {
			break
		}
	}
	return rec.Close()
}

func (*costTalker) say(ctx context.Context, v pipeline.Voice, text string) error {
	sp, err := v.Open(ctx, pipeline.Style{Rate: 8000})
	if err != nil {
		return err
	}
	if err = sp.Write(text); err == nil {
		err = sp.Flush()
	}
	for _, broke := range sp.Audio() {
		err = broke
	}
	if closed := sp.Close(); err == nil {
		err = closed
	}
	return err
}

type costedCall struct {
	AnsweredAt float64                `json:"answered_at"`
	EndedAt    float64                `json:"ended_at"`
	Status     string                 `json:"status"`
	Analysis   string                 `json:"analysis_status"`
	Usage      []pipeline.EngineUsage `json:"usage"`
	Cost       struct {
		Amount   json.Number
		Trunk    struct{ Seconds, Amount json.Number }
		Items    []struct{ Amount json.Number }
		Unpriced []any
	} `json:"cost"`
}

// TestCosts checks that the costs of calls match the requests that the fake providers received.
func TestCosts(t *testing.T) { testCosts(t, 100) }

func TestSoakCosts(t *testing.T) {
	soakOnly(t)
	testCosts(t, 1000)
}

func testCosts(t *testing.T, calls int) {
	t.Helper()
	script := demo.Script()
	script.FinalLag, script.FirstToken, script.TokenGap, script.FirstByte, script.PartialLag = 0, 0, 0, 0, 0
	fakes, err := fakeprovider.Start(t.Context(), "127.0.0.1:0", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fakes.Close(); err != nil {
			t.Error(err)
		}
	})
	c := carrier(t, &siptest.Carrier{Answer: func(siptest.Invite) siptest.Script {
		return siptest.Script{Trying: -1, Ring: -1, Status: http.StatusOK}
	}})
	prices := writeFile(t, "prices.yaml", costFile)
	srv, api := startServer(t, c.Addr().String(), func(c *config.Config) {
		c.DatabaseURL, c.PricesFile, c.Endpoints.Fake, c.RateLimit = media.Secret(dbtest.URL(t)), prices, fakes.Addr(), 0
	})
	talker := &costTalker{srv: srv, frames: map[string]int{}, chars: map[string]int{}}
	srv.node.Runner.Talker = talker
	for _, sql := range []string{
		"UPDATE subgroups SET concurrent_calls = 2000, calls_per_minute = 100000",
		`UPDATE trunks SET settings = settings || '{"rates": {"1": ` + trunkPrice + `}}'`,
		"DELETE FROM webhook_endpoints",
	} {
		if _, err := srv.db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	ids := placeCostedCalls(t, api, calls)
	read := make([]costedCall, len(ids))
	eventuallyWithin(t, 3*time.Minute, "the end of all calls", func() bool { return costedDone(t, srv) == calls })
	for n, id := range ids {
		get(t, api, "/v1/calls/"+id, &read[n])
	}
	sum := checkCosts(t, ids, read, talker)
	checkFakes(t, read, sum, fakes.Received())
	fmt.Fprintf(os.Stdout, "%d calls in %v\n", len(ids), time.Since(began).Round(time.Second))
}

func placeCostedCalls(t *testing.T, api *demo.Client, calls int) []string {
	t.Helper()
	ids := make([]string, calls)
	var all sync.WaitGroup
	for part := range 4 {
		all.Go(func() {
			for n := part; n < calls; n += 4 {
				var c apiCall
				err := api.Do(t.Context(), http.MethodPost, "/v1/calls/phone", map[string]any{"agent_id": "demo", "to_number": demo.Number}, &c)
				if err != nil {
					t.Error(err)
					return
				}
				ids[n] = c.CallID
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return ids
}

// costedDone returns the number of calls that have ended and were analyzed.
func costedDone(t *testing.T, srv *server) int {
	t.Helper()
	return dbtest.Value[int](t, srv.db, "SELECT count(*) FROM calls WHERE status IN ('ended', 'failed') AND analysis_status <> 'pending'")
}

func rat(t *testing.T, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no number", text)
	}
	return r
}

// times returns the price of n units if per units cost price.
func times(t *testing.T, price string, n, per int64) *big.Rat {
	t.Helper()
	return new(big.Rat).Mul(rat(t, price), big.NewRat(n, per))
}

// rounded rounds to billionths; halves are rounded up.
func rounded(r *big.Rat) *big.Rat {
	n := new(big.Int).Mul(r.Num(), big.NewInt(2*nano))
	n.Add(n, r.Denom())
	n.Div(n, new(big.Int).Mul(r.Denom(), big.NewInt(2)))
	return new(big.Rat).SetFrac(n, big.NewInt(nano))
}

// usageCost calculates the cost of u independently.
func usageCost(t *testing.T, u pipeline.EngineUsage) *big.Rat {
	t.Helper()
	switch u.Serves {
	case "asr":
		return times(t, minutePrice, int64(u.Seconds*100+0.5), 100*secondsPerMinute)
	case "tts":
		return times(t, characterPrice, int64(u.Characters), perMillion)
	}
	return tokenCost(t, u.PromptTokens, u.CachedTokens, u.CompletionTokens)
}

func tokenCost(t *testing.T, prompt, cached, completion int) *big.Rat {
	t.Helper()
	sum := times(t, promptPrice, int64(prompt-cached), perMillion)
	sum.Add(sum, times(t, cachedPrice, int64(cached), perMillion))
	return sum.Add(sum, times(t, completionPrice, int64(completion), perMillion))
}

// checkCosts compares the cost of each call with the test's own calculation, and the usage with the talker's records.
// It returns the sum of the costs without the trunk.
func checkCosts(t *testing.T, ids []string, calls []costedCall, talker *costTalker) *big.Rat {
	t.Helper()
	all, trunks := new(big.Rat), new(big.Rat)
	for n, c := range calls {
		id, used := ids[n], map[string]pipeline.EngineUsage{}
		want := new(big.Rat)
		for _, u := range c.Usage {
			used[u.Serves+u.Purpose] = u
			want.Add(want, rounded(usageCost(t, u)))
		}
		all.Add(all, want)
		seconds := rat(t, c.Cost.Trunk.Seconds.String())
		trunk := rounded(new(big.Rat).Mul(rat(t, trunkPrice), new(big.Rat).Quo(seconds, big.NewRat(secondsPerMinute, 1))))
		trunks.Add(trunks, trunk)
		want.Add(want, trunk)
		lasted, _ := seconds.Float64()
		switch {
		case c.Status != "ended" || c.Analysis != "complete" || len(c.Cost.Unpriced) > 0 || len(c.Cost.Items) != 4:
			t.Errorf("call %s: %+v", id, c)
		case want.Cmp(rat(t, c.Cost.Amount.String())) != 0:
			t.Errorf("call %s costs %s, want %s", id, c.Cost.Amount, want.FloatString(9))
		case lasted-(c.EndedAt-c.AnsweredAt) > 0.011 || (c.EndedAt-c.AnsweredAt)-lasted > 0.011:
			t.Errorf("call %s: %v s on the trunk, answered %v, ended %v", id, lasted, c.AnsweredAt, c.EndedAt)
		case used["asr"].Seconds != float64(talker.frames[id])/50 || used["tts"].Characters != talker.chars[id]:
			t.Errorf("call %s: usage %+v, %d frames and %d characters were sent", id, c.Usage, talker.frames[id], talker.chars[id])
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	fmt.Fprintf(os.Stdout, "costs: %s USD for providers, %s USD for the trunk\n", all.FloatString(9), trunks.FloatString(9))
	return all
}

// checkFakes compares the usage and the costs of all calls with the requests that the fake providers received.
func checkFakes(t *testing.T, calls []costedCall, sum *big.Rat, got fakeprovider.Received) {
	t.Helper()
	var want fakeprovider.Received
	for _, c := range calls {
		for _, u := range c.Usage {
			want.Sound += time.Duration(u.Seconds*100+0.5) * 10 * time.Millisecond
			want.Characters += u.Characters
			want.PromptTokens += u.PromptTokens
			want.CachedTokens += u.CachedTokens
			want.CompletionTokens += u.CompletionTokens
		}
	}
	if got != want {
		t.Errorf("the fakes received %+v, the calls say %+v", got, want)
	}
	total := times(t, minutePrice, got.Sound.Milliseconds(), 1000*secondsPerMinute)
	total.Add(total, times(t, characterPrice, int64(got.Characters), perMillion))
	total.Add(total, tokenCost(t, got.PromptTokens, got.CachedTokens, got.CompletionTokens))
	off := new(big.Rat).Sub(sum, total)
	if off.Abs(off).Cmp(big.NewRat(1, 100)) > 0 {
		t.Errorf("the calls cost %s, the fakes' usage %s", sum.FloatString(9), total.FloatString(9))
	}
	fmt.Fprintf(os.Stdout, "fakes received %+v: %s USD, %s apart\n", got, total.FloatString(9), off.FloatString(12))
}
