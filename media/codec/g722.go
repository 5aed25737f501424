package codec

const (
	g722Rate  = 16000 // sample rate in Hz
	g722Clock = 8000  // RTP clock rate in Hz; an old error that is kept for compatibility (RFC 3551 section 4.5.2)
)

// G722 is ITU-T G.722 at 64 kbit/s (mode 1): 7 kHz audio in two bands. Each band is coded with adaptive differential
// PCM.
type G722 struct{}

// Name implements Codec.
func (G722) Name() string { return "G722" }

// PayloadType implements Codec.
func (G722) PayloadType() uint8 { return 9 }

// Rate implements Codec.
func (G722) Rate() int { return g722Rate }

// ClockRate implements Codec.
func (G722) ClockRate() int { return g722Clock }

// NewEncoder implements Codec.
func (G722) NewEncoder() Encoder {
	e := &g722Encoder{}
	e.low.scale, e.high.scale = startLow, startHigh
	return e
}

// NewDecoder implements Codec.
func (G722) NewDecoder() Decoder {
	d := &g722Decoder{}
	d.low.scale, d.high.scale = startLow, startHigh
	return d
}

type g722Encoder struct {
	split     qmf
	low, high band
}

// Encode implements Encoder. It encodes two samples as one byte.
func (e *g722Encoder) Encode(dst []byte, pcm []int16) int {
	n := min(len(dst), len(pcm)/2)
	for i := range n {
		even, odd := e.split.push(int32(pcm[2*i]), int32(pcm[2*i+1]))
		low, high := (odd+even)>>14, (odd-even)>>14
		l := quantizeLow(saturate(low-e.low.predicted), e.low.scale)
		h := quantizeHigh(saturate(high-e.high.predicted), e.high.scale)
		e.low.adaptLow(l)
		e.high.adaptHigh(h)
		dst[i] = byte(h<<6 | l) //nolint:gosec // two bits and six
	}
	return n
}

type g722Decoder struct {
	join      qmf
	low, high band
}

// Decode implements Decoder. It decodes one byte to two samples.
func (d *g722Decoder) Decode(dst []int16, payload []byte) int {
	n := min(len(dst)/2, len(payload))
	for i, b := range payload[:n] {
		l, h := int32(b&63), int32(b>>6)
		low := clamp(d.low.predicted+d.low.scale*fine[l]>>15, 1<<14)
		high := clamp(d.high.predicted+d.high.scale*upper[h]>>15, 1<<14)
		d.low.adaptLow(l)
		d.high.adaptHigh(h)
		even, odd := d.join.push(low+high, low-high)
		dst[2*i], dst[2*i+1] = int16(saturate(odd>>11)), int16(saturate(even>>11)) //nolint:gosec // saturated
	}
	return 2 * n
}

// qmf holds the last samples of the quadrature mirror filter (G.722 sections 3.1 and 4.4), newest last.
type qmf [24]int32

// push adds two samples. It returns the filter sums over the even and over the odd positions.
func (m *qmf) push(a, b int32) (even, odd int32) {
	copy(m[:], m[2:])
	m[22], m[23] = a, b
	for i, c := range qmfTaps {
		even += m[2*i] * c
		odd += m[2*i+1] * qmfTaps[len(qmfTaps)-1-i]
	}
	return even, odd
}

// quantizeLow returns the six bits for a difference in the lower band (G.722 section 3.3.1).
func quantizeLow(diff, scale int32) int32 {
	size := diff
	if diff < 0 {
		size = ^diff
	}
	n := 0
	for n < len(levels) && size >= levels[n]*scale>>12 {
		n++
	}
	if diff >= 0 {
		return int32(61 - n)
	}
	if n < 2 {
		return int32(63 - n)
	}
	return int32(33 - n)
}

// quantizeHigh returns the two bits for a difference in the upper band (G.722 section 3.3.2).
func quantizeHigh(diff, scale int32) int32 {
	const level = 564
	size, code := diff, int32(3)
	if diff < 0 {
		size, code = ^diff, 1
	}
	if size >= level*scale>>12 {
		code--
	}
	return code
}

func saturate(v int32) int32 { return max(-1<<15, min(1<<15-1, v)) }

func clamp(v, n int32) int32 { return max(-n, min(n-1, v)) }
