package media

import (
	"context"
	"time"
)

// A Connection is a leg's connection to the remote party.
type Connection interface {
	// Hangup ends the leg: ReadFrame returns io.EOF and the feed is not called
	// again. Only the first call counts; further calls do nothing.
	Hangup(Cause) error
	// Cause returns why the leg ended, or "" while it is active.
	Cause() Cause
}

// A Leg is the media of one remote party. Its sample rate is fixed; a leg
// whose codec has another rate resamples internally.
//
// Output is pulled, not pushed: the leg calls its feed for each frame when
// that frame is due. No queue exists between feed and network, so a feed that
// stops is silent on the wire within one frame.
type Leg interface {
	Source
	Connection
	// Play sets the feed from the next frame on. Without a feed the leg sends
	// silence.
	Play(feed Feed)
	// Digits yields DTMF digits from the remote party. It is closed when the
	// leg ends.
	Digits() <-chan rune
}

// An Arrival reports arrival times. Legs on a network implement it.
type Arrival interface {
	// Arrived returns when the packet of the frame last read arrived. It
	// returns false if the frame was concealed or is inserted silence. Only
	// the goroutine that calls ReadFrame may call it.
	Arrived() (time.Time, bool)
}

// A Keypad sends DTMF digits (RFC 4733).
type Keypad interface {
	// Press queues digits (0-9, *, #, A-D), which replace the feed's audio
	// while they are sent. A comma pauses for half a second. It returns when
	// the digits are queued; the media clock sends them.
	Press(keys string) error
}

// A Referrer transfers its remote party (RFC 3515).
type Referrer interface {
	// Refer asks the remote party to call number. It returns nil once that
	// number has answered; the leg then ends with Transferred. On error the
	// leg stays active.
	Refer(ctx context.Context, number string) error
}

// A Holder holds and resumes the remote party's audio (RFC 3264 section 8.4).
type Holder interface {
	// Hold puts the remote party on hold, or resumes.
	Hold(ctx context.Context, on bool) error
}
