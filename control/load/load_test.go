package load

import (
	"testing"
	"testing/synctest"
	"time"
)

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
				if l.High() {
					t.Error("high before any request")
				}
				for began := time.Now(); time.Since(began) < 3*time.Second; <-time.After(tt.every) {
					l.Request(tt.took)
				}
				if got := l.High(); got != tt.want {
					t.Errorf("high: %v, mean %v", got, l.mean)
				}
				<-time.After(2 * time.Second)
				if l.High() {
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
		if l.High() {
			t.Errorf("mean %v", l.mean)
		}
	})
}
