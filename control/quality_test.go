package control

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
)

type measuredLeg struct {
	silentLeg
	q media.Quality
}

func (l *measuredLeg) Quality() media.Quality { return l.q }

func TestQuality(t *testing.T) {
	for name, row := range map[string]struct {
		q    media.Quality
		want string
	}{
		"both directions": {
			media.Quality{
				Codec: "PCMU", RoundTrip: 38200 * time.Microsecond, Concealed: 40 * time.Millisecond, Underruns: 3, Ignored: 7,
				Received: media.DirectionQuality{Packets: 98, Lost: 2, Jitter: 3123456 * time.Nanosecond, MOS: 4.3049},
				Sent:     media.DirectionQuality{Packets: 100, Jitter: 2 * time.Millisecond, MOS: 4.1},
			},
			`{"codec":"PCMU","mos":4.1,"received":{"packets":98,"lost":2,"jitter_ms":3.123,"mos":4.3},` +
				`"sent":{"packets":100,"lost":0,"jitter_ms":2,"mos":4.1},"round_trip_ms":38.2,"concealed_ms":40,"underruns":3,"ignored_packets":7}`,
		},
		"other side sends no reports": {
			media.Quality{Codec: "PCMA", Received: media.DirectionQuality{Packets: 5, MOS: 4.4}},
			`{"codec":"PCMA","mos":4.4,"received":{"packets":5,"lost":0,"jitter_ms":0,"mos":4.4},` +
				`"sent":{"packets":null,"lost":null,"jitter_ms":null,"mos":null},"round_trip_ms":null,"concealed_ms":0,"underruns":0,"ignored_packets":0}`,
		},
		"other side sends no audio": {
			media.Quality{Codec: "PCMU"},
			`{"codec":"PCMU","mos":null,"received":{"packets":0,"lost":0,"jitter_ms":null,"mos":null},` +
				`"sent":{"packets":null,"lost":null,"jitter_ms":null,"mos":null},"round_trip_ms":null,"concealed_ms":0,"underruns":0,"ignored_packets":0}`,
		},
		"nothing measured": {
			media.Quality{},
			`{"codec":null,"mos":null,"received":{"packets":null,"lost":null,"jitter_ms":null,"mos":null},` +
				`"sent":{"packets":null,"lost":null,"jitter_ms":null,"mos":null},"round_trip_ms":null,"concealed_ms":0,"underruns":0,"ignored_packets":0}`,
		},
	} {
		if got := EncodeQuality(&measuredLeg{q: row.q}); string(got) != row.want {
			t.Errorf("%s: got\n%s, want\n%s", name, got, row.want)
		}
		var back AudioQuality
		if err := json.Unmarshal(EncodeQuality(&measuredLeg{q: row.q}), &back); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := EncodeQuality(struct{ media.Leg }{}); got != nil {
		t.Errorf("leg without media.QualityReporter: got %s, want nil", got)
	}
}
