package codec

const (
	startLow  = 32 // initial scale factors
	startHigh = 8
)

// band is the adaptive predictor and quantizer for half of the spectrum (G.722 sections 3.4 to 3.6). The encoder and
// the decoder feed it with the transmitted bits only, so that both make the same predictions.
type band struct {
	predicted int32 // prediction of the next sample
	zero      int32 // part of predicted that comes from the zeros
	log       int32 // logarithm of scale, base 2, in 2048ths
	scale     int32 // scale factor of the quantizer

	poles         [2]int32 // coefficients of the two poles
	zeros         [6]int32
	reconstructed [2]int32 // reconstructed samples, newest first, doubled
	parts         [2]int32 // samples without the poles' contribution
	diffs         [6]int32 // differences, newest first, doubled
}

// adaptLow processes the six bits of a sample in the lower band. Only the upper four bits affect the state, so the
// lower two may carry other data (G.722 section 3.3.3).
func (b *band) adaptLow(code int32) {
	code >>= 2
	diff := b.scale * coarse[code] >> 15
	size := 15 - code // the codes of each sign begin with the largest size
	if code < 8 {
		size = (8 - code) & 7
	}
	b.log = max(0, min(18432, b.log*127>>7+growLow[size]))
	b.scale = exponent(b.log, 8)
	b.adapt(diff)
}

// adaptHigh processes the two bits of a sample in the upper band.
func (b *band) adaptHigh(code int32) {
	diff := b.scale * upper[code] >> 15
	b.log = max(0, min(22528, b.log*127>>7+growHigh[code&1]))
	b.scale = exponent(b.log, 10)
	b.adapt(diff)
}

// exponent converts a base-2 logarithm in 2048ths to a scale factor.
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

// adaptPoles adapts the poles according to the signs of the last three parts. It keeps the filter stable.
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

// adaptZeros adapts the zeros according to the signs of the differences, and returns their part of the prediction.
// Most of the time of the codec is spent here.
func (b *band) adaptZeros(diff int32) int32 {
	step := int32(128)
	if diff == 0 {
		step = 0
	}
	next, zero := saturate(2*diff), int32(0)
	for i := range b.diffs {
		d := b.diffs[i]
		turn := (d ^ diff) >> 31 // -1 if the signs differ, otherwise 0
		z := saturate((step ^ turn) - turn + b.zeros[i]*32640>>15)
		zero += z * next >> 15
		b.zeros[i], b.diffs[i], next = z, next, d
	}
	return saturate(zero)
}

func sameSign(a, b int32) bool { return (a < 0) == (b < 0) }

// Tables of the standard G.722.
//
//nolint:gochecknoglobals // read-only tables
var (
	qmfTaps = [12]int32{3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11}

	// levels are the decision levels for the lower band.
	levels = [29]int32{
		35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786,
		858, 940, 1023, 1121, 1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919,
	}
	// fine maps the six bits of the lower band to differences.
	fine = [64]int32{
		-136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232, -9360, -8576, -7856,
		-7192, -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040, -728,
		24808, 21904, 19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456,
		4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432, -136,
	}
	// coarse maps the upper four of these six bits to differences.
	coarse = [16]int32{
		0, -20456, -12896, -8968, -6288, -4240, -2584, -1200,
		20456, 12896, 8968, 6288, 4240, 2584, 1200, 0,
	}
	// upper maps the two bits of the upper band to differences.
	upper = [4]int32{-7408, -1616, 7408, 1616}

	// growLow is the change of band.log in the lower band for each size of the difference, smallest size first.
	// growHigh is the same for the upper band, largest size first.
	growLow  = [8]int32{-60, -30, 58, 172, 334, 538, 1198, 3042}
	growHigh = [2]int32{798, -214}

	mantissas = [32]int32{
		2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834,
		2896, 2960, 3025, 3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
	}
)
