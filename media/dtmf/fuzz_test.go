package dtmf

import (
	"encoding/binary"
	"testing"
	"time"
)

// FuzzDigits checks that arbitrary packets and audio yield only valid digits, no event twice, and one press if two
// methods report it within the limit.
func FuzzDigits(f *testing.F) {
	f.Add([]byte{0, 0, 0, 160, 1, 5, 0x0a, 0, 160, 0, 0, 0, 160, 0, 5, 0x8a, 1, 64})
	f.Add([]byte{0, 0, 0x16, 0xda, 1, 11, 0x8a, 8, 192, 0, 0, 0x44, 0xe0, 1, 0, 0x8a, 8, 192})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if raw = raw[:min(len(raw), 4096)]; len(raw) == 0 {
			return
		}
		var events EventDecoder
		var dedup Deduplicator
		now := time.Duration(0)
		for b := raw; len(b) >= 9; b = b[9:] {
			stamp := binary.BigEndian.Uint32(b)
			now += time.Duration(b[4]) * time.Millisecond
			key, pressed := events.Decode(7, stamp, b[4]&1 != 0, b[5:9])
			if !pressed {
				continue
			}
			if _, ok := Code(key); !ok {
				t.Fatalf("got %q, want a valid digit", key)
			}
			if again, twice := events.Decode(7, stamp, false, b[5:9]); twice {
				t.Fatalf("got %q twice from one event", again)
			}
			if fresh := dedup.Accept(key, Event, now); dedup.Accept(key, Event+1, now) && fresh {
				t.Fatal("got one press twice")
			}
		}
		detector := NewDetector(8000)
		pcm := make([]int16, 160)
		for b := raw; len(b) > 0; b = b[min(len(b), 320):] {
			for i := range pcm {
				pcm[i] = 0
				if 2*i+1 < len(b) {
					pcm[i] = int16(binary.BigEndian.Uint16(b[2*i:]))
				}
			}
			if key, pressed := detector.Detect(pcm); pressed {
				if _, ok := Code(key); !ok {
					t.Fatalf("the detector returned %q", key)
				}
			}
		}
	})
}
