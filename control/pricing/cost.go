package pricing

import (
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/parley-voice/parley/pipeline"
)

// Cost is the cost of a call, in the form that the database and the API use.
type Cost struct {
	Amount     Amount     `json:"amount"` // sum of Items and Trunk
	Currency   string     `json:"currency"`
	PricesAsOf string     `json:"prices_as_of"` // date of the price list
	Items      []Item     `json:"items"`
	Trunk      *Trunk     `json:"trunk"`    // null if no trunk was used
	Unpriced   []Unpriced `json:"unpriced"` // usage without a price; not part of Amount
}

// Usage is the use of one model of one provider.
type Usage = pipeline.EngineUsage

// ForAnalysis is the value of Purpose for the analysis of a call.
const ForAnalysis = pipeline.ForAnalysis

// Item is the usage of one model, with its cost.
type Item struct {
	pipeline.EngineUsage
	Rates
	Amount Amount `json:"amount"`
}

// Trunk is the cost of the minutes on a trunk.
type Trunk struct {
	Seconds float64    `json:"seconds"`
	Amount  Amount     `json:"amount"`
	Legs    []TrunkLeg `json:"legs"`
}

// TrunkLeg is an answered leg on a trunk.
type TrunkLeg struct {
	Leg       string  `json:"leg"` // "callee" or "transfer"
	Seconds   float64 `json:"seconds"`
	PerMinute *Amount `json:"per_minute"` // null if the trunk has no rate for the number
	Amount    Amount  `json:"amount"`
}

// Unpriced names usage for which the list has no price.
type Unpriced struct {
	Serves   string `json:"serves"` // "asr", "llm", "tts" or "trunk"
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
}

// NewTrunkLeg returns a leg that lasted for answered. A nil perMinute means that the trunk has no rate for the number.
func NewTrunkLeg(leg string, answered time.Duration, perMinute *float64) TrunkLeg {
	out := TrunkLeg{Leg: leg, Seconds: Hundredths(max(answered, 0).Seconds())}
	if perMinute != nil {
		rate := Round(*perMinute)
		out.PerMinute, out.Amount = &rate, perTime(rate, out.Seconds)
	}
	return out
}

// Cost returns the cost of usage and trunk legs. With a nil list, all provider usage is unpriced.
func (l *List) Cost(usage []pipeline.EngineUsage, legs []TrunkLeg) Cost {
	c := Cost{Currency: defaultCurrency, Items: []Item{}, Unpriced: []Unpriced{}}
	if l != nil {
		c.Currency, c.PricesAsOf = l.Currency, l.AsOf
	}
	l.Add(&c, usage)
	for _, leg := range legs {
		if leg.PerMinute == nil {
			c.addUnpriced(Unpriced{Serves: "trunk"})
		}
		if c.Trunk == nil {
			c.Trunk = &Trunk{}
		}
		c.Trunk.Seconds = Hundredths(c.Trunk.Seconds + leg.Seconds)
		c.Trunk.Amount += leg.Amount
		c.Trunk.Legs = append(c.Trunk.Legs, leg)
		c.Amount += leg.Amount
	}
	return c
}

// Add adds usage to a cost. Items that c contains already keep their prices. If c is in another currency than the list,
// the added usage is unpriced.
func (l *List) Add(c *Cost, usage []pipeline.EngineUsage) {
	for _, u := range usage {
		rates, ok := l.find(u)
		if !ok || l.Currency != c.Currency {
			c.addUnpriced(Unpriced{u.Serves, u.Provider, u.Model})
			continue
		}
		item := Item{u, rates, rates.amount(u)}
		c.Items = append(c.Items, item)
		c.Amount += item.Amount
	}
}

// ByService returns the cost by service: "asr", "llm", "tts" and "trunk".
func (c *Cost) ByService() map[string]Amount {
	all := map[string]Amount{}
	for _, item := range c.Items {
		all[item.Serves] += item.Amount
	}
	if c.Trunk != nil {
		all["trunk"] += c.Trunk.Amount
	}
	return all
}

func (c *Cost) addUnpriced(u Unpriced) {
	if !slices.Contains(c.Unpriced, u) {
		c.Unpriced = append(c.Unpriced, u)
	}
}

// Hundredths rounds seconds to hundredths. Usage is stored and charged with this precision.
func Hundredths(seconds float64) float64 { return math.Round(seconds*100) / 100 }

// amount returns the cost of usage. It rounds only once, at the end.
func (r Rates) amount(u pipeline.EngineUsage) Amount {
	switch u.Serves {
	case "asr":
		return perTime(*r.PerMinute, u.Seconds)
	case "tts":
		return perMillion(part{*r.PerMillionCharacters, u.Characters})
	default:
		cached := *r.PerMillionPromptTokens
		if r.PerMillionCachedTokens != nil {
			cached = *r.PerMillionCachedTokens
		}
		fromCache := min(u.CachedTokens, u.PromptTokens)
		return perMillion(part{*r.PerMillionPromptTokens, u.PromptTokens - fromCache}, part{cached, fromCache},
			part{*r.PerMillionCompletionTokens, u.CompletionTokens})
	}
}

// part is a quantity and its price per million.
type part struct {
	price Amount
	n     int
}

func perMillion(parts ...part) Amount {
	sum := new(big.Int)
	for _, p := range parts {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(int64(p.price)), big.NewInt(int64(p.n))))
	}
	return round(sum, big.NewInt(1_000_000), 1)
}

// perTime returns the cost of a duration. It charges hundredths of a second.
func perTime(perMinute Amount, seconds float64) Amount {
	n := new(big.Int).Mul(big.NewInt(int64(perMinute)), big.NewInt(int64(math.Round(seconds*100))))
	return round(n, big.NewInt(6000), 1)
}
