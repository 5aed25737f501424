package apikeys

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// ageRequests moves the times of counted requests into the past.
func ageRequests(t interface {
	Context() context.Context
	Fatal(args ...any)
}, d *db.DB, by time.Duration,
) {
	if _, err := d.Pool.Exec(t.Context(), "UPDATE rate_requests SET at = at - make_interval(secs => $1)", by.Seconds()); err != nil {
		t.Fatal(err)
	}
}

func TestLimiterSlidingWindow(t *testing.T) {
	d := dbtest.New(t)
	l := &Limiter{Pool: d.Pool}
	for _, tt := range []struct {
		after     time.Duration // time since the previous row
		limit     int
		ok        bool
		remaining int
	}{
		{0, 2, true, 1},
		{30 * time.Second, 2, true, 0},
		{0, 2, false, 0},
		{28 * time.Second, 2, false, 0},
		{0, 3, true, 0}, // the new limit of 3 applies from this request on
		{0, 1, false, 0},
		{2 * time.Second, 3, true, 0}, // the first request has left the window
		{0, 3, false, 0},
		{90 * time.Second, 3, true, 2},
	} {
		ageRequests(t, d, tt.after)
		q, ok, err := l.Admit(t.Context(), "k", tt.limit)
		if err != nil || ok != tt.ok || q.Remaining != tt.remaining || q.Limit != tt.limit || time.Until(q.Reset) > Window+time.Second {
			t.Errorf("%+v: %v %+v, %v", tt, ok, q, err)
		}
	}
	if _, ok, err := l.Admit(t.Context(), "other", 1); !ok || err != nil {
		t.Errorf("keys share a count: %v", err)
	}
	if q, ok, err := (&Limiter{}).Admit(t.Context(), "k", 0); !ok || err != nil || q.Limit != 0 {
		t.Error("no limit asks the database")
	}
}

// TestLimiterInAnyWindow checks that no window contains more accepted requests than the limit allows, even if the limit
// changes. It also checks that a key is usable again after a window without requests.
func TestLimiterInAnyWindow(t *testing.T) {
	d := dbtest.New(t)
	l := &Limiter{Pool: d.Pool}
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		key := fmt.Sprint(run)
		var admitted []time.Duration
		now := time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(rt, "requests") {
			pause := time.Duration(rapid.IntRange(0, 20).Draw(rt, "pause")) * time.Second
			limit := rapid.IntRange(1, 5).Draw(rt, "limit")
			ageRequests(rt, d, pause)
			now += pause
			in := 0
			for _, at := range admitted {
				if at > now-Window {
					in++
				}
			}
			_, ok, err := l.Admit(t.Context(), key, limit)
			// Real time passes during the test. Within one second of the window's edge, both results are correct.
			edge := false
			for _, at := range admitted {
				edge = edge || math.Abs((now-at-Window).Seconds()) < 1
			}
			if err != nil || !edge && ok != (in < limit) {
				rt.Fatalf("%d of %d in the window: %v, %v", in, limit, ok, err)
			}
			if ok {
				admitted = append(admitted, now)
			}
		}
		ageRequests(rt, d, Window)
		if _, ok, err := l.Admit(t.Context(), key, 1); !ok || err != nil {
			rt.Fatalf("refused a window later: %v", err)
		}
	})
}

// TestLimiterOfManyProcesses checks that the limit is exact when several processes count at the same time.
func TestLimiterOfManyProcesses(t *testing.T) {
	url := dbtest.URL(t)
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 3 {
		d, err := db.Open(t.Context(), db.Config{URL: url, MaxConns: 6})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		l := &Limiter{Pool: d.Pool}
		for range 40 {
			all.Go(func() {
				if _, ok, err := l.Admit(t.Context(), "k", 50); err != nil {
					t.Error(err)
				} else if ok {
					admitted.Add(1)
				}
			})
		}
	}
	all.Wait()
	if n := admitted.Load(); n != 50 {
		t.Errorf("%d of 120 requests were admitted, the limit is 50", n)
	}
}

// TestLimiterSweep checks that Sweep deletes only the counts that have left the window.
func TestLimiterSweep(t *testing.T) {
	d := dbtest.New(t)
	l := &Limiter{Pool: d.Pool}
	admit := func(key string, want bool) {
		t.Helper()
		if _, ok, err := l.Admit(t.Context(), key, 2); err != nil || ok != want {
			t.Errorf("%s: %v, %v", key, ok, err)
		}
	}
	admit("silent", true)
	admit("busy", true)
	ageRequests(t, d, 61*time.Second)
	dbtest.Exec(t, d, "UPDATE rate_requests SET at = clock_timestamp() WHERE key_id = 'busy'")
	if err := l.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var windows, requests int
	if err := d.Pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM rate_windows), (SELECT count(*) FROM rate_requests)").Scan(&windows, &requests); err != nil || windows != 1 || requests != 1 {
		t.Errorf("%d windows and %d requests are left: %v", windows, requests, err)
	}
	for _, key := range []string{"silent", "busy"} {
		admit(key, true)
	}
	admit("busy", false)
}

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer x": "x", "bearer x": "x", "BEARER  x ": "x", "": "", "x": "", "Bearer": "", "Bearer ": "", "Bearer x y": "", "Basic x": "", "Bearerx": "",
	} {
		got, ok := bearer(header)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q %v", header, got, ok)
		}
	}
}
