package dialog

import (
	"testing"
	"time"
)

func TestParseSessionExpires(t *testing.T) {
	for value, want := range map[string]SessionExpires{
		"1800":                   {1800 * time.Second, Unspecified},
		" 90 ;refresher=uas":     {90 * time.Second, UAS},
		"300; Refresher = UAC ":  {300 * time.Second, UAC},
		"4294967295;x=y":         {maxSessionInterval, Unspecified},
		"600;x;refresher=uas;lr": {600 * time.Second, UAS},
	} {
		if got, err := ParseSessionExpires(value); err != nil || got != want {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"", "x", "-1", "1.5", "90;refresher=both", "99999999999"} {
		if got, err := ParseSessionExpires(value); err == nil {
			t.Errorf("%q: %v", value, got)
		}
	}
	if got := (SessionExpires{90 * time.Second, UAS}).String(); got != "90;refresher=uas" {
		t.Error(got)
	}
}

// TestScheduleFromResponse checks who refreshes after a 2xx to our request.
func TestScheduleFromResponse(t *testing.T) {
	for name, row := range map[string]struct {
		header *SessionExpires
		want   RefreshSchedule
	}{
		"none":          {nil, RefreshSchedule{}},
		"ours":          {&SessionExpires{300 * time.Second, UAC}, RefreshSchedule{300 * time.Second, true}},
		"theirs":        {&SessionExpires{300 * time.Second, UAS}, RefreshSchedule{300 * time.Second, false}},
		"unspecified":   {&SessionExpires{300 * time.Second, Unspecified}, RefreshSchedule{300 * time.Second, true}},
		"far too short": {&SessionExpires{2 * time.Second, UAC}, RefreshSchedule{MinSessionInterval, true}},
	} {
		if got := ScheduleFromResponse(row.header, MinSessionInterval); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

// TestNegotiateTimer checks the table of RFC 4028 section 9.
func TestNegotiateTimer(t *testing.T) {
	const s = time.Second
	for name, row := range map[string]struct {
		header    *SessionExpires
		supported bool
		interval  SessionExpires
		term      RefreshSchedule
		ok        bool
	}{
		"none":                           {nil, true, SessionExpires{}, RefreshSchedule{}, true},
		"peer refreshes":                 {&SessionExpires{120 * s, UAC}, true, SessionExpires{120 * s, UAC}, RefreshSchedule{120 * s, false}, true},
		"we refresh":                     {&SessionExpires{120 * s, UAS}, true, SessionExpires{120 * s, UAS}, RefreshSchedule{120 * s, true}, true},
		"unspecified, peer supports":     {&SessionExpires{120 * s, Unspecified}, true, SessionExpires{120 * s, UAC}, RefreshSchedule{120 * s, false}, true},
		"peer does not support":          {&SessionExpires{120 * s, Unspecified}, false, SessionExpires{120 * s, UAS}, RefreshSchedule{120 * s, true}, true},
		"added by a proxy":               {&SessionExpires{120 * s, UAC}, false, SessionExpires{120 * s, UAS}, RefreshSchedule{120 * s, true}, true},
		"too short":                      {&SessionExpires{60 * s, UAC}, true, SessionExpires{}, RefreshSchedule{}, false},
		"too short, peer without timers": {&SessionExpires{60 * s, Unspecified}, false, SessionExpires{MinSessionInterval, UAS}, RefreshSchedule{MinSessionInterval, true}, true},
	} {
		i, term, ok := NegotiateTimer(row.header, row.supported, MinSessionInterval)
		if i != row.interval || term != row.term || ok != row.ok {
			t.Errorf("%s: %+v, %+v, %v", name, i, term, ok)
		}
	}
}

func TestScheduleTimes(t *testing.T) {
	for _, row := range []struct {
		term            RefreshSchedule
		refresh, expiry time.Duration
	}{
		{RefreshSchedule{1800 * time.Second, true}, 900 * time.Second, 1800 * time.Second},
		{RefreshSchedule{1800 * time.Second, false}, 900 * time.Second, 1768 * time.Second},
		{RefreshSchedule{90 * time.Second, false}, 45 * time.Second, 60 * time.Second},
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
		i, err := ParseSessionExpires(value)
		if err != nil {
			return
		}
		if again, err := ParseSessionExpires(i.String()); err != nil || again != i {
			t.Fatalf("%q is %+v, which is %+v, %v", value, i, again, err)
		}
	})
}
