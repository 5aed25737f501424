package codec

const (
	startLow  = 32 // scale factors of a stream's beginning
	startHigh = 8
)

// A band is the adaptive predictor and quantizer of one half of the spectrum
// (G.722 sections 3.4 to 3.6). Encoder and decoder run the same one, fed with
// what is on the wire, so both foretell the same.
type band struct {
	guess int32 // of the next sample
	zero  int32 // the part of guess that comes of the differences
	log   int32 // of the scale factor
	scale int32 // of the quantizer

	poles [2]int32 // coefficients
	zeros [6]int32
	built [2]int32 // samples rebuilt, the newest first, doubled
	parts [2]int32 // samples without what the poles foretold
	diffs [6]int32 // differences, the newest first, doubled
}

// learnLow takes the six bits of a sample in the lower band. Only the upper
// four count, so that the rest may be lost (section 3.3.3).
func (b *band) learnLow(code int32) {
	code >>= 2
	diff := b.scale * coarse[code] >> 15
	size := 15 - code // the levels of both signs are one row each, the largest first
	if code < 8 {
		size = (8 - code) & 7
	}
	b.log = max(0, min(18432, b.log*127>>7+growLow[size]))
	b.scale = exponent(b.log, 8)
	b.learn(diff)
}

// learnHigh takes the two bits of a sample in the upper band.
func (b *band) learnHigh(code int32) {
	diff := b.scale * upper[code] >> 15
	b.log = max(0, min(22528, b.log*127>>7+growHigh[code&1]))
	b.scale = exponent(b.log, 10)
	b.learn(diff)
}

// exponent turns a logarithm to the base of two, in 2048ths, into the scale.
func exponent(log, bias int32) int32 {
	mantissa, shift := mantissas[log>>6&31], bias-log>>11
	if shift < 0 {
		return mantissa << -shift << 2
	}
	return mantissa >> shift << 2
}

// learn takes the difference of a sample to its guess and makes the next.
func (b *band) learn(diff int32) {
	built := saturate(b.guess + diff)
	part := saturate(b.zero + diff)
	b.learnPoles(part)
	b.built = [2]int32{saturate(2 * built), b.built[0]}
	b.parts = [2]int32{part, b.parts[0]}

	pole := saturate(b.poles[0]*b.built[0]>>15 + b.poles[1]*b.built[1]>>15)
	b.zero = b.learnZeros(diff)
	b.guess = saturate(pole + b.zero)
}

// learnPoles moves the poles by the signs of the last three parts, and keeps
// them where the filter is stable.
func (b *band) learnPoles(part int32) {
	same, same2 := sameSign(part, b.parts[0]), sameSign(part, b.parts[1])
	turn := saturate(b.poles[0] << 2)
	if same {
		turn = min(-turn, 1<<15-1)
	}
	second := turn>>7 + b.poles[1]*32512>>15
	if same2 {
		second += 128
	} else {
		second -= 128
	}
	second = max(-12288, min(12288, second))
	first := b.poles[0] * 32640 >> 15
	if same {
		first += 192
	} else {
		first -= 192
	}
	limit := saturate(15360 - second)
	b.poles = [2]int32{max(-limit, min(limit, saturate(first))), second}
}

// learnZeros moves the zeros by the sign of the difference and of those before,
// and foretells by them. It is most of the work.
func (b *band) learnZeros(diff int32) int32 {
	step := int32(128)
	if diff == 0 {
		step = 0
	}
	next, zero := saturate(2*diff), int32(0)
	for i := range b.diffs {
		d := b.diffs[i]
		turn := (d ^ diff) >> 31 // -1 where the signs differ, else 0
		z := saturate((step ^ turn) - turn + b.zeros[i]*32640>>15)
		zero += z * next >> 15
		b.zeros[i], b.diffs[i], next = z, next, d
	}
	return saturate(zero)
}

func sameSign(a, b int32) bool { return (a < 0) == (b < 0) }

// The tables of G.722.
//
//nolint:gochecknoglobals // read-only tables
var (
	mirrorTaps = [12]int32{3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11}

	// levels are where one quantum of the lower band ends and the next begins.
	levels = [29]int32{
		35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786,
		858, 940, 1023, 1121, 1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919,
	}
	// fine are the differences of the six bits of the lower band.
	fine = [64]int32{
		-136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232, -9360, -8576, -7856,
		-7192, -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040, -728,
		24808, 21904, 19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456,
		4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432, -136,
	}
	// coarse are those of its upper four bits alone.
	coarse = [16]int32{
		0, -20456, -12896, -8968, -6288, -4240, -2584, -1200,
		20456, 12896, 8968, 6288, 4240, 2584, 1200, 0,
	}
	// upper are the differences of the two bits of the upper band.
	upper = [4]int32{-7408, -1616, 7408, 1616}

	// growLow moves the scale of the lower band, by the size of the
	// difference; growHigh that of the upper, large first.
	growLow  = [8]int32{-60, -30, 58, 172, 334, 538, 1198, 3042}
	growHigh = [2]int32{798, -214}

	mantissas = [32]int32{
		2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834,
		2896, 2960, 3025, 3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
	}
)
