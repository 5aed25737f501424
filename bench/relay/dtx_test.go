package relay

import (
	"bytes"
	"testing"
)

func TestGate(t *testing.T) {
	packet := func(kind, sample byte) []byte {
		return append([]byte{0x80, kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte{sample}, 160)...)
	}
	for name, c := range map[string]struct {
		kind, silence, speech byte
		shuts                 bool
	}{
		"µ-law":         {mulaw, 0xff, 0x80, true},
		"µ-law, -0":     {mulaw, 0x7f, 0x00, true},
		"A-law":         {alaw, 0xd5, 0x2a, true},
		"another codec": {9, 0xff, 0x80, false},
	} {
		var g gate
		for i := range hangover + 5 {
			if got := g.drops(packet(c.kind, c.silence)); got != (c.shuts && i >= hangover) {
				t.Errorf("%s: packet %d of silence: got dropped %v", name, i, got)
			}
		}
		first, second := packet(c.kind, c.speech), packet(c.kind, c.speech)
		if g.drops(first) || g.drops(second) {
			t.Errorf("%s: speech was dropped", name)
		}
		if marked := first[1]&0x80 != 0; marked != c.shuts || second[1]&0x80 != 0 {
			t.Errorf("%s: first packet of speech: got marker %v", name, marked)
		}
	}
	var g gate
	for range 2 * hangover {
		if g.drops([]byte("REGISTER sip:a SIP/2.0")) || g.drops(nil) {
			t.Fatal("non-RTP packet was dropped")
		}
	}
}
