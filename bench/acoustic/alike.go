package acoustic

import "math"

// Find returns where piece is most similar to pcm, and the similarity: 1 means equal except for
// loudness, 0 unrelated. It finds nothing for a silent piece or a piece longer than pcm.
func Find(pcm, piece []int16) (at int, likeness float64) {
	n := len(piece)
	own := energy(piece)
	if n == 0 || n > len(pcm) || own == 0 {
		return 0, 0
	}
	// Much softer audio would match by chance.
	least := own * 1e-4
	around := energy(pcm[:n])
	for i := 0; ; i++ {
		if around > least {
			sum := 0.0
			for k, x := range piece {
				sum += float64(x) * float64(pcm[i+k])
			}
			if l := sum / math.Sqrt(own*around); l > likeness {
				at, likeness = i, l
			}
		}
		if i+n >= len(pcm) {
			return at, likeness
		}
		out, in := float64(pcm[i]), float64(pcm[i+n])
		around += in*in - out*out
	}
}

func energy(pcm []int16) float64 {
	sum := 0.0
	for _, x := range pcm {
		sum += float64(x) * float64(x)
	}
	return sum
}
