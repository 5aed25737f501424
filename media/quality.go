package media

import (
	"context"
	"time"
)

// QualityReporter reports the audio quality of a leg. Legs on a network implement it.
type QualityReporter interface {
	// Quality may be called at any time, also after the leg has ended.
	Quality() Quality
}

// Quality is the audio quality of a leg so far.
type Quality struct {
	Codec string // encoding name of the last negotiated codec

	// Received is measured locally. Sent comes from the remote party's RTCP reports.
	Sent, Received DirectionQuality
	RoundTrip      time.Duration // from the last report (RFC 3550 section 6.4.1); 0 if unknown
	Concealed      time.Duration // received audio that was concealed because packets were missing
	Underruns      int64         // frames that were not sent in time
	Ignored        int64         // packets from unexpected addresses
}

// DirectionQuality is the quality of one direction of a leg's audio.
type DirectionQuality struct {
	Packets int64         // packets that the receiving side received
	Lost    int64         // lost packets
	Jitter  time.Duration // interarrival jitter (RFC 3550 section 6.4.1)
	MOS     float64       // estimated listening quality (ITU-T G.107), 1 to 4.5; 0 if unknown
}

// Message is one signaling message of a call, without secrets.
type Message struct {
	At   time.Time
	Out  bool   // true if Parley sent the message
	Peer string // address and transport: "192.0.2.1:5060/UDP"
	Line string // the start line, which includes phone numbers
	Note string // further information, such as CSeq and a summary of the SDP
}

// SignalingTracer returns the signaling messages of a leg.
type SignalingTracer interface {
	// Ladder returns the messages, oldest first. After the leg has ended, it waits until the signaling is complete or
	// ctx ends.
	Ladder(ctx context.Context) []Message
}
