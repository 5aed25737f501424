package benchcli

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/bench/scenario"
)

// TestStrayOptions checks that an option without effect is rejected, not ignored.
func TestStrayOptions(t *testing.T) {
	for want, c := range map[string]Turns{
		"": {Only: []scenario.Name{scenario.Plain}, Pauses: 5, Without: []string{"merging"}, Worst: "x", Peer: scenario.SIP},
		"--only cannot be combined with --scenario":     {Only: []scenario.Name{scenario.Plain}, Scenario: []string{"plain"}},
		"--pauses cannot be combined with --scenario":   {Pauses: 5, Scenario: []string{"plain"}},
		"--without cannot":                              {Without: []string{"merging"}, Other: Other{Target: "sip:a@b"}},
		"--patience cannot be combined with --scenario": {Patience: "quick", Scenario: []string{"plain"}},
		"combined with --target":                        {Worst: "x", Other: Other{Target: "sip:a@b"}},
		"--scenario cannot":                             {Scenario: []string{"plain"}, Other: Other{Target: "sip:a@b"}},
		"--peer cannot":                                 {Peer: scenario.Web, Other: Other{Target: "sip:a@b"}},
		`--peer "fax": accepted`:                        {Peer: "fax"},
	} {
		if err := c.check(); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, c := range []Turns{{Scenario: []string{"plain"}, Peer: scenario.Web, Calls: 3}, {Other: Other{Target: "sip:a@b"}, Calls: 3}} {
		if err := c.check(); err != nil {
			t.Error(err)
		}
	}
}
