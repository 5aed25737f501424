package command

import (
	"strings"
	"testing"

	"github.com/parley-voice/parley/bench/scene"
	"github.com/parley-voice/parley/bench/script"
)

// TestStrayOptions: what is of no use beside something else is refused, not left
// aside.
func TestStrayOptions(t *testing.T) {
	for want, c := range map[string]Turns{
		"":                         {Only: []script.Name{script.Plain}, Pauses: 5, Without: []string{"merging"}, Worst: "x", Peer: scene.SIP},
		"--only: of no use beside": {Only: []script.Name{script.Plain}, Scenario: []string{"plain"}},
		"beside --scenario":        {Pauses: 5, Scenario: []string{"plain"}},
		"--without: ":              {Without: []string{"merging"}, Other: Other{Target: "sip:a@b"}},
		"beside --target":          {Worst: "x", Other: Other{Target: "sip:a@b"}},
		"--scenario: ":             {Scenario: []string{"plain"}, Other: Other{Target: "sip:a@b"}},
		"--peer: ":                 {Peer: scene.Web, Other: Other{Target: "sip:a@b"}},
		`--peer "fax": accepted`:   {Peer: "fax"},
	} {
		if err := c.check(); (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, c := range []Turns{{Scenario: []string{"plain"}, Peer: scene.Web, Calls: 3}, {Other: Other{Target: "sip:a@b"}, Calls: 3}} {
		if err := c.check(); err != nil {
			t.Error(err)
		}
	}
}
