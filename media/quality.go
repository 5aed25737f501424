package media

import (
	"context"
	"time"
)

// A Gauge tells how well a leg's audio travels. Legs with a network behind
// them implement it.
type Gauge interface {
	// Quality may be asked at any time, also after the leg has ended.
	Quality() Quality
}

// Quality is how the audio of a leg travelled, both ways, so far.
type Quality struct {
	Codec string // encoding name of the last codec agreed on

	// Heard is what the party sent, as we received it.
	Sent, Heard Stretch
	RoundTrip   time.Duration // as of the last report (RFC 3550 section 6.4.1), 0 unknown
	Concealed   time.Duration // heard time that was made up because packets were missing
	Underruns   int64         // frames that were not sent in time
}

// A Stretch is one direction of a leg's audio on the wire.
type Stretch struct {
	Packets int64         // that arrived, as far as the hearing side told
	Lost    int64         // packets that never did
	Jitter  time.Duration // interarrival jitter (RFC 3550 section 6.4.1)
	MOS     float64       // estimated listening quality (ITU-T G.107), 1 to 4.5; 0 unknown
}

// A Message is one rung of a call's signalling ladder. Secrets are left out.
type Message struct {
	At   time.Time
	Out  bool   // we sent it
	Peer string // address and transport: "192.0.2.1:5060/UDP"
	Line string // the start line, numbers included
	Note string // what else tells, such as CSeq and the essence of the description
}

// A Traced leg tells the signalling that it lived by.
type Traced interface {
	// Ladder returns the messages, oldest first. After the end of the leg it
	// waits until the signalling is over too, or ctx ends.
	Ladder(ctx context.Context) []Message
}
