// Package pricing computes what calls cost from their usage and a price list. It is pure.
package pricing

import (
	_ "embed"
	"fmt"
	"math/big"
	"strings"
)

//go:embed prices.yaml
var builtIn []byte //nolint:gochecknoglobals // read-only

const defaultCurrency = "USD"

// Rates are unit prices. An entry has those of what it serves.
type Rates struct {
	PerMinute                  *Amount `json:"per_minute,omitempty"` // of sound sent to a recognizer
	PerMillionCharacters       *Amount `json:"per_million_characters,omitempty"`
	PerMillionPromptTokens     *Amount `json:"per_million_prompt_tokens,omitempty"`
	PerMillionCachedTokens     *Amount `json:"per_million_cached_tokens,omitempty"` // nil: as other prompt tokens
	PerMillionCompletionTokens *Amount `json:"per_million_completion_tokens,omitempty"`
}

// A Price is an entry of a list: the unit prices of a model of a provider.
type Price struct {
	Kind     string // of endpoint; empty if Provider is set
	Host     string // of the endpoint's URL; empty for the kind's own address
	Provider string // name of one endpoint
	Serves   string // "asr", "llm" or "tts"
	Model    string // exact, or a prefix and "*"; empty for the default model
	Source   string // address of the page with the price
	Rates
}

// An Endpoint is what a list knows of a provider.
type Endpoint struct {
	Kind string
	Host string // of its URL; empty for the kind's own address
}

// A List holds prices. It is read-only.
type List struct {
	Currency string // such as "USD"
	AsOf     string // date, such as "2026-11-23"

	own       []Price // of the operator; they win
	prices    []Price
	endpoints map[string]Endpoint
}

// BuiltIn returns the built-in list for endpoints by name.
func BuiltIn(endpoints map[string]Endpoint) (*List, error) {
	f, err := parse(builtIn)
	if err != nil {
		return nil, fmt.Errorf("built-in prices: %w", err)
	}
	return &List{Currency: f.currency, AsOf: f.asOf, prices: f.prices, endpoints: endpoints}, nil
}

// Extend returns the list with the prices of an operator's file, which win. A file in another
// currency converts the list.
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
			return nil, fmt.Errorf("per_usd: accepted with another currency than %s", l.Currency)
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

// convert returns the rates in a currency of which perUnit cost one unit of the present one.
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

// find returns the unit prices of a provider's model. The operator's prices win over built-in ones, then those of
// an endpoint over those of a kind, then exact models over prefixes, and longer prefixes over shorter ones.
func (l *List) find(serves, provider, model string) (Rates, bool) {
	if l == nil {
		return Rates{}, false
	}
	e := l.endpoints[provider]
	for _, prices := range [][]Price{l.own, l.prices} {
		var best Price
		rank := 0
		for _, p := range prices {
			if r := p.rank(e, serves, provider, model); r > rank {
				best, rank = p, r
			}
		}
		if rank > 0 {
			return best.Rates, true
		}
	}
	return Rates{}, false
}

// rank returns how well a price fits; 0 means not.
func (p *Price) rank(e Endpoint, serves, provider, model string) int {
	rank := 1
	switch {
	case p.Serves != serves:
		return 0
	case p.Provider != "" && p.Provider == provider:
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
