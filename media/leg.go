package media

import (
	"context"
	"time"
)

// Connection is a leg's connection to the remote party.
type Connection interface {
	// Hangup ends the leg: ReadFrame then returns io.EOF, and the feed is not called again. Only the first call has
	// an effect.
	Hangup(Cause) error
	// Cause returns why the leg ended, or "" while it is active.
	Cause() Cause
}

// Leg is the media connection to one remote party. Its sample rate is fixed. If the codec has another rate, the leg
// resamples.
//
// The leg asks its feed for each frame at the time when the frame is due. There is no queue between feed and network.
// If the feed stops, the remote party hears silence within one frame.
type Leg interface {
	Source
	Connection
	// Play sets the feed, from the next frame on. Without a feed the leg sends silence.
	Play(feed Feed)
	// Digits delivers DTMF digits from the remote party. The channel is closed when the leg ends.
	Digits() <-chan rune
}

// Arrival reports arrival times. Legs on a network implement it.
type Arrival interface {
	// Arrived returns the time at which the packet of the last frame read arrived. It returns false if that frame was
	// concealed, or is silence that was inserted. It must be called from the goroutine that calls ReadFrame.
	Arrived() (time.Time, bool)
}

// Keypad sends DTMF digits (RFC 4733).
type Keypad interface {
	// Press adds digits (0-9, *, #, A-D) to a queue and returns. The media clock sends them in place of the feed's
	// audio. A comma is a pause of 2 seconds.
	Press(keys string) error
}

// Referrer transfers its remote party (RFC 3515).
type Referrer interface {
	// Refer asks the remote party to call number. It returns nil when that number has answered; the leg then ends
	// with Transferred. After an error the leg stays active.
	Refer(ctx context.Context, number string) error
}

// Holder puts the remote party on hold (RFC 3264 section 8.4).
type Holder interface {
	// Hold puts the remote party on hold if on is set, and resumes the audio otherwise.
	Hold(ctx context.Context, on bool) error
}
