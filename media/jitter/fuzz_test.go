package jitter

import (
	"encoding/binary"
	"testing"
	"time"
)

// FuzzJitter puts arbitrary packets at arbitrary times. It checks that the reader never stalls, never reads ahead of
// time by more than a window, and never gets a byte that was not sent.
func FuzzJitter(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 20, 160, 1, 0, 160, 0, 0, 20, 160, 2, 1, 64, 0, 0, 20, 160})
	f.Add([]byte{0, 0xff, 0xff, 0, 0, 5, 10, 0x80, 0x80, 0, 1, 1, 200, 255, 0x31, 3, 0, 1, 0, 1, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		script = script[:min(len(script), 1400)]
		j, now, released := New(), time.Duration(0), 0
		j.Start(0)
		take := func() {
			for {
				r := j.Ready(now)
				if r == Wait {
					return
				}
				check(t, j, r)
				j.Advance()
				released++
			}
		}
		var puts int
		for ; len(script) >= 7; script = script[7:] {
			// Each step of the script holds kind and source, sequence number, timestamp, delay, and length.
			now += time.Duration(script[5]) * ms
			take()
			payload := make([]byte, int(script[6])*2)
			for i := range payload {
				payload[i] = 0xaa
			}
			j.Put(&Packet{
				At: now, Kind: Kind(script[0] % 3), SSRC: uint32(script[0] >> 6), Marker: script[0]&4 != 0, Seq: uint16(script[1]) << (script[0] & 8),
				Timestamp: uint32(binary.BigEndian.Uint16(script[2:])) << (script[4] % 17), Payload: payload,
			})
			puts++
			take()
		}
		before := released
		now += time.Second
		if take(); released < before+40 {
			t.Fatalf("%d frames in the last second", released-before)
		}
		// Every packet may advance the timeline by at most one window.
		if most := int(now/frameTime) + (puts+1)*windowLen/FrameLen; released > most {
			t.Fatalf("%d frames in %v", released, now)
		}
		if n := j.Stats(); n.Depth < minDepth || n.Depth > maxDepth || n.Lost < 0 || n.Late < 0 || n.Duplicate < 0 {
			t.Fatalf("%+v", n)
		}
	})
}

// check checks that the received parts of the next frame fit r, which Ready returned.
func check(t *testing.T, j *Buffer, r Readiness) {
	t.Helper()
	var frame [FrameLen]byte
	j.Copy(frame[:])
	present := 0
	for from, to := j.NextRun(0); from < FrameLen; from, to = j.NextRun(to) {
		if to <= from {
			t.Fatalf("run from %d to %d", from, to)
		}
		present += to - from
		for _, b := range frame[from:to] {
			if b != 0xaa {
				t.Fatalf("byte %#x was never sent", b)
			}
		}
	}
	if (r == Complete) != (present == FrameLen) {
		t.Fatalf("release %d with %d bytes", r, present)
	}
}
