package calls

import (
	"encoding/json"
	"fmt"
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
func costOf(raw json.RawMessage) *costTable {
	var c pricing.Cost
	if len(raw) == 0 || json.Unmarshal(raw, &c) != nil || len(c.Items) == 0 && c.Trunk == nil && len(c.Unpriced) == 0 {
		return nil
	}
	t := &costTable{Total: c.Amount.String(), Currency: c.Currency, AsOf: c.PricesAsOf}
	for _, item := range c.Items {
		what := costLabel(item.Serves, item.Provider, item.Model)
		if item.Purpose == pricing.ForAnalysis {
			what += ", for the analysis"
		}
		t.Rows = append(t.Rows, costRow{what, quantity(item.EngineUsage), price(item), item.Amount.String()})
	}
	if c.Trunk != nil {
		for _, leg := range c.Trunk.Legs {
			if leg.PerMinute != nil {
				rate := leg.PerMinute.String() + " per minute"
				t.Rows = append(t.Rows, costRow{"Trunk, " + leg.Leg, fmt.Sprintf("%g s", leg.Seconds), rate, leg.Amount.String()})
			}
		}
	}
	for _, u := range c.Unpriced {
		t.Unpriced = append(t.Unpriced, costLabel(u.Serves, u.Provider, u.Model))
	}
	return t
}

func costLabel(serves, provider, model string) string {
	names := map[string]string{"asr": "Speech-to-text", "llm": "Model", "tts": "Voice", "trunk": "Trunk"}
	return strings.TrimSpace(strings.Join(strings.Fields(names[serves]+" "+provider+" "+model), " "))
}

func quantity(u pricing.Usage) string {
	switch u.Serves {
	case "asr":
		return fmt.Sprintf("%g s", u.Seconds)
	case "tts":
		return ui.Plural(u.Characters, "character", "characters")
	}
	text := ui.Plural(u.PromptTokens, "token", "tokens") + " in"
	if u.CachedTokens > 0 {
		text += " (" + ui.Count(u.CachedTokens) + " cached)"
	}
	return text + ", " + ui.Count(u.CompletionTokens) + " out"
}

func price(i pricing.Item) string {
	switch {
	case i.PerMinute != nil:
		return i.PerMinute.String() + " per minute"
	case i.PerMillionCharacters != nil:
		return i.PerMillionCharacters.String() + " per million"
	case i.PerMillionPromptTokens == nil || i.PerMillionCompletionTokens == nil:
		return "" // of another version
	}
	text := i.PerMillionPromptTokens.String() + " in, "
	if i.PerMillionCachedTokens != nil {
		text += i.PerMillionCachedTokens.String() + " cached, "
	}
	return text + i.PerMillionCompletionTokens.String() + " out, per million"
}
