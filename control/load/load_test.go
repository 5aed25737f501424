package load

import (
	"testing"
	"testing/synctest"
	"time"
)

// high reports whether what may wait is to make room.
func high(l *Load) bool {
	_, wait := l.Share()
	return wait > 0
}

func TestLoad(t *testing.T) {
	for _, tt := range []struct {
		name  string
		every time.Duration
		took  time.Duration
		want  bool
	}{
		{"many and slow", 10 * time.Millisecond, 60 * time.Millisecond, true},
		{"many and fast", 10 * time.Millisecond, 6 * time.Millisecond, false},
		{"few and slow", 100 * time.Millisecond, time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l Load
				if high(&l) {
					t.Error("high before any request")
				}
				for began := time.Now(); time.Since(began) < 3*time.Second; <-time.After(tt.every) {
					l.Request(tt.took)
				}
				if got := high(&l); got != tt.want {
					t.Errorf("high: %v, mean %v", got, l.mean)
				}
				<-time.After(2 * time.Second)
				if high(&l) {
					t.Error("high though nobody asks")
				}
			})
		})
	}
}

// TestOneSlowRequest among fast ones is no load.
func TestOneSlowRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Load
		for range 100 {
			l.Request(5 * time.Millisecond)
			<-time.After(5 * time.Millisecond)
		}
		l.Request(time.Minute)
		if high(&l) {
			t.Errorf("mean %v", l.mean)
		}
	})
}

// TestShare: what may wait makes room at once, and has it back little by little.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Load
		ask := func(took time.Duration) (int, time.Duration) {
			for range 8 {
				l.Request(took)
				<-time.After(apart / 8)
			}
			return l.Share()
		}
		if n, wait := l.Share(); n != most || wait != 0 {
			t.Fatalf("%d, then %v, where nobody asks", n, wait)
		}
		for range 10 {
			ask(50 * time.Millisecond)
		}
		before, wait := l.Share()
		if before != least || wait != apart {
			t.Fatalf("%d, then %v, where all are slow", before, wait)
		}
		steps := 0
		for ; before < most; steps++ {
			n, _ := ask(time.Millisecond)
			if n > before+1 || steps > 100 {
				t.Fatalf("%d after %d, in step %d", n, before, steps)
			}
			before = n
		}
		if steps < most-least {
			t.Errorf("all of it after %d steps", steps)
		}
		if n, wait := ask(time.Millisecond); n != most || wait != 0 {
			t.Errorf("%d, then %v, where all are fast", n, wait)
		}
	})
}
