package media

import (
	"context"
	"time"
)

// A QualityReporter reports a leg's audio quality. Legs on a network implement
// it.
type QualityReporter interface {
	// Quality may be called at any time, also after the leg has ended.
	Quality() Quality
}

// Quality is the audio quality of a leg so far.
type Quality struct {
	Codec string // encoding name of the codec last negotiated

	// Received is measured locally; Sent comes from the remote party's
	// reports.
	Sent, Received DirectionQuality
	RoundTrip      time.Duration // as of the last report (RFC 3550 section 6.4.1); 0 if unknown
	Concealed      time.Duration // received audio replaced because packets were missing
	Underruns      int64         // frames not sent in time
	Ignored        int64         // packets from unexpected addresses
}

// DirectionQuality is the quality of one direction of a leg's audio.
type DirectionQuality struct {
	Packets int64         // received, according to the receiver
	Lost    int64         // lost packets
	Jitter  time.Duration // interarrival jitter (RFC 3550 section 6.4.1)
	MOS     float64       // estimated listening quality (ITU-T G.107), 1 to 4.5; 0 if unknown
}

// A Message is one message of a call's signaling ladder, without secrets.
type Message struct {
	At   time.Time
	Out  bool   // sent by Parley
	Peer string // address and transport: "192.0.2.1:5060/UDP"
	Line string // the start line, including numbers
	Note string // further facts, such as CSeq and a summary of the SDP
}

// A SignalingTracer returns the signaling messages of a leg.
type SignalingTracer interface {
	// Ladder returns the messages, oldest first. After the end of the leg it
	// waits until signaling has finished or ctx ends.
	Ladder(ctx context.Context) []Message
}
