package acoustic

import "math"

// Find returns the position in pcm at which piece is most similar, and the similarity: 1 means
// equal except for loudness, 0 unrelated. The similarity is 0 if piece is silent or longer than
// pcm.
func Find(pcm, piece []int16) (at int, likeness float64) {
	n := len(piece)
	own := energy(piece)
	if n == 0 || n > len(pcm) || own == 0 {
		return 0, 0
	}
	// Audio that is much softer than piece would match by chance.
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
