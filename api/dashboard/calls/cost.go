package calls

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/parley-voice/parley/api/dashboard/ui"
	"github.com/parley-voice/parley/control/pricing"
)

// costTable is the cost of a call on its page.
type costTable struct {
	Rows     []costRow
	Total    string
	Currency string
	AsOf     string // date of the prices
	Unpriced []string
}

type costRow struct{ What, Quantity, Price, Amount string }

// costOf returns nil before the end of the call, and for a call without cost.
func costOf(texts *ui.Texts, raw json.RawMessage) *costTable {
	var c pricing.Cost
	if len(raw) == 0 || json.Unmarshal(raw, &c) != nil || len(c.Items) == 0 && c.Trunk == nil && len(c.Unpriced) == 0 {
		return nil
	}
	t := &costTable{Total: c.Amount.String(), Currency: c.Currency, AsOf: c.PricesAsOf}
	for _, item := range c.Items {
		what := costLabel(texts, item.Serves, item.Provider, item.Model)
		if item.Purpose == pricing.ForAnalysis {
			what = texts.T("calls.cost.for_analysis", "item", what)
		}
		t.Rows = append(t.Rows, costRow{what, quantity(texts, item.EngineUsage), price(texts, item), item.Amount.String()})
	}
	if c.Trunk != nil {
		for _, leg := range c.Trunk.Legs {
			if leg.PerMinute != nil {
				rate := texts.T("calls.cost.per_minute", "price", leg.PerMinute.String())
				t.Rows = append(t.Rows, costRow{
					texts.T("calls.cost.leg", "leg", leg.Leg),
					seconds(texts, leg.Seconds), rate, leg.Amount.String(),
				})
			}
		}
	}
	for _, u := range c.Unpriced {
		t.Unpriced = append(t.Unpriced, costLabel(texts, u.Serves, u.Provider, u.Model))
	}
	return t
}

func costLabel(texts *ui.Texts, serves, provider, model string) string {
	return strings.Join(strings.Fields(texts.Label("calls.cost.item", serves)+" "+provider+" "+model), " ")
}

// seconds formats a duration to a tenth of a second.
func seconds(texts *ui.Texts, s float64) string {
	return texts.T("ui.span.seconds", "seconds", fmt.Sprintf("%g", math.Round(10*s)/10))
}

func quantity(texts *ui.Texts, u pricing.Usage) string {
	switch u.Serves {
	case "asr":
		return seconds(texts, u.Seconds)
	case "tts":
		return texts.T("ui.count.characters", "count", u.Characters)
	}
	tokens := texts.T("ui.count.tokens", "count", u.PromptTokens)
	if u.CachedTokens > 0 {
		return texts.T("calls.cost.tokens.cached", "in", tokens, "cached", u.CachedTokens, "out", u.CompletionTokens)
	}
	return texts.T("calls.cost.tokens", "in", tokens, "out", u.CompletionTokens)
}

func price(texts *ui.Texts, i pricing.Item) string {
	switch {
	case i.PerMinute != nil:
		return texts.T("calls.cost.per_minute", "price", i.PerMinute.String())
	case i.PerMillionCharacters != nil:
		return texts.T("calls.cost.per_million", "price", i.PerMillionCharacters.String())
	case i.PerMillionPromptTokens == nil || i.PerMillionCompletionTokens == nil:
		return "" // of another version
	}
	in, out := i.PerMillionPromptTokens.String(), i.PerMillionCompletionTokens.String()
	if i.PerMillionCachedTokens != nil {
		return texts.T("calls.cost.per_million_tokens.cached", "in", in, "cached", i.PerMillionCachedTokens.String(), "out", out)
	}
	return texts.T("calls.cost.per_million_tokens", "in", in, "out", out)
}
