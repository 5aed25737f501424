package control

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/parley-voice/parley/media"
)

// lateDialer is a Dialer that fails, either before or after it reported media.Sent.
type lateDialer struct {
	sends bool
	why   error
	to    media.Target
}

func (d *lateDialer) Dial(_ context.Context, to media.Target, progress func(media.Progress)) (media.Leg, error) {
	d.to = to
	if d.sends {
		progress(media.Sent)
	}
	return nil, &media.DialError{Cause: media.Failure, Err: d.why}
}

// TestRunnerReleasesUnsentAttempt checks that the dialer gets a deadline for the INVITE. An attempt returns to the
// queue if nothing was sent. It is never dialed again if something may have been sent.
func TestRunnerReleasesUnsentAttempt(t *testing.T) {
	for _, tt := range []struct {
		sends bool
		why   error
		want  []string
	}{
		{false, media.ErrTooLate, []string{"intent", "release"}},
		{true, media.ErrTooLate, []string{"intent", "sent", "finish"}},
		{false, media.ErrPaused, []string{"intent", "release"}},
		{true, media.ErrPaused, []string{"intent", "sent", "finish"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, d, c := &memoryStore{}, &lateDialer{sends: tt.sends, why: tt.why}, newClaim()
			r := &Runner{Attempts: b, Live: &Live{}, Dialer: d, Margin: 4 * time.Second}
			if err := r.Run(t.Context(), c); err != nil {
				t.Error(err)
			}
			if !slices.Equal(b.wrote, tt.want) || tt.sends && b.final.Reason != ReasonInternalError {
				t.Errorf("sent %v, %v: wrote %v, want %v; final %+v", tt.sends, tt.why, b.wrote, tt.want, b.final)
			}
			if want := c.Until.Add(-4 * time.Second); !d.to.NotAfter.Equal(want) || c.Until.Sub(d.to.NotAfter) != 4*time.Second {
				t.Errorf("not after %v, want %v", d.to.NotAfter, want)
			}
		})
	}
}

// TestRunnerAfterSuspension checks that a call is not dialed if the machine was suspended after the claim until the lease
// ended, although the monotonic clock stopped.
func TestRunnerAfterSuspension(t *testing.T) {
	b, d, c := &memoryStore{}, &lateDialer{why: media.ErrTooLate}, newClaim()
	c.Until = stopMonotonic(c.Until.Add(-time.Minute), time.Minute)
	r := &Runner{Attempts: b, Live: &Live{}, Dialer: d}
	if err := r.Run(t.Context(), c); err != nil {
		t.Error(err)
	}
	if !slices.Equal(b.wrote, []string{"intent", "release"}) || !d.to.NotAfter.IsZero() {
		t.Errorf("wrote %v, dialed with a deadline of %v", b.wrote, d.to.NotAfter)
	}
}

// stopMonotonic returns t as if the monotonic clock had stopped for d since t was computed.
func stopMonotonic(t time.Time, d time.Duration) time.Time {
	type reading struct {
		_         uint64
		monotonic int64
		_         *time.Location
	}
	(*reading)(unsafe.Pointer(&t)).monotonic += int64(d) // only a suspended machine makes such a time
	return t
}

// TestRunnerObeysCallingHours checks that no INVITE leaves after the calling hours, even if the lease lasts longer.
func TestRunnerObeysCallingHours(t *testing.T) {
	for _, tt := range []struct {
		ends time.Duration // end of the calling hours, from now
		want []string
	}{
		{time.Second, []string{"intent", "release"}}, // the dialer is late
		{0, []string{"intent", "release"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, d, c := &memoryStore{}, &lateDialer{why: media.ErrTooLate}, newClaim()
			c.NotAfter = time.Now().Add(tt.ends)
			r := &Runner{Attempts: b, Live: &Live{}, Dialer: d, Margin: 4 * time.Second}
			if err := r.Run(t.Context(), c); err != nil {
				t.Error(err)
			}
			if !slices.Equal(b.wrote, tt.want) {
				t.Errorf("wrote %v, want %v", b.wrote, tt.want)
			}
			if dialed := !d.to.NotAfter.IsZero(); dialed != (tt.ends > 0) || dialed && !d.to.NotAfter.Equal(c.NotAfter) {
				t.Errorf("not after %v, want %v", d.to.NotAfter, c.NotAfter)
			}
		})
	}
}
