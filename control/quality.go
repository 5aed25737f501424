package control

import (
	"encoding/json"
	"math"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/pipeline"
)

// AudioQuality describes how well a call's audio was transported. The database and the API use its JSON. Unknown
// values are null.
type AudioQuality struct {
	Codec *string `json:"codec"`
	// MOS is the mean opinion score, 1 to 5, of the worse direction.
	MOS         *float64         `json:"mos"`
	Received    DirectionQuality `json:"received"`
	Sent        DirectionQuality `json:"sent"` // as the remote side reported it
	RoundTripMS *float64         `json:"round_trip_ms"`
	ConcealedMS float64          `json:"concealed_ms"`
	Underruns   int64            `json:"underruns"`
	// IgnoredPackets is the number of packets that came from an unexpected source address.
	IgnoredPackets int64 `json:"ignored_packets"`
}

// DirectionQuality describes one direction of a call's audio.
type DirectionQuality struct {
	Packets  *int64   `json:"packets"`
	Lost     *int64   `json:"lost"`
	JitterMS *float64 `json:"jitter_ms"`
	MOS      *float64 `json:"mos"`
}

// EncodeQuality returns the AudioQuality of a leg as JSON, or nil if the leg does not measure quality.
func EncodeQuality(leg media.Leg) json.RawMessage {
	g, ok := leg.(media.QualityReporter)
	if !ok {
		return nil
	}
	text, err := json.Marshal(newQuality(g.Quality()))
	if err != nil {
		return nil // cannot happen: these types can always be marshaled
	}
	return text
}

func newQuality(q media.Quality) AudioQuality {
	out := AudioQuality{
		Codec: nonZero(q.Codec), Received: newDirection(q.Received), RoundTripMS: nonZero(millis(q.RoundTrip)),
		ConcealedMS: millis(q.Concealed), Underruns: q.Underruns, IgnoredPackets: q.Ignored,
	}
	if q.Codec != "" { // if a codec was negotiated, 0 received packets are a measurement
		out.Received.Packets, out.Received.Lost = &q.Received.Packets, &q.Received.Lost
	}
	out.Sent = newDirection(q.Sent)
	out.MOS = out.Received.MOS
	if s := out.Sent.MOS; s != nil && (out.MOS == nil || *s < *out.MOS) {
		out.MOS = s
	}
	return out
}

func newDirection(s media.DirectionQuality) DirectionQuality {
	if s.Packets == 0 && s.Lost == 0 {
		return DirectionQuality{}
	}
	jitter := millis(s.Jitter)
	return DirectionQuality{Packets: &s.Packets, Lost: &s.Lost, JitterMS: &jitter, MOS: nonZero(math.Round(s.MOS*100) / 100)}
}

// nonZero returns a pointer to v, or nil if v is zero.
func nonZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// millis returns d in milliseconds, rounded to three decimal places.
func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}

// encodeUsage returns the usage of a call's providers as JSON, or nil if there is none.
func encodeUsage(all []pipeline.EngineUsage) json.RawMessage {
	if len(all) == 0 {
		return nil
	}
	for i := range all {
		all[i].Seconds = math.Round(all[i].Seconds*100) / 100
	}
	text, err := json.Marshal(all)
	if err != nil { // cannot happen: finite numbers and text can always be marshaled
		return nil
	}
	return text
}
