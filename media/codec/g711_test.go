package codec

import (
	"math"
	"testing"
)

// statelessCodec is a codec that is its own encoder and decoder.
type statelessCodec interface {
	Codec
	Encoder
	Decoder
}

func g711Codecs() []statelessCodec { return []statelessCodec{PCMU{}, PCMA{}} }

func TestRoundTrip(t *testing.T) {
	for _, c := range g711Codecs() {
		for b := range 256 {
			var pcm, again [1]int16
			var wire [1]byte
			c.Decode(pcm[:], []byte{byte(b)})
			c.Encode(wire[:], pcm[:])
			c.Decode(again[:], wire[:])
			if again != pcm {
				t.Errorf("%s %#02x: %d became %d", c.Name(), b, pcm[0], again[0])
			}
			// µ-law has two codes for zero. The encoder uses the positive one.
			if want := byte(b); wire[0] != want && (c.Name() != "PCMU" || want != 0x7f) {
				t.Errorf("%s %#02x came back as %#02x", c.Name(), b, wire[0])
			}
		}
	}
}

func TestReference(t *testing.T) {
	for _, row := range []struct {
		codec statelessCodec
		code  byte
		pcm   int16
	}{
		{PCMU{}, 0xff, 0},
		{PCMU{}, 0x7f, 0},
		{PCMU{}, 0x80, 32124},
		{PCMU{}, 0x00, -32124},
		{PCMU{}, 0xfe, 8},
		{PCMU{}, 0xef, 132},
		{PCMA{}, 0xd5, 8},
		{PCMA{}, 0x55, -8},
		{PCMA{}, 0xaa, 32256},
		{PCMA{}, 0x2a, -32256},
		{PCMA{}, 0xc5, 264},
	} {
		var pcm [1]int16
		if row.codec.Decode(pcm[:], []byte{row.code}); pcm[0] != row.pcm {
			t.Errorf("%s %#02x decodes to %d, want %d", row.codec.Name(), row.code, pcm[0], row.pcm)
		}
	}
}

// TestTable checks that the table of codes equals the computed codes.
func TestTable(t *testing.T) {
	for s := -1 << 15; s < 1<<15; s++ {
		got := make([]byte, 1)
		if (PCMU{}).Encode(got, []int16{int16(s)}); got[0] != encodeULaw(int16(s)) {
			t.Fatalf("%d: got %x, want %x", s, got[0], encodeULaw(int16(s)))
		}
	}
}

// TestEncodeNearestLevel checks the decision values: each sample gets the code whose interval contains the sample,
// and greater samples never get lower levels.
func TestEncodeNearestLevel(t *testing.T) {
	for _, c := range g711Codecs() {
		var levels [256]int16
		for b := range 256 {
			c.Decode(levels[b:b+1], []byte{byte(b)})
		}
		step := func(code byte) int {
			if c.Name() == "PCMU" {
				return 8 << (^code >> 4 & 7)
			}
			return 8 << max((code^0x55)>>4&7, 1)
		}
		last := int16(math.MinInt16)
		for s := math.MinInt16; s <= math.MaxInt16; s++ {
			var wire [1]byte
			c.Encode(wire[:], []int16{int16(s)})
			level, clipped := levels[wire[0]], s < -32124 || s > 32124
			if off := max(s-int(level), int(level)-s); off > step(wire[0])/2 && !clipped {
				t.Fatalf("%s: %d became %d with a step of %d", c.Name(), s, level, step(wire[0]))
			}
			if level < last {
				t.Fatalf("%s: %d became %d, and the sample before it %d", c.Name(), s, level, last)
			}
			last = level
		}
	}
}

func TestShortBuffers(t *testing.T) {
	for _, c := range g711Codecs() {
		if n := c.Encode(make([]byte, 3), make([]int16, 5)); n != 3 {
			t.Errorf("%s encoded %d", c.Name(), n)
		}
		if n := c.Decode(make([]int16, 5), make([]byte, 2)); n != 2 {
			t.Errorf("%s decoded %d", c.Name(), n)
		}
	}
}

func TestByName(t *testing.T) {
	if c, ok := ByName("pcmA"); !ok || c.PayloadType() != 8 {
		t.Errorf("pcmA is %v, %v", c, ok)
	}
	if c, ok := ByName("opus"); ok {
		t.Errorf("opus is %v", c)
	}
}

func TestNoAllocations(t *testing.T) {
	pcm, wire := make([]int16, 160), make([]byte, 160)
	for _, c := range g711Codecs() {
		if n := testing.AllocsPerRun(100, func() { c.Encode(wire, pcm); c.Decode(pcm, wire) }); n != 0 {
			t.Errorf("%s allocates %v times", c.Name(), n)
		}
	}
}

func BenchmarkCodec(b *testing.B) {
	pcm, wire := make([]int16, 160), make([]byte, 160)
	for i := range pcm {
		pcm[i] = int16(i * 200)
	}
	for _, c := range g711Codecs() {
		b.Run(c.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Encode(wire, pcm)
				c.Decode(pcm, wire)
			}
		})
	}
}
