package rtcp

import (
	"errors"
	"testing"
	"time"

	"github.com/pion/rtcp"
)

// TestAgainstPion compares results with those of pion/rtcp, for reading and for writing.
func TestAgainstPion(t *testing.T) {
	full := Report{
		SSRC: 7, HasSender: true, Sender: SenderInfo{NTP: 1 << 40, RTP: 160, Packets: 10, Octets: 1600},
		HasBlock: true, Block: Block{SSRC: 9, Fraction: 25, Lost: -3, Highest: 70000, Jitter: 12, LastSR: 5, Delay: 6}, Bye: true,
	}
	for _, r := range []Report{full, {SSRC: 1}, {SSRC: 2, HasBlock: true, Block: Block{SSRC: 9, Lost: 1 << 22}}, {SSRC: 3, Bye: true}} {
		for _, name := range []string{"", "a", "ab", "abc", "abcd", "0123456789abcdef0123456789abcdef"} {
			b := r.Append(make([]byte, 0, MaxLen), name)
			if len(b) > MaxLen || len(b)%4 != 0 {
				t.Errorf("%d bytes", len(b))
			}
			var theirs rtcp.CompoundPacket
			if err := theirs.Unmarshal(b); err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if got, err := theirs.CNAME(); err != nil || got != name {
				t.Errorf("name %q, %v", got, err)
			}
			if r.HasSender {
				if sr, ok := theirs[0].(*rtcp.SenderReport); !ok || sr.NTPTime != 1<<40 || sr.PacketCount != 10 || sr.OctetCount != 1600 || sr.Reports[0].Jitter != 12 || sr.Reports[0].FractionLost != 25 {
					t.Errorf("%+v", theirs[0])
				}
			}
			if got, err := Parse(b, 9); err != nil || got != r {
				t.Errorf("%+v became %+v, %v", r, got, err)
			}
		}
	}
	b, err := rtcp.Marshal([]rtcp.Packet{
		&rtcp.SenderReport{SSRC: 4, NTPTime: 99, Reports: []rtcp.ReceptionReport{{SSRC: 1}, {SSRC: 9, TotalLost: 2, Delay: 3}}},
		&rtcp.SourceDescription{Chunks: []rtcp.SourceDescriptionChunk{{Source: 4, Items: []rtcp.SourceDescriptionItem{{Type: rtcp.SDESCNAME, Text: "x"}}}}},
		&rtcp.Goodbye{Sources: []uint32{4}, Reason: "done"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Parse(b, 9); err != nil || !got.HasSender || got.Sender.NTP != 99 || !got.HasBlock || got.Block.Lost != 2 || got.Block.Delay != 3 || !got.Bye {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestMalformed(t *testing.T) {
	good := (&Report{SSRC: 1, HasBlock: true}).Append(nil, "x")
	for name, b := range map[string][]byte{
		"empty": nil, "a header alone": {0x80, 201, 0, 0}, "short": good[:9], "cut": good[:len(good)-4],
		"version": append([]byte{0x40}, good[1:]...), "too many blocks": append([]byte{0x9f}, good[1:]...),
		"begins with a name": good[32:], "padded first": append([]byte{good[0] | 0x20}, good[1:]...),
	} {
		if r, err := Parse(b, 0); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %+v, want an error", name, r)
		}
	}
}

func TestReceiverStats(t *testing.T) {
	var r ReceiverStats
	if _, ok := r.Block(); ok {
		t.Error("Block: got true without packets")
	}
	at := time.Duration(0)
	for i := range 1000 {
		at += 20 * time.Millisecond
		if i%10 == 3 {
			continue
		}
		r.ObserveSeq(5, uint16(65000+i))
		late := time.Duration(i%2) * 5 * time.Millisecond
		r.ObserveTime(uint32(160*i), at+late)
	}
	b, ok := r.Block()
	if !ok || b.SSRC != 5 || b.Lost != 100 || b.Fraction != 25 || b.Highest != 65999 {
		t.Errorf("%+v", b)
	}
	if got := r.Jitter(); got < 4*time.Millisecond || got > 5*time.Millisecond {
		t.Errorf("jitter %v", got)
	}
	if b, _ := r.Block(); b.Fraction != 0 {
		t.Errorf("got %d/256 lost without new packets, want 0", b.Fraction)
	}
	r.ObserveSeq(6, 1)
	r.ObserveSeq(6, 3)
	if n := r.Total(); n != (Counts{902, 101}) {
		t.Errorf("%+v", n)
	}
	if n := testing.AllocsPerRun(100, func() { r.ObserveSeq(6, 4); r.ObserveTime(0, 0); r.Block() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestDuplicates checks that duplicates do not hide losses in Total, although they do in report blocks.
func TestDuplicates(t *testing.T) {
	var r ReceiverStats
	for i := range 1000 {
		if i%20 == 7 {
			continue
		}
		r.ObserveSeq(1, uint16(65000+i))
		if i%20 == 3 {
			r.ObserveSeq(1, uint16(65000+i))
		}
		if i%20 == 10 { // a duplicate of packet i-4, which was not lost
			r.ObserveSeq(1, uint16(65000+i-4))
		}
	}
	if n := r.Total(); n != (Counts{950, 50}) {
		t.Errorf("50 of 1000 lost, 100 doubled: %+v", n)
	}
	if b, _ := r.Block(); b.Lost != -50 {
		t.Errorf("reported as %d lost", b.Lost)
	}
	r.ObserveSeq(1, 164) // the 701st duplicate, too old to be recognized
	r.ObserveSeq(2, 9)
	r.ObserveSeq(2, 9)
	if n := r.Total(); n.Packets != 952 || n.Lost != 49 {
		t.Errorf("after a new stream: %+v", n)
	}
}

func TestRoundTrip(t *testing.T) {
	sent := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)
	b := Block{LastSR: CompactNTP(NTP(sent)), Delay: DelayUnits(2 * time.Second)}
	got, ok := b.RoundTrip(NTP(sent.Add(2*time.Second + 80*time.Millisecond)))
	if !ok || got < 79*time.Millisecond || got > 81*time.Millisecond {
		t.Errorf("%v, %v", got, ok)
	}
	if _, ok := b.RoundTrip(NTP(sent.Add(time.Second))); ok {
		t.Error("got a round trip from a report that is too old")
	}
	if _, ok := (&Block{}).RoundTrip(NTP(sent)); ok {
		t.Error("got a round trip without a sender report")
	}
	if n := NTP(time.Date(1900, 1, 1, 0, 0, 1, 500_000_000, time.UTC)); n != 3<<31 {
		t.Errorf("%x", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add((&Report{SSRC: 1, HasSender: true, HasBlock: true, Block: Block{SSRC: 9}, Bye: true}).Append(nil, "name"), uint32(9))
	f.Add([]byte{0x80, 201, 0, 1, 0, 0, 0, 1}, uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, ours uint32) {
		r, err := Parse(b, ours)
		if err != nil {
			return
		}
		again, err := Parse(r.Append(nil, "x"), ours)
		if err != nil || again != r {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}
