//go:build !race

package srtp

import "testing"

// TestNoAllocations checks that encryption and decryption do not allocate. It does not run with the race detector,
// which empties the library's pool at random.
func TestNoAllocations(t *testing.T) {
	for _, k := range New() {
		encrypter, decrypter := newPair(t, k)
		seq := uint16(0)
		plain, encrypted, decrypted := packetOf(t, 0), make([]byte, 0, 300), make([]byte, 0, 300)
		if n := testing.AllocsPerRun(500, func() {
			seq++
			plain[2], plain[3] = byte(seq>>8), byte(seq)
			out, err := encrypter.RTP(encrypted, plain)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := decrypter.RTP(decrypted, out); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", k.Suite(), n)
		}
	}
}
