package timer

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for value, want := range map[string]Interval{
		"1800":                   {1800 * time.Second, Unspecified},
		" 90 ;refresher=uas":     {90 * time.Second, UAS},
		"300; Refresher = UAC ":  {300 * time.Second, UAC},
		"4294967295;x=y":         {maxInterval, Unspecified},
		"600;x;refresher=uas;lr": {600 * time.Second, UAS},
	} {
		if got, err := Parse(value); err != nil || got != want {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"", "x", "-1", "1.5", "90;refresher=both", "99999999999"} {
		if got, err := Parse(value); err == nil {
			t.Errorf("%q: %v", value, got)
		}
	}
	if got := (Interval{90 * time.Second, UAS}).String(); got != "90;refresher=uas" {
		t.Error(got)
	}
}

// TestFromResponse checks who refreshes after a 2xx to our request.
func TestFromResponse(t *testing.T) {
	for name, row := range map[string]struct {
		header *Interval
		want   Schedule
	}{
		"none":          {nil, Schedule{}},
		"ours":          {&Interval{300 * time.Second, UAC}, Schedule{300 * time.Second, true}},
		"theirs":        {&Interval{300 * time.Second, UAS}, Schedule{300 * time.Second, false}},
		"unspecified":   {&Interval{300 * time.Second, Unspecified}, Schedule{300 * time.Second, true}},
		"far too short": {&Interval{2 * time.Second, UAC}, Schedule{MinInterval, true}},
	} {
		if got := FromResponse(row.header, MinInterval); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

// TestNegotiate checks the table of RFC 4028 section 9.
func TestNegotiate(t *testing.T) {
	const s = time.Second
	for name, row := range map[string]struct {
		header    *Interval
		supported bool
		interval  Interval
		term      Schedule
		ok        bool
	}{
		"none":                           {nil, true, Interval{}, Schedule{}, true},
		"peer refreshes":                 {&Interval{120 * s, UAC}, true, Interval{120 * s, UAC}, Schedule{120 * s, false}, true},
		"we refresh":                     {&Interval{120 * s, UAS}, true, Interval{120 * s, UAS}, Schedule{120 * s, true}, true},
		"unspecified, peer supports":     {&Interval{120 * s, Unspecified}, true, Interval{120 * s, UAC}, Schedule{120 * s, false}, true},
		"peer does not support":          {&Interval{120 * s, Unspecified}, false, Interval{120 * s, UAS}, Schedule{120 * s, true}, true},
		"added by a proxy":               {&Interval{120 * s, UAC}, false, Interval{120 * s, UAS}, Schedule{120 * s, true}, true},
		"too short":                      {&Interval{60 * s, UAC}, true, Interval{}, Schedule{}, false},
		"too short, peer without timers": {&Interval{60 * s, Unspecified}, false, Interval{MinInterval, UAS}, Schedule{MinInterval, true}, true},
	} {
		i, term, ok := Negotiate(row.header, row.supported, MinInterval)
		if i != row.interval || term != row.term || ok != row.ok {
			t.Errorf("%s: %+v, %+v, %v", name, i, term, ok)
		}
	}
}

func TestScheduleTimes(t *testing.T) {
	for _, row := range []struct {
		term            Schedule
		refresh, expiry time.Duration
	}{
		{Schedule{1800 * time.Second, true}, 900 * time.Second, 1800 * time.Second},
		{Schedule{1800 * time.Second, false}, 900 * time.Second, 1768 * time.Second},
		{Schedule{90 * time.Second, false}, 45 * time.Second, 60 * time.Second},
	} {
		if row.term.RefreshAfter() != row.refresh || row.term.ExpireAfter() != row.expiry {
			t.Errorf("%+v: refresh %v, expiry %v", row.term, row.term.RefreshAfter(), row.term.ExpireAfter())
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1800;refresher=uac")
	f.Add("90 ; x = y")
	f.Fuzz(func(t *testing.T, value string) {
		i, err := Parse(value)
		if err != nil {
			return
		}
		if again, err := Parse(i.String()); err != nil || again != i {
			t.Fatalf("%q is %+v, which is %+v, %v", value, i, again, err)
		}
	})
}
