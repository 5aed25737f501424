package machine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if !Sleep(ctx, 2*time.Second) || time.Since(began) != 2*time.Second {
			t.Errorf("2 s took %v, or ended early", time.Since(began))
		}
		if Sleep(ctx, time.Minute) || time.Since(began) != 3*time.Second {
			t.Errorf("context of 3 s: Sleep returned after %v", time.Since(began))
		}
	})
}
