package rtp

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
)

// payloadByte is the byte with which withType fills payloads.
const payloadByte = 0x30

// withType gives packets another payload type, and fills their payloads with payloadByte.
func withType(flights []flight, pt uint8) []flight {
	for i := range flights {
		flights[i].pt = pt
		for k := range flights[i].payload {
			flights[i].payload[k] = payloadByte
		}
	}
	return flights
}

// sample returns the sample that payloadByte decodes to.
func sample(c codec.Codec) int16 {
	var pcm [1]int16
	c.NewDecoder().Decode(pcm[:], []byte{payloadByte})
	return pcm[0]
}

// countValues returns the number of frames for each sample value. It counts only frames in which all samples are equal.
// The map is filled while the simulation runs.
func (l *receiveSim) countValues() map[int16]int {
	all := map[int16]int{}
	l.each = func(f media.Frame) {
		if !slices.ContainsFunc(f, func(v int16) bool { return v != f[0] }) {
			all[f[0]]++
		}
	}
	return all
}

// TestRemoteChangesCodec sends packets that alternate between the codecs of the answer, and packets with a payload
// type of the local offer.
func TestRemoteChangesCodec(t *testing.T) {
	expired := false
	l := newReceiveSim(t, Params{
		PayloadType: 0, Others: []codec.Mapping{{PayloadType: 8, Codec: codec.PCMA{}}, {PayloadType: 97, Codec: codec.PCMA{}}},
		Remote: netip.AddrPortFrom(loopback(), 4000), SilenceTimeout: 2 * time.Second, OnTimeout: func() { expired = true },
	})
	counts := l.countValues()
	var all []flight
	for i, pt := range []uint8{0, 8, 97, 0} {
		all = append(all, withType(speech(time.Duration(i)*5*time.Second, i*250, 250, 1), pt)...)
	}
	l.run(all, 20*time.Second)
	if u, a := counts[sample(codec.PCMU{})], counts[sample(codec.PCMA{})]; u != 500 || a != 500 {
		t.Errorf("got %d frames of one codec and %d of the other, want 500 each", u, a)
	}
	if n := l.s.Stats(); n.Unknown != 0 || n.Lost != 0 || n.Resynced != 0 || expired {
		t.Errorf("%+v, expired %v", n, expired)
	}
}

// TestCodecChangeWithinFrame changes the codec in the middle of a frame, and checks that each half is decoded by its
// own codec.
func TestCodecChangeWithinFrame(t *testing.T) {
	l := newReceiveSim(t, Params{Others: []codec.Mapping{{PayloadType: 8, Codec: codec.PCMA{}}}})
	var all []flight
	for i := range 30 {
		p := packet{ssrc: 1, seq: uint16(i), ts: uint32(i * 240), payload: make([]byte, 240)}
		all = append(all, withType([]flight{{time.Duration(i) * 30 * ms, p}}, []uint8{0, 8}[i%2])...)
	}
	u, a, mixed := sample(codec.PCMU{}), sample(codec.PCMA{}), 0
	l.each = func(f media.Frame) {
		if half := f[len(f)/2:]; f[0] != half[0] {
			mixed++
			if f[0] != u && f[0] != a || half[0] != u && half[0] != a || slices.ContainsFunc(half, func(v int16) bool { return v != half[0] }) {
				t.Errorf("a frame of %d and %d", f[0], half[0])
			}
		}
	}
	l.run(all, 890*ms)
	if mixed != 15 {
		t.Errorf("%d frames of two codecs, want 15", mixed)
	}
}

// TestRenegotiation changes the codec during the call. Packets may use the old payload type for one second; then the
// type is unknown.
func TestRenegotiation(t *testing.T) {
	l := newReceiveSim(t, Params{Remote: netip.AddrPortFrom(loopback(), 4000)})
	counts := l.countValues()
	l.run(withType(speech(0, 0, 50, 1), 0), time.Second-20*ms)
	for _, f := range withType(speech(time.Second, 50, 2, 1), 0) { // let the reader decode the packets
		l.receive(f)
	}
	p := l.s.params.Load().Params
	p.Codec, p.PayloadType = codec.PCMA{}, 8
	l.s.Start(p)
	l.run(withType(speech(1040*ms, 52, 10, 1), 0), 1240*ms)
	l.run(withType(speech(1240*ms, 62, 100, 1), 8), 3240*ms)
	if u, a := counts[sample(codec.PCMU{})], counts[sample(codec.PCMA{})]; u != 62 || a != 100 || l.s.Stats().Unknown != 0 {
		t.Errorf("got %d of 62 frames of the old codec and %d of 100 of the new: %+v", u, a, l.s.Stats())
	}
	l.run(withType(speech(3260*ms, 162, 5, 1), 0), 4*time.Second)
	if n := l.s.Stats().Unknown; n != 5 {
		t.Errorf("%d packets of 5 under a payload type no longer negotiated", n)
	}
}

// TestKeyAlias checks that telephone events are accepted with the payload type of the local offer too, and with no
// other type.
func TestKeyAlias(t *testing.T) {
	l := newReceiveSim(t, Params{KeyType: 96, KeyAlias: 101})
	for i, pt := range []uint8{96, 101, 102} {
		k := packet{ssrc: 1, seq: uint16(i), ts: uint32(i * 8000), pt: pt, marker: true, payload: []byte{byte(5 + i), 10, 0, 160}}
		l.run([]flight{{time.Duration(i) * time.Second, k}}, time.Duration(i)*time.Second)
	}
	if n := len(l.s.keys); n != 2 || l.s.Stats().Unknown != 1 {
		t.Fatalf("%d keys, %d unknown", n, l.s.Stats().Unknown)
	}
	if a, b := <-l.s.keys, <-l.s.keys; a != '5' || b != '6' {
		t.Errorf("got %c and %c", a, b)
	}
}

// TestUnknownTypes checks that packets with unknown payload types do not count as lost, and that they show that the
// remote party is present.
func TestUnknownTypes(t *testing.T) {
	expired := false
	l := newReceiveSim(t, Params{SilenceTimeout: 2 * time.Second, OnTimeout: func() { expired = true }})
	all := speech(0, 0, 500, 1)
	for i := range all {
		if i%10 == 5 || i >= 200 {
			all[i].pt = 118
		}
	}
	l.run(all, 11*time.Second)
	n, q := l.s.Stats(), l.s.Quality()
	if n.Unknown != 320 || n.Lost != 0 || q.Received.Lost != 0 || q.Received.Packets != 500 || expired {
		t.Errorf("%+v, %+v, expired %v", n, q.Received, expired)
	}
	if l.run(nil, 13*time.Second); !expired {
		t.Error("OnTimeout was not called")
	}
}
