// Package pricing computes the cost of calls from their usage and a price list. It has no side effects.
package pricing

import (
	_ "embed"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

//go:embed prices.yaml
var builtIn []byte

const defaultCurrency = "USD"

// CurrencyOf returns the currency of costs with a price list, which may be nil.
func CurrencyOf(l *List) string {
	if l == nil {
		return defaultCurrency
	}
	return l.Currency
}

// Rates are unit prices. Rates that do not apply to the service are nil.
type Rates struct {
	PerMinute                  *Amount `json:"per_minute,omitempty"` // per minute of audio sent to a recognizer
	PerMillionCharacters       *Amount `json:"per_million_characters,omitempty"`
	PerMillionPromptTokens     *Amount `json:"per_million_prompt_tokens,omitempty"`
	PerMillionCachedTokens     *Amount `json:"per_million_cached_tokens,omitempty"` // nil: cached tokens cost as much as other prompt tokens
	PerMillionCompletionTokens *Amount `json:"per_million_completion_tokens,omitempty"`
}

// Price is an entry of a price list. It states the unit prices of one or several models of a provider.
type Price struct {
	Kind     string // kind of the provider's endpoint; empty if Provider is set
	Host     string // host in the endpoint's URL; empty means the usual address of the kind
	Provider string // name of the endpoint to which the price applies; empty if Kind is set
	Serves   string // "asr", "llm" or "tts"
	Model    string // the exact name, or a prefix and "*"; empty means the default model
	Source   string // URL of the page that states the price
	Rates
}

// Endpoint describes a provider's endpoint to a price list.
type Endpoint struct {
	Kind  string
	Host  string // host in its URL; empty means the usual address of the kind
	Model string // default language model; empty means the default of the kind
}

// List is a price list. Its prices never change.
type List struct {
	Currency string // like "USD"
	AsOf     string // date of the prices, like "2026-11-23"

	own      []Price // prices of the operator; they override prices
	prices   []Price
	endpoint func(id string) Endpoint
}

// BuiltIn returns the built-in price list. endpoint returns the endpoint with an ID (pipeline.Engine.EndpointID), or
// the zero Endpoint if the ID is unknown.
func BuiltIn(endpoint func(id string) Endpoint) (*List, error) {
	f, err := parse(builtIn)
	if err != nil {
		return nil, fmt.Errorf("built-in prices: %w", err)
	}
	return &List{Currency: f.currency, AsOf: f.asOf, prices: f.prices, endpoint: endpoint}, nil
}

// Extend returns the list with the prices of an operator's file added. The added prices override the prices of the
// list. If the file has another currency, Extend converts the prices of the list.
func (l *List) Extend(text []byte) (*List, error) {
	f, err := parse(text)
	if err != nil {
		return nil, err
	}
	out := *l
	out.own = f.prices
	if f.asOf != "" {
		out.AsOf = f.asOf
	}
	if f.currency == "" || f.currency == l.Currency {
		if f.perUSD != 0 {
			return nil, fmt.Errorf("per_usd: accepted only with a currency other than %s", l.Currency)
		}
		return &out, nil
	}
	if f.perUSD == 0 {
		return nil, fmt.Errorf("currency %s: per_usd is missing: the price of 1 %s in %s", f.currency, l.Currency, f.currency)
	}
	out.Currency, out.prices = f.currency, nil
	for _, p := range l.prices {
		p.Rates = p.convert(f.perUSD)
		out.prices = append(out.prices, p)
	}
	return &out, nil
}

// convert returns the rates in another currency. One unit of the current currency equals perUnit of the other currency.
func (r Rates) convert(perUnit Amount) Rates {
	for _, field := range r.fields() {
		if *field != nil {
			converted := round(big.NewInt(int64(**field)), big.NewInt(unit), int64(perUnit))
			*field = &converted
		}
	}
	return r
}

func (r *Rates) fields() []**Amount {
	return []**Amount{
		&r.PerMinute, &r.PerMillionCharacters, &r.PerMillionPromptTokens, &r.PerMillionCachedTokens, &r.PerMillionCompletionTokens,
	}
}

// Prices returns all prices. Those of the operator come first.
func (l *List) Prices() []Price { return slices.Concat(l.own, l.prices) }

// find returns the rates for a provider's model. Prices of the operator override built-in prices. Then a price for one
// endpoint comes before a price for a kind, an exact model name before a prefix, and a longer prefix before a shorter
// one.
func (l *List) find(u pipeline.EngineUsage) (Rates, bool) {
	if l == nil {
		return Rates{}, false
	}
	id := pipeline.Engine{Provider: u.Provider, OrgID: u.OrgID}.EndpointID()
	e, model := l.endpoint(id), u.Model
	if u.Serves == "llm" && model == "" {
		model = e.Model
	}
	for _, prices := range [][]Price{l.own, l.prices} {
		var best Price
		rank := 0
		for _, p := range prices {
			if r := p.rank(e, u.Serves, id, model); r > rank {
				best, rank = p, r
			}
		}
		if rank > 0 {
			return best.Rates, true
		}
	}
	return Rates{}, false
}

// rank returns how well a price matches: higher is better, and 0 means no match.
func (p *Price) rank(e Endpoint, serves, id, model string) int {
	rank := 1
	switch {
	case p.Serves != serves:
		return 0
	case p.Provider != "" && p.Provider == id:
		rank += 2 * (maxModel + 1)
	case p.Provider != "" || p.Kind != e.Kind || p.Host != e.Host:
		return 0
	}
	if prefix, ok := strings.CutSuffix(p.Model, "*"); ok && strings.HasPrefix(model, prefix) {
		return rank + len(prefix)
	}
	if p.Model == model {
		return rank + maxModel + 1
	}
	return 0
}
