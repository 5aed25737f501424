package media

import (
	"testing"
	"time"
	"unsafe"
)

// later returns t with its monotonic reading moved by d, as if the monotonic clock had stopped for d since t was computed.
func later(t time.Time, d time.Duration) time.Time {
	type reading struct {
		_         uint64
		monotonic int64
		_         *time.Location
	}
	(*reading)(unsafe.Pointer(&t)).monotonic += int64(d) // only a suspended machine makes such a time
	return t
}

// TestIsLate checks that NotAfter passes by the monotonic or the wall clock, whichever is first.
func TestIsLate(t *testing.T) {
	now := time.Now()
	if stopped := later(now.Add(-time.Second), time.Hour); now.Sub(stopped) > 0 || now.Round(0).Sub(stopped.Round(0)) != time.Second {
		t.Fatalf("the clocks of %v do not differ", stopped)
	}
	for name, row := range map[string]struct {
		notAfter time.Time
		late     bool
	}{
		"no limit":                    {time.Time{}, false},
		"before":                      {now.Add(time.Second), false},
		"after":                       {now.Add(-time.Second), true},
		"at":                          {now, true},
		"after, without monotonic":    {now.Add(-time.Second).Round(0), true},
		"before, without monotonic":   {now.Add(time.Second).Round(0), false},
		"the monotonic clock stopped": {later(now.Add(-time.Second), time.Hour), true},
		"the wall clock was set back": {later(now.Add(time.Hour), -2*time.Hour), true},
	} {
		if late := (Target{NotAfter: row.notAfter}).IsLate(now); late != row.late {
			t.Errorf("%s: late is %v", name, late)
		}
	}
}
