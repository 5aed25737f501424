package store_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/db/dbtest"
	"github.com/parley-voice/parley/control/pricing"
	"github.com/parley-voice/parley/control/store"
	"github.com/parley-voice/parley/pipeline"
)

func prices(t *testing.T) *pricing.List {
	t.Helper()
	l, err := pricing.BuiltIn(func(string) pricing.Endpoint { return pricing.Endpoint{} })
	if err == nil {
		l, err = l.Extend([]byte(`
as_of: 2026-11-01
prices:
  - {provider: fake, serves: asr, per_minute: 0.6}
  - {provider: fake, serves: llm, per_million_prompt_tokens: 100, per_million_cached_tokens: 10, per_million_completion_tokens: 1000}`))
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCostAtEnd checks that each call has a cost after its end, for every way in which a call can end.
func TestCostAtEnd(t *testing.T) {
	b := newFixture(t, 100, 1000, "a")
	b.store.Prices = prices(t)
	rate := 0.03
	begin := time.Now().Add(-time.Hour)
	usage := json.RawMessage(`[{"serves":"asr","provider":"fake","requests":1,"seconds":60},` +
		`{"serves":"llm","provider":"fake","requests":1,"prompt_tokens":1000,"cached_tokens":500,"completion_tokens":10},` +
		`{"serves":"tts","provider":"fake","requests":1,"characters":10}]`)
	const asr, llm = `{"serves":"asr","provider":"fake","requests":1,"seconds":60,"per_minute":0.6,"amount":0.6}`,
		`{"serves":"llm","provider":"fake","requests":1,"prompt_tokens":1000,"cached_tokens":500,"completion_tokens":10,` +
			`"per_million_prompt_tokens":100,"per_million_cached_tokens":10,"per_million_completion_tokens":1000,"amount":0.065}`
	rest := func(amount, items, trunk, unpriced string) string {
		return `{"amount":` + amount + `,"currency":"USD","prices_as_of":"2026-11-01","items":[` + items + `],"trunk":` + trunk + `,"unpriced":[` + unpriced + `]}`
	}
	answered := func(more func(*control.CallResult)) func(*control.Claim) {
		return func(c *control.Claim) {
			b.advance(c, control.Answered)
			f := control.CallResult{Status: control.Ended, AnsweredAt: begin, EndedAt: begin.Add(2 * time.Minute), Recording: control.RecordingNone}
			if more != nil {
				more(&f)
			}
			if err := b.store.Finish(t.Context(), c.Lease, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		rate *float64
		end  func(c *control.Claim)
		nano int64
		want string
	}{
		"conversation": {
			&rate, answered(func(f *control.CallResult) { f.Usage = usage }), 725_000_000,
			rest("0.725", asr+","+llm, `{"seconds":120,"amount":0.06,"legs":[{"leg":"callee","seconds":120,"per_minute":0.03,"amount":0.06}]}`, `{"serves":"tts","provider":"fake"}`),
		},
		"transfer": {
			&rate, answered(func(f *control.CallResult) {
				f.TransferLegs = []control.AnsweredLeg{{AnsweredAt: begin.Add(time.Minute), CostPerMinute: &rate}}
			}), 90_000_000,
			rest("0.09", "", `{"seconds":180,"amount":0.09,"legs":[{"leg":"callee","seconds":120,"per_minute":0.03,"amount":0.06},`+
				`{"leg":"transfer","seconds":60,"per_minute":0.03,"amount":0.03}]}`, ""),
		},
		"no rate": {
			nil, answered(nil), 0,
			rest("0", "", `{"seconds":120,"amount":0,"legs":[{"leg":"callee","seconds":120,"per_minute":null,"amount":0}]}`, `{"serves":"trunk"}`),
		},
		"busy": {&rate, func(c *control.Claim) {
			b.advance(c, control.Sent)
			if err := b.store.Finish(t.Context(), c.Lease, control.CallResult{Status: control.Failed, Reason: "busy", EndedAt: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}, 0, rest("0", "", "null", "")},
		"canceled": {&rate, func(c *control.Claim) {
			if _, err := b.store.End(t.Context(), b.org, c.Call.ID); err != nil {
				t.Fatal(err)
			}
		}, 0, rest("0", "", "null", "")},
		"node lost": {&rate, func(c *control.Claim) {
			b.advance(c, control.Answered)
			b.exec("UPDATE calls SET answered_at = $1 WHERE id = $2", begin, c.Call.ID)
			b.exec("UPDATE attempts SET lease_until = $1 WHERE call_id = $2", begin.Add(time.Minute), c.Call.ID)
			b.settle()
		}, 30_000_000, rest("0.03", "", `{"seconds":60,"amount":0.03,"legs":[{"leg":"callee","seconds":60,"per_minute":0.03,"amount":0.03}]}`, "")},
	} {
		t.Run(name, func(t *testing.T) {
			id := b.order("a", 1)[0]
			b.exec("UPDATE calls SET cost_per_minute = $1 WHERE id = $2", tt.rate, id)
			c := b.claim("n1")
			if b.call(id).Cost != nil {
				t.Error("a cost before the end")
			}
			tt.end(c)
			var cost pricing.Cost
			if err := json.Unmarshal(b.call(id).Cost, &cost); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(cost)
			if err != nil || string(got) != tt.want {
				t.Errorf("%s, %v\nwant %s", got, err, tt.want)
			}
			if nano := dbtest.Value[int64](t, b.db, "SELECT cost_nano FROM calls WHERE id = $1", id); nano != tt.nano {
				t.Errorf("%d, want %d", nano, tt.nano)
			}
		})
	}
}

// TestCostOfWebCall checks that the cost of a web call contains no trunk minutes.
func TestCostOfWebCall(t *testing.T) {
	b := newFixture(t, 10, 100, "a")
	id := b.web()
	c, code := b.join(id, id)
	if code != "" {
		t.Fatal(code)
	}
	begin := time.Now()
	err := b.store.Finish(t.Context(), c.Lease, control.CallResult{Status: control.Ended, AnsweredAt: begin, EndedAt: begin.Add(time.Minute), Recording: control.RecordingNone})
	if err != nil {
		t.Fatal(err)
	}
	if nano := dbtest.Value[int64](t, b.db, "SELECT cost_nano FROM calls WHERE trunk_id = '' AND costs ->> 'trunk' IS NULL"); nano != 0 {
		t.Error(nano)
	}
}

// TestAddUsage checks that the analysis of a call adds to the usage and cost of the call, and that several tries are
// summed.
func TestAddUsage(t *testing.T) {
	b := newFixture(t, 10, 100, "a")
	b.store.Prices = prices(t)
	var observed []pricing.Amount
	costs := &store.Costs{Pool: b.db.Pool, Prices: b.store.Prices, Observe: func(c pricing.Cost) { observed = append(observed, c.Amount) }}
	id := b.order("a", 1)[0]
	c := b.claim("n1")
	b.advance(c, control.Answered)
	begin := time.Now()
	err := b.store.Finish(t.Context(), c.Lease, control.CallResult{
		Status: control.Ended, AnsweredAt: begin, EndedAt: begin, Recording: control.RecordingNone,
		Usage: json.RawMessage(`[{"serves":"llm","provider":"fake","requests":1,"prompt_tokens":10,"completion_tokens":1}]`),
	})
	if err != nil {
		t.Fatal(err)
	}
	more := []pipeline.EngineUsage{{Serves: "llm", Purpose: pipeline.ForAnalysis, Provider: "fake", Requests: 1, PromptTokens: 100, CompletionTokens: 10}}
	other := []pipeline.EngineUsage{{Serves: "llm", Purpose: pipeline.ForAnalysis, Provider: "other", Requests: 1, PromptTokens: 100}}
	for _, usage := range [][]pipeline.EngineUsage{more, more, other, nil} {
		if err = costs.AddUsage(t.Context(), id, usage); err != nil {
			t.Fatal(err)
		}
	}
	var usage []pipeline.EngineUsage
	if err = json.Unmarshal(b.call(id).Usage, &usage); err != nil || len(usage) != 3 || usage[1].PromptTokens != 200 || usage[1].Requests != 2 {
		t.Errorf("%+v, %v", usage, err)
	}
	const want = 2_000_000 + 2*20_000_000
	cost, err := costs.Cost(t.Context(), id)
	if err != nil || cost.Amount != want || len(cost.Unpriced) != 2 || cost.Unpriced[1].Provider != "other" {
		t.Errorf("%+v, %v, want %d", cost, err, want)
	}
	if nano := dbtest.Value[int64](t, b.db, "SELECT cost_nano FROM calls WHERE id = $1", id); nano != want {
		t.Errorf("%d, want %d", nano, want)
	}
	if !slices.Equal(observed, []pricing.Amount{20_000_000, 20_000_000, 0}) {
		t.Errorf("observed %v", observed)
	}
	if cost, err = costs.Cost(t.Context(), "call_none"); err != nil || cost.Amount != 0 {
		t.Errorf("%+v, %v", cost, err)
	}
	if err = costs.AddUsage(t.Context(), "call_none", more); err != nil {
		t.Error(err)
	}
}
