package media

import (
	"context"
	"time"
)

// A Line is the connection that a leg holds to its party.
type Line interface {
	// Hangup ends the leg: its reader gets io.EOF and its feed is asked no
	// more. Only the first call counts; any number is harmless.
	Hangup(Cause) error
	// Cause says why the leg ended, or "" while it lives.
	Cause() Cause
}

// A Leg is one party on the line, alive from the moment one holds it. It has
// one sample rate for life; a leg whose wire speaks another resamples inside.
//
// Leaving the leg is pulled, not pushed: the leg asks its feed for each frame
// at the moment that frame is due, so nothing waits in a queue between the
// feed and the wire, and a feed that falls silent is silent on the wire within
// one frame.
type Leg interface {
	Source
	Line
	// Play makes feed what the party hears from the next frame on. A leg
	// without a feed sends silence.
	Play(feed Feed)
	// Digits yields the keys the party presses. It is closed when the leg ends.
	Digits() <-chan rune
}

// An Arrival tells when what a leg last read came in. Legs with a network
// behind them implement it.
type Arrival interface {
	// Arrived returns when the packet that holds the last read frame reached
	// this machine. It is false where the frame was concealed or silence was
	// put in its place. It belongs to the goroutine that calls ReadFrame.
	Arrived() (time.Time, bool)
}

// A Keypad presses keys that the party's side hears (RFC 4733). Legs that can
// press them implement it.
type Keypad interface {
	// Press sends keys of 0-9 * # and A-D, one after the other, in place of
	// what the feed says meanwhile. A comma is a pause of half a second. It
	// returns when the keys are accepted; they are sent on the media clock.
	Press(keys string) error
}

// A Referrer hands its party over to somebody else (RFC 3515).
type Referrer interface {
	// Refer asks the party's side to call number instead of us. It returns nil
	// once the other has answered, and then the leg ends with Transferred. On
	// error the leg goes on.
	Refer(ctx context.Context, number string) error
}

// A Holder stops and resumes the party's audio (RFC 3264 section 8.4).
type Holder interface {
	// Hold puts the party on hold, or takes it off.
	Hold(ctx context.Context, on bool) error
}
