//go:build !race

package crypt

import "testing"

// TestNoAllocations holds that a packet sealed and opened allocates nothing.
// It is not for the race detector: the library keeps buffers in a pool, which
// the detector empties at random.
func TestNoAllocations(t *testing.T) {
	for _, k := range New() {
		seal, open := ends(t, k)
		seq := uint16(0)
		plain, sealed, opened := packetOf(t, 0), make([]byte, 0, 300), make([]byte, 0, 300)
		if n := testing.AllocsPerRun(500, func() {
			seq++
			plain[2], plain[3] = byte(seq>>8), byte(seq)
			out, err := seal.RTP(sealed, plain)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := open.RTP(opened, out); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", k.Suite(), n)
		}
	}
}
