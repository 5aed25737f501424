package leg

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/parley-voice/parley/media"
)

// TestKeys: keys are heard once each, whatever clock they are told by and however
// often; one that is pressed after the end is nobody's.
func TestKeys(t *testing.T) {
	for _, rate := range []int64{8000, 48000} {
		l := &Leg{}
		if err := l.Open(); err != nil {
			t.Fatal(err)
		}
		seq := uint16(65530)
		at := uint32(1<<32 - 20000)
		press := func(code byte) {
			for n := range 7 { // five frames of 20 ms, the last thrice
				held := min(n+1, 5) * int(rate) / 50
				h := rtp.Header{Marker: n == 0, SSRC: 7, SequenceNumber: seq, Timestamp: at}
				l.key(&h, []byte{code, 10, byte(held >> 8), byte(held)}, rate, time.Now())
				seq++
			}
			late := rtp.Header{SSRC: 7, SequenceNumber: seq - 7, Timestamp: at - uint32(rate)/2}
			l.key(&late, []byte{3, 0x8a, 3, 32}, rate, time.Now()) // overtaken by half a second
			at += uint32(rate)
		}
		for _, code := range []byte{4, 2, 11} {
			press(code)
		}
		if err := l.Hangup(media.LocalHangup); err != nil {
			t.Fatal(err)
		}
		press(1)
		got := ""
		for k := range l.Digits() {
			got += string(k)
		}
		if got != "42#" {
			t.Errorf("at %d Hz %q is heard, want 42#", rate, got)
		}
	}
}

// TestConsentExpires: a party's consent ends when its answers do, once each time.
func TestConsentExpires(t *testing.T) {
	c := consent{lasts: 30 * time.Second}
	began := time.Now()
	for _, at := range []struct {
		second  int
		answers uint64
		expired bool
	}{
		{0, 0, false},
		{20, 0, false},
		{29, 9, false},
		{58, 9, false},
		{59, 9, true},
		{61, 9, false},
		{100, 9, false},
		{101, 10, false},
		{130, 10, false},
		{131, 10, true},
		{140, 1, false}, // another way counts from anew
		{169, 1, false},
	} {
		if got := c.expired(at.answers, began.Add(time.Duration(at.second)*time.Second)); got != at.expired {
			t.Errorf("after %d s with %d answers: %v", at.second, at.answers, got)
		}
	}
}
