package control

import (
	"testing"
	"testing/synctest"
	"time"
)

// high reports whether deferrable work is limited.
func high(l *RequestLoad) bool {
	_, wait := l.Batch()
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
				var l RequestLoad
				if high(&l) {
					t.Error("high before any request")
				}
				for began := time.Now(); time.Since(began) < 3*time.Second; <-time.After(tt.every) {
					l.Observe(tt.took)
				}
				if got := high(&l); got != tt.want {
					t.Errorf("high: %v, mean %v", got, l.mean)
				}
				<-time.After(2 * time.Second)
				if high(&l) {
					t.Error("high without requests")
				}
			})
		})
	}
}

func TestOneSlowRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l RequestLoad
		for range 100 {
			l.Observe(5 * time.Millisecond)
			<-time.After(5 * time.Millisecond)
		}
		l.Observe(time.Minute)
		if high(&l) {
			t.Errorf("one slow request limits the batch; mean %v", l.mean)
		}
	})
}

// TestBatch checks that the batch shrinks at once under load, and that it then grows by one item per batch.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l RequestLoad
		observe := func(took time.Duration) (int, time.Duration) {
			for range 8 {
				l.Observe(took)
				<-time.After(batchPause / 8)
			}
			return l.Batch()
		}
		if n, wait := l.Batch(); n != maxBatch || wait != 0 {
			t.Fatalf("without requests: got %d, %v", n, wait)
		}
		for range 10 {
			observe(50 * time.Millisecond)
		}
		before, wait := l.Batch()
		if before != minBatch || wait != batchPause {
			t.Fatalf("slow requests: got %d, %v", before, wait)
		}
		steps := 0
		for ; before < maxBatch; steps++ {
			n, _ := observe(time.Millisecond)
			if n > before+1 || steps > 100 {
				t.Fatalf("%d after %d, in step %d", n, before, steps)
			}
			before = n
		}
		if steps < maxBatch-minBatch {
			t.Errorf("full batch after %d steps", steps)
		}
		if n, wait := observe(time.Millisecond); n != maxBatch || wait != 0 {
			t.Errorf("fast requests: got %d, %v", n, wait)
		}
	})
}
