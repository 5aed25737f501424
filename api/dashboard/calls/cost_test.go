package calls_test

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/api/dashboard/dashtest"
	"github.com/parley-voice/parley/control/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestCost: the page of a call shows each item with its price, the total, and what has no price.
func TestCost(t *testing.T) {
	h := dashtest.New(t)
	h.Furnish(t, "sales")
	b := h.SignIn(t, "oscar")
	text := b.Get("calls/call_1").Text()
	for _, want := range []string{
		"0.0251 USD, prices of Nov 23, 2026", "Speech-to-text sales", "60 s", "0.0077 per minute", "Model sales sales, for the analysis",
		"1,840 tokens in (1,200 cached), 61 out", "0.1 in, 0.01 cached, 0.5 out, per million", "0.0001065", "1 character", "50 per million",
		"0.00005", "Trunk, callee 60 s 0.017137 per minute 0.017137", "Not included, because the price list lacks it: Voice sales fallback, Trunk.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if text := b.Get("calls/call_2").Text(); strings.Contains(text, "Cost") {
		t.Errorf("a running call: %s", text)
	}
}
