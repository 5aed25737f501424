// Package quality is how the audio of a call travelled, as stored and shown.
package quality

import (
	"encoding/json"
	"math"
	"time"

	"github.com/parley-voice/parley/media"
)

// A Quality is how the audio of a call travelled, as stored and shown. What is
// not known is null.
type Quality struct {
	Codec *string `json:"codec"`
	// MOS is that of the worse direction.
	MOS         *float64 `json:"mos"`
	Received    Stretch  `json:"received"`
	Sent        Stretch  `json:"sent"` // as the party's side reported
	RoundTripMS *float64 `json:"round_trip_ms"`
	ConcealedMS float64  `json:"concealed_ms"`
	Underruns   int64    `json:"underruns"`
}

// A Stretch is one direction.
type Stretch struct {
	Packets  *int64   `json:"packets"`
	Lost     *int64   `json:"lost"`
	JitterMS *float64 `json:"jitter_ms"`
	MOS      *float64 `json:"mos"`
}

// Of is how a leg's audio travelled, as JSON; nil where the leg cannot
// tell.
func Of(leg media.Leg) json.RawMessage {
	g, ok := leg.(media.Gauge)
	if !ok {
		return nil
	}
	text, err := json.Marshal(quality(g.Quality()))
	if err != nil {
		return nil // not of these types
	}
	return text
}

func quality(q media.Quality) Quality {
	out := Quality{
		Codec: known(q.Codec), Received: stretch(q.Heard), RoundTripMS: known(millis(q.RoundTrip)),
		ConcealedMS: millis(q.Concealed), Underruns: q.Underruns,
	}
	if q.Codec != "" { // nothing heard is a fact where we listened
		out.Received.Packets, out.Received.Lost = &q.Heard.Packets, &q.Heard.Lost
	}
	out.Sent = stretch(q.Sent)
	out.MOS = out.Received.MOS
	if s := out.Sent.MOS; s != nil && (out.MOS == nil || *s < *out.MOS) {
		out.MOS = s
	}
	return out
}

func stretch(s media.Stretch) Stretch {
	if s.Packets == 0 && s.Lost == 0 {
		return Stretch{}
	}
	jitter := millis(s.Jitter)
	return Stretch{Packets: &s.Packets, Lost: &s.Lost, JitterMS: &jitter, MOS: known(math.Round(s.MOS*100) / 100)}
}

// known is nil for what is not.
func known[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// millis are milliseconds to three places.
func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
