package acoustic

import "math"

// Find finds where in pcm a piece of sound is most alike, and how much so: 1 is
// the same but for its loudness, and 0 is nothing in common. Of a piece that is
// silent, or longer than pcm, nothing is found.
func Find(pcm, piece []int16) (at int, likeness float64) {
	n := len(piece)
	own := energy(piece)
	if n == 0 || n > len(pcm) || own == 0 {
		return 0, 0
	}
	// Of much softer sound the likeness would be chance.
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
