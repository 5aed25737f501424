package opus_test

import (
	"testing"
	"time"

	"github.com/parley-voice/parley/media/opus"
	"github.com/parley-voice/parley/media/tone"
)

func TestEncoder(t *testing.T) {
	if !opus.CanEncode {
		t.Skip("built without the tag opus")
	}
	const text = "when do you open have you the odyssey"
	pcm, _ := tone.Encode(opus.Rate, text)
	e := opus.NewEncoder()
	frame := opus.Rate / 50
	pcm = append(pcm, make([]int16, 10*frame-len(pcm)%frame)...)
	var all [][]byte
	for ; len(pcm) >= frame; pcm = pcm[frame:] {
		wire := make([]byte, 320)
		n := e.Encode(wire, pcm[:frame])
		if n == 0 || n > 200 {
			t.Fatalf("a packet of %d bytes", n)
		}
		all = append(all, wire[:n])
	}
	got, counts := decodeText(t, all, func(_ int, at time.Duration) (time.Duration, bool) { return at, true })
	if got != text {
		t.Errorf("got %q, %+v", got, counts)
	}
	pcm = make([]int16, frame)
	wire := make([]byte, 320)
	if n := testing.AllocsPerRun(100, func() { e.Encode(wire, pcm) }); n > 0 {
		t.Errorf("%v allocations a frame", n)
	}
	if e.Encode(nil, pcm) != 0 || e.Encode(wire, nil) != 0 || e.Encode(wire, pcm[:7]) != 0 {
		t.Error("Encode: got bytes for an invalid frame")
	}
}
