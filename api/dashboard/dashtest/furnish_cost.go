package dashtest

import (
	"github.com/parley-voice/parley/control/pricing"
)

// cost returns a cost with every kind of item, of a call of a minute. name is the name of all providers.
func cost(name string) pricing.Cost {
	perMinute, perMillion, trunk := pricing.Round(0.0077), pricing.Round(50), pricing.Round(0.017137)
	in, cached, out := pricing.Round(0.1), pricing.Round(0.01), pricing.Round(0.5)
	model := pricing.Usage{
		Serves: "llm", Provider: name, Model: name, Requests: 2, PromptTokens: 1840, CachedTokens: 1200, CompletionTokens: 61,
	}
	analysis := model
	analysis.Purpose = pricing.ForAnalysis
	tokens := pricing.Rates{PerMillionPromptTokens: &in, PerMillionCachedTokens: &cached, PerMillionCompletionTokens: &out}
	return pricing.Cost{
		Amount: pricing.Round(0.0251), Currency: "USD", PricesAsOf: "2026-11-23",
		Items: []pricing.Item{
			{
				EngineUsage: pricing.Usage{Serves: "asr", Provider: name, Requests: 1, Seconds: 60},
				Rates:       pricing.Rates{PerMinute: &perMinute}, Amount: perMinute,
			},
			{EngineUsage: model, Rates: tokens, Amount: pricing.Round(0.0001065)},
			{EngineUsage: analysis, Rates: tokens, Amount: pricing.Round(0.0001065)},
			{
				EngineUsage: pricing.Usage{Serves: "tts", Provider: name, Requests: 1, Characters: 1},
				Rates:       pricing.Rates{PerMillionCharacters: &perMillion}, Amount: pricing.Round(0.00005),
			},
		},
		Trunk: &pricing.Trunk{
			Seconds: 61, Amount: trunk,
			Legs: []pricing.TrunkLeg{{Leg: "callee", Seconds: 60, PerMinute: &trunk, Amount: trunk}, {Leg: "transfer", Seconds: 1}},
		},
		Unpriced: []pricing.Unpriced{{Serves: "tts", Provider: name, Model: "fallback"}, {Serves: "trunk"}},
	}
}
