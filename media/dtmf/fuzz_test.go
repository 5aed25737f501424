package dtmf

import (
	"encoding/binary"
	"testing"
	"time"
)

// FuzzDigits has any packets told as keys, and any sound heard: what comes out
// is a key, no event is one twice, and two ways within the funnel's time are
// one press.
func FuzzDigits(f *testing.F) {
	f.Add([]byte{0, 0, 0, 160, 1, 5, 0x0a, 0, 160, 0, 0, 0, 160, 0, 5, 0x8a, 1, 64})
	f.Add([]byte{0, 0, 0x16, 0xda, 1, 11, 0x8a, 8, 192, 0, 0, 0x44, 0xe0, 1, 0, 0x8a, 8, 192})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if raw = raw[:min(len(raw), 4096)]; len(raw) == 0 {
			return
		}
		var events Events
		var funnel Funnel
		now := time.Duration(0)
		for b := raw; len(b) >= 9; b = b[9:] {
			stamp := binary.BigEndian.Uint32(b)
			now += time.Duration(b[4]) * time.Millisecond
			key, pressed := events.Hear(7, stamp, b[4]&1 != 0, b[5:9])
			if !pressed {
				continue
			}
			if _, ok := Code(key); !ok {
				t.Fatalf("heard %q, which is no key", key)
			}
			if again, twice := events.Hear(7, stamp, false, b[5:9]); twice {
				t.Fatalf("the same event is %q again", again)
			}
			if fresh := funnel.Hear(key, Event, now); funnel.Hear(key, Event+1, now) && fresh {
				t.Fatal("one press is told twice")
			}
		}
		ear := NewEar(8000)
		pcm := make([]int16, 160)
		for b := raw; len(b) > 0; b = b[min(len(b), 320):] {
			for i := range pcm {
				pcm[i] = 0
				if 2*i+1 < len(b) {
					pcm[i] = int16(binary.BigEndian.Uint16(b[2*i:]))
				}
			}
			if key, pressed := ear.Hear(pcm); pressed {
				if _, ok := Code(key); !ok {
					t.Fatalf("the ear heard %q", key)
				}
			}
		}
	})
}
