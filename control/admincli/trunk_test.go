package admincli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-voice/parley/control/apply"
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
		"list": {Profiles{}, []string{"NAME", "twilio-secure", "2026-"}},
		"one": {Profiles{Name: "twilio"}, []string{
			`    proxy: "sip:change-me.pstn.twilio.com"   # your Termination SIP URI`, "    media_sources: [168.86.128.0/18]\n", "    limits: {calls_per_second: 1}\n",
			"https://www.twilio.com/docs/sip-trunking/troubleshooting", "as quoted by others", "403 No International Authorization: the country", "488 Secure media required:", "Ask the carrier about:",
		}},
		"codes":   {Profiles{Name: "telnyx"}, []string{"403 D1, D2, D3, D22: more concurrent calls", "limits: {calls_per_second: 20, concurrent_calls: 2}"}},
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
		if !row.c.JSON && strings.ContainsAny(out, `\$`) {
			t.Errorf("%s: a regular expression in\n%s", name, out)
		}
		if row.c.JSON && !json.Valid([]byte(out)) {
			t.Errorf("%s: no JSON: %s", name, out)
		}
	}
	all, err := apply.AllCarriers()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		out, err := run(Profiles{Name: p.Name})
		if err != nil {
			t.Fatal(err)
		}
		_, pasted, _ := strings.Cut(out, "under trunks:\n")
		pasted, _, _ = strings.Cut(pasted, "\nThe line")
		s, err := apply.Parse(strings.NewReader("organizations:\n- name: main\n  trunks:\n" + pasted))
		if err != nil || *s.Organizations[0].Trunks[0].Carrier != p.Name {
			t.Errorf("%s: the YAML cannot be pasted: %v\n%s", p.Name, err, pasted)
		}
	}
	if _, err := run(Profiles{Name: "twillio"}); err == nil || !strings.Contains(err.Error(), `profile "twillio" (did you mean twilio?)`) {
		t.Errorf("an unknown name: %v", err)
	}
}
