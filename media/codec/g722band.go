package codec

const (
	startLow  = 32 // initial scale factors
	startHigh = 8
)

// A band is the adaptive predictor and quantizer of half the spectrum (G.722
// sections 3.4 to 3.6). Encoder and decoder feed it with the transmitted bits,
// so both predict the same.
type band struct {
	predicted int32 // predicted next sample
	zero      int32 // contribution of the zeros to predicted
	log       int32 // logarithm of scale
	scale     int32 // quantizer scale factor

	poles         [2]int32 // coefficients
	zeros         [6]int32
	reconstructed [2]int32 // reconstructed samples, newest first, doubled
	parts         [2]int32 // samples minus the poles' contribution
	diffs         [6]int32 // differences, newest first, doubled
}

// adaptLow takes the six bits of a lower band sample. Only the upper four
// affect the state, so the rest may be stolen (section 3.3.3).
func (b *band) adaptLow(code int32) {
	code >>= 2
	diff := b.scale * coarse[code] >> 15
	size := 15 - code // levels of both signs, largest first
	if code < 8 {
		size = (8 - code) & 7
	}
	b.log = max(0, min(18432, b.log*127>>7+growLow[size]))
	b.scale = exponent(b.log, 8)
	b.adapt(diff)
}

// adaptHigh takes the two bits of an upper band sample.
func (b *band) adaptHigh(code int32) {
	diff := b.scale * upper[code] >> 15
	b.log = max(0, min(22528, b.log*127>>7+growHigh[code&1]))
	b.scale = exponent(b.log, 10)
	b.adapt(diff)
}

// exponent converts a base-2 logarithm in 2048ths to the scale.
func exponent(log, bias int32) int32 {
	mantissa, shift := mantissas[log>>6&31], bias-log>>11
	if shift < 0 {
		return mantissa << -shift << 2
	}
	return mantissa >> shift << 2
}

func (b *band) adapt(diff int32) {
	reconstructed := saturate(b.predicted + diff)
	part := saturate(b.zero + diff)
	b.adaptPoles(part)
	b.reconstructed = [2]int32{saturate(2 * reconstructed), b.reconstructed[0]}
	b.parts = [2]int32{part, b.parts[0]}

	pole := saturate(b.poles[0]*b.reconstructed[0]>>15 + b.poles[1]*b.reconstructed[1]>>15)
	b.zero = b.adaptZeros(diff)
	b.predicted = saturate(pole + b.zero)
}

// adaptPoles adapts the poles by the signs of the last three parts and keeps
// the filter stable.
func (b *band) adaptPoles(part int32) {
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

// adaptZeros adapts the zeros by the signs of the differences and returns
// their prediction. It takes most of the time.
func (b *band) adaptZeros(diff int32) int32 {
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
	qmfTaps = [12]int32{3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11}

	// levels are the decision levels of the lower band.
	levels = [29]int32{
		35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786,
		858, 940, 1023, 1121, 1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919,
	}
	// fine are the differences of the six lower band bits.
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
	// upper are the differences of the two upper band bits.
	upper = [4]int32{-7408, -1616, 7408, 1616}

	// growLow is the change of the lower band's scale for each size of the difference,
	// smallest first; growHigh is that of the upper band, largest first.
	growLow  = [8]int32{-60, -30, 58, 172, 334, 538, 1198, 3042}
	growHigh = [2]int32{798, -214}

	mantissas = [32]int32{
		2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834,
		2896, 2960, 3025, 3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
	}
)
