package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
)

func TestDestination(t *testing.T) {
	anywhere := strings.Split("0123456789", "")
	for _, tt := range []struct {
		digits  string
		allowed []string
		want    control.Code
	}{
		{"12025550123", anywhere, ""},
		{"2025550123", anywhere, ""},
		{"442071838750", anywhere, ""},
		{"77011234567", anywhere, ""},
		{"87011234567", anywhere, ""},
		{"12025550123", []string{"1"}, ""},
		{"12025550123", []string{"44", "1202"}, ""},
		{"12025550123", []string{"44"}, control.CodeDestinationNotAllowed},
		{"2025550123", []string{"1"}, control.CodeDestinationNotAllowed},
		{"12025550123", []string{"US"}, ""},
		{"17875550123", []string{"US"}, ""}, // number of Puerto Rico
		{"14165550123", []string{"US"}, control.CodeDestinationNotAllowed},
		{"14165550123", []string{"US", "CA"}, ""},
		{"18095550123", []string{"US", "CA"}, control.CodeDestinationNotAllowed},
		{"18765550123", []string{"1"}, ""},
		{"18765550123", []string{"US", "1876"}, ""},
		{"442071838750", []string{"US"}, control.CodeDestinationNotAllowed},
		{"12025550123", nil, control.CodeDestinationNotAllowed}, // subgroup without allowed destinations
		{"", anywhere, control.CodeDestinationInvalid},
		{strings.Repeat("1", 21), anywhere, control.CodeDestinationInvalid},
		{"120255501231", []string{"1"}, control.CodeDestinationInvalid},
		{"1202555012", []string{"1"}, control.CodeDestinationInvalid},
		{"+1 202 555 0123 ext 5", []string{"1"}, control.CodeDestinationInvalid},
		{"+44 20 7183 8750 x5", []string{"1"}, control.CodeDestinationInvalid},
		{"02071838750", anywhere, control.CodeDestinationInvalid}, // national number without country code
		// Emergency numbers, N11 codes and short codes.
		{"911", anywhere, control.CodeDestinationNotAllowed},
		{"112", anywhere, control.CodeDestinationNotAllowed},
		{"999", anywhere, control.CodeDestinationNotAllowed},
		{"101", anywhere, control.CodeDestinationNotAllowed},
		{"411", []string{"4"}, control.CodeDestinationNotAllowed},
		{"1911", anywhere, control.CodeDestinationNotAllowed},
		{"44999", anywhere, control.CodeDestinationNotAllowed},
		{"123456", anywhere, control.CodeDestinationNotAllowed},
		{"12029110123", anywhere, control.CodeDestinationNotAllowed},
		// Premium-rate numbers.
		{"19005550123", []string{"1"}, control.CodeDestinationNotAllowed},
		{"9005550123", anywhere, control.CodeDestinationNotAllowed},
		{"12029760123", anywhere, control.CodeDestinationNotAllowed},
		{"449098765432", anywhere, control.CodeDestinationNotAllowed},
		{"01119005550123", anywhere, control.CodeDestinationNotAllowed},
		{"4990012345678", anywhere, control.CodeDestinationNotAllowed},
		{"78091234567", anywhere, control.CodeDestinationNotAllowed},
		{"88091234567", anywhere, control.CodeDestinationNotAllowed},
		{"979123456789", anywhere, control.CodeDestinationNotAllowed},
		{"00979123456789", anywhere, control.CodeDestinationNotAllowed},
		// Satellite networks.
		{"881612345678", anywhere, control.CodeDestinationNotAllowed},
		{"88213123456", anywhere, control.CodeDestinationNotAllowed},
		{"870773123456", anywhere, control.CodeDestinationNotAllowed},
		{"011870773123456", anywhere, control.CodeDestinationNotAllowed},
		{"0088213123456", anywhere, control.CodeDestinationNotAllowed},
		{"8816123456", anywhere, control.CodeDestinationNotAllowed},
		// Allowed numbers that resemble blocked ones: Hawaii, Arkansas, Texas, Houston, Pittsburgh, a Russian mobile
		// phone.
		{"18085550123", anywhere, ""},
		{"8085550123", anywhere, ""},
		{"8705550123", anywhere, ""},
		{"9795550123", anywhere, ""},
		{"13469550123", anywhere, ""},
		{"3469550123", anywhere, ""},
		{"18785550123", anywhere, ""},
		{"79001234567", anywhere, ""},
		{"447911123456", anywhere, ""},
	} {
		err := CheckDestination(tt.digits, tt.allowed)
		got := control.Code("")
		if err != nil {
			got = control.CodeOf(err)
		}
		if got != tt.want {
			t.Errorf("%s of %v: %q, want %q", tt.digits, tt.allowed, got, tt.want)
		}
	}
}

func FuzzDestination(f *testing.F) {
	f.Add("+1 (202) 555-0123", "1")
	f.Add("911", "")
	f.Add("0088213123456", "8")
	f.Fuzz(func(t *testing.T, to, allowed string) {
		digits := control.Digits(to)
		err := CheckDestination(digits, []string{control.Digits(allowed)})
		if err == nil && (len(digits) < minDigits || len(digits) > maxDigits || !strings.HasPrefix(digits, control.Digits(allowed))) {
			t.Errorf("%q is let through for %q", to, allowed)
		}
		if err == nil && strings.HasPrefix(digits, "1900") && len(digits) == 11 {
			t.Errorf("%q is premium rate", to)
		}
	})
}

func TestDrainTime(t *testing.T) {
	for _, tt := range []struct {
		depth, drained int
		want           time.Duration
	}{{1000, 0, 60 * time.Second}, {1, 1000, time.Second}, {100, 300, 20 * time.Second}, {10, 60, 10 * time.Second}, {1000, 1, 60 * time.Second}} {
		if got := drainTime(tt.depth, tt.drained); got != tt.want {
			t.Errorf("%d waiting, %d drained a minute: %v, want %v", tt.depth, tt.drained, got, tt.want)
		}
	}
}

func TestRingSeconds(t *testing.T) {
	if s, err := ringSeconds(nil); s != 45 || err != nil {
		t.Errorf("without a value: %d %v", s, err)
	}
	for s, ok := range map[float64]bool{4: false, 5: true, 45: true, 120: true, 121: false, 5.5: false, -5: false, 1e300: false} {
		if _, err := ringSeconds(&s); (err == nil) != ok {
			t.Errorf("%v: %v", s, err)
		}
	}
}

func TestChoose(t *testing.T) {
	in, out := route{id: "in", attached: true}, route{id: "out"}
	for _, tt := range []struct {
		all   []route
		named bool
		id    string
		code  control.Code
	}{
		{nil, true, "", control.CodeSubgroupNotFound},
		{nil, false, "", control.CodeAgentNotInSubgroup},
		{[]route{out}, true, "", control.CodeAgentNotInSubgroup},
		{[]route{out, in}, false, "in", ""},
		{[]route{in, in}, false, "", control.CodeAgentSubgroupAmbig},
	} {
		r, err := choose(tt.all, tt.named)
		if r.id != tt.id || (err == nil) != (tt.code == "") || err != nil && control.CodeOf(err) != tt.code {
			t.Errorf("%v named %v: %q %v", tt.all, tt.named, r.id, err)
		}
	}
}
