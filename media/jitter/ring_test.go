package jitter

import "testing"

func TestRing(t *testing.T) {
	var r Ring
	for round := range 2 {
		payload := make([]byte, MaxPayload+1)
		for i := range RingLen {
			payload[0] = byte(i)
			if !r.Push(&Packet{Seq: uint16(i), Payload: payload[:i+1], Kind: Comfort, Format: 2}) {
				t.Fatalf("full after %d", i)
			}
		}
		if r.Push(&Packet{}) {
			t.Error("Push: got true on a full ring")
		}
		for i := range RingLen {
			p := r.Peek()
			if p == nil || p.Seq != uint16(i) || len(p.Payload) != i+1 || p.Payload[0] != byte(i) || p.Kind != Comfort || p.Format != 2 {
				t.Fatalf("round %d, packet %d: %+v", round, i, p)
			}
			r.Drop()
		}
		if r.Peek() != nil {
			t.Error("Peek: got a packet from an empty ring")
		}
		if r.Push(&Packet{Payload: payload}); len(r.Peek().Payload) != MaxPayload {
			t.Errorf("%d bytes of a payload that is too long", len(r.Peek().Payload))
		}
		r.Drop()
	}
}
