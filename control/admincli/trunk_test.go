package admincli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestProfiles checks the list, one profile as text and as JSON, and an unknown name.
func TestProfiles(t *testing.T) {
	run := func(c Profiles) (string, error) {
		var out bytes.Buffer
		err := c.Run(&Console{Out: &out})
		return out.String(), err
	}
	for name, row := range map[string]struct {
		c    Profiles
		want []string
	}{
		"list":    {Profiles{}, []string{"NAME", "twilio-secure", "2026-"}},
		"one":     {Profiles{Name: "twilio"}, []string{"enter sip:NAME.pstn.twilio.com", `["168.86.128.0/18"]`, "https://www.twilio.com/docs/sip-trunking/troubleshooting", "as quoted by others", "403 No International Authorization", "Ask the carrier:"}},
		"as JSON": {Profiles{Name: "telnyx", JSON: true}, []string{`"realm": "sip.telnyx.com"`, `"source": "https://sip.telnyx.com"`, `"checked": "2026-`}},
	} {
		out, err := run(row.c)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range row.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %s in\n%s", name, want, out)
			}
		}
		if row.c.JSON && !json.Valid([]byte(out)) {
			t.Errorf("%s: no JSON: %s", name, out)
		}
	}
	if _, err := run(Profiles{Name: "twillio"}); err == nil || !strings.Contains(err.Error(), `profile "twillio" (did you mean twilio?)`) {
		t.Errorf("an unknown name: %v", err)
	}
}
