package control

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-voice/parley/media"
)

// A tardy dialer comes too late, before or after it said that it sends.
type tardy struct {
	sends bool
	why   error
	to    media.Target
}

func (d *tardy) Dial(_ context.Context, to media.Target, progress func(media.Progress)) (media.Leg, error) {
	d.to = to
	if d.sends {
		progress(media.Sent)
	}
	return nil, &media.DialError{Cause: media.Failure, Err: d.why}
}

// TestRunnerGivesBackWhatDidNotLeave: the dialer is told until when the request
// may leave; a request that did not leave goes back to the queue, and one that
// may have left is never dialled again.
func TestRunnerGivesBackWhatDidNotLeave(t *testing.T) {
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
			b, d, c := &book{}, &tardy{sends: tt.sends, why: tt.why}, newClaim()
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

// TestRunnerKeepsToTheHours: a request does not leave after the hours in which it
// may, however long its lease is.
func TestRunnerKeepsToTheHours(t *testing.T) {
	for _, tt := range []struct {
		ends time.Duration // from now
		want []string
	}{
		{time.Second, []string{"intent", "release"}}, // the dialer comes too late
		{0, []string{"intent", "release"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, d, c := &book{}, &tardy{why: media.ErrTooLate}, newClaim()
			c.NotAfter = time.Now().Add(tt.ends)
			r := &Runner{Attempts: b, Live: &Live{}, Dialer: d, Margin: 4 * time.Second}
			if err := r.Run(t.Context(), c); err != nil {
				t.Error(err)
			}
			if !slices.Equal(b.wrote, tt.want) {
				t.Errorf("wrote %v, want %v", b.wrote, tt.want)
			}
			if dialled := !d.to.NotAfter.IsZero(); dialled != (tt.ends > 0) || dialled && !d.to.NotAfter.Equal(c.NotAfter) {
				t.Errorf("not after %v, want %v", d.to.NotAfter, c.NotAfter)
			}
		})
	}
}
