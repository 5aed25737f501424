package codec

import "math/bits"

const g711Rate = 8000 // Hz, for samples and for the RTP clock

// PCMU is G.711 µ-law. It has no state: it is its own encoder and decoder, and streams may share it.
type PCMU struct{ g711 }

type g711 struct{}

// Rate implements Codec.
func (g711) Rate() int { return g711Rate }

// ClockRate implements Codec.
func (g711) ClockRate() int { return g711Rate }

// Name implements Codec.
func (PCMU) Name() string { return "PCMU" }

// PayloadType implements Codec.
func (PCMU) PayloadType() uint8 { return 0 }

// NewEncoder implements Codec.
func (PCMU) NewEncoder() Encoder { return PCMU{} }

// NewDecoder implements Codec.
func (PCMU) NewDecoder() Decoder { return PCMU{} }

// Encode implements Encoder.
func (PCMU) Encode(dst []byte, pcm []int16) int {
	n := min(len(dst), len(pcm))
	dst = dst[:n]
	for i, s := range pcm[:n] {
		dst[i] = ulawSteps[ulawStep(s)]
	}
	return n
}

// Decode implements Decoder.
func (PCMU) Decode(dst []int16, payload []byte) int {
	n := min(len(dst), len(payload))
	for i, b := range payload[:n] {
		dst[i] = ulaw[b]
	}
	return n
}

// PCMA is G.711 A-law. It has no state, like PCMU.
type PCMA struct{ g711 }

// Name implements Codec.
func (PCMA) Name() string { return "PCMA" }

// PayloadType implements Codec.
func (PCMA) PayloadType() uint8 { return 8 }

// NewEncoder implements Codec.
func (PCMA) NewEncoder() Encoder { return PCMA{} }

// NewDecoder implements Codec.
func (PCMA) NewDecoder() Decoder { return PCMA{} }

// Encode implements Encoder.
func (PCMA) Encode(dst []byte, pcm []int16) int {
	n := min(len(dst), len(pcm))
	for i, s := range pcm[:n] {
		dst[i] = encodeALaw(s)
	}
	return n
}

// Decode implements Decoder.
func (PCMA) Decode(dst []int16, payload []byte) int {
	n := min(len(dst), len(payload))
	for i, b := range payload[:n] {
		dst[i] = alaw[b]
	}
	return n
}

// The µ-law curve has eight segments. Adding ulawBias to a magnitude makes each segment begin at a power of two.
const (
	ulawBias = 0x84
	ulawClip = 0x7fff - ulawBias
)

// ulawStep returns the index of the code of s in ulawSteps. The shortest step of the curve has 8 values, and the first
// one has 4: magnitudes of 0 to 3 have one code, 4 to 11 the next, and so on. There is a negative zero, so the negative
// samples begin at -1.
func ulawStep(s int16) int { return (int(s) + 4 + int(s>>15)*9) >> 3 & (ulawSize - 1) }

// ulawSize is a power of two that separates the steps of positive samples from those of negative ones.
const ulawSize = 1 << 14

func ulawTable() (t [ulawSize]byte) {
	for s := -1 << 15; s < 1<<15; s++ {
		t[ulawStep(int16(s))] = encodeULaw(int16(s))
	}
	return t
}

func encodeULaw(s int16) byte {
	mag, sign := int(s), 0
	if mag < 0 {
		mag, sign = -mag, 0x80
	}
	mag = min(mag, ulawClip) + ulawBias
	seg := bits.Len16(uint16(mag)) - 8            //nolint:gosec // mag is at most 0x7fff
	return ^byte(sign | seg<<4 | mag>>(seg+3)&15) //nolint:gosec // three fields of one byte
}

func decodeULaw(b byte) int16 {
	b = ^b
	mag := (int16(b&15)<<3+ulawBias)<<(b>>4&7) - ulawBias
	if b&0x80 != 0 {
		return -mag
	}
	return mag
}

func encodeALaw(s int16) byte {
	mag, mask := int(s)>>3, byte(0xd5)
	if mag < 0 {
		mag, mask = -mag-1, 0x55
	}
	seg := max(bits.Len16(uint16(mag))-5, 0)       //nolint:gosec // mag has 12 bits
	return byte(seg<<4|mag>>max(seg, 1)&15) ^ mask //nolint:gosec // two fields of seven bits
}

func decodeALaw(b byte) int16 {
	b ^= 0x55
	seg := b >> 4 & 7
	mag := int16(b&15)<<4 + 8
	if seg > 0 {
		mag = (mag + 0x100) << (seg - 1)
	}
	if b&0x80 == 0 {
		return -mag
	}
	return mag
}

//nolint:gochecknoglobals // read-only tables
var (
	ulaw = table(decodeULaw)
	alaw = table(decodeALaw)

	ulawSteps = ulawTable()
)

func table(decode func(byte) int16) (t [256]int16) {
	for i := range t {
		t[i] = decode(byte(i))
	}
	return t
}
