package dtmf

import "testing"

func TestEvents(t *testing.T) {
	type event struct {
		ts       uint32
		code     byte
		end      bool
		duration uint16
		marker   bool
	}
	press := func(ts uint32, code byte) []event {
		return []event{
			{ts, code, false, 160, true},
			{ts, code, false, 320, false},
			{ts, code, false, 480, false},
			{ts, code, true, 640, false},
			{ts, code, true, 640, false},
			{ts, code, true, 640, false},
		}
	}
	join := func(parts ...[]event) (all []event) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for name, row := range map[string]struct {
		events []event
		want   string
	}{
		"one key":            {press(1000, 5), "5"},
		"the same again":     {join(press(1000, 5), press(9000, 5)), "55"},
		"all":                {join(press(1, 0), press(2000, 9), press(4000, 10), press(6000, 11), press(8000, 12), press(9999, 15)), "09*#AD"},
		"only an end":        {press(1000, 7)[5:], "7"},
		"lost ends":          {join(press(1000, 7)[:2], press(3000, 7)[:1]), "77"},
		"lost marker":        {join(press(1000, 7)[1:], press(3000, 8)[1:]), "78"},
		"end overtakes":      {[]event{{1000, 3, true, 640, false}, {1000, 3, false, 480, false}}, "3"},
		"old key comes late": {join(press(3000, 4), press(1000, 2)[5:]), "4"},
		"held for long":      {[]event{{0, 6, false, 0xffff, true}, {0xffff, 6, false, 800, false}, {0xffff, 6, true, 1600, false}}, "6"},
		"no key":             {press(1000, 16), ""},
		"wraps":              {join(press(0xffffff00, 1), press(0x2000, 2)), "12"},
		"clock set back":     {join(press(92640, 11), press(17632, 0), press(85760, 10)), "#0*"},
	} {
		var d EventDecoder
		got := ""
		for _, e := range row.events {
			flags := byte(10)
			if e.end {
				flags |= 0x80
			}
			if key, pressed := d.Decode(1, e.ts, e.marker, []byte{e.code, flags, byte(e.duration >> 8), byte(e.duration)}); pressed {
				got += string(key)
			}
		}
		if got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
	var d EventDecoder
	if _, pressed := d.Decode(0, 0, false, []byte{1, 2, 3}); pressed {
		t.Error("got a digit from a truncated event, want none")
	}
}
