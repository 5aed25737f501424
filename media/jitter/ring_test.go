package jitter

import (
	"bytes"
	"runtime"
	"testing"
)

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

// TestRingBytes pushes payloads of many lengths while another goroutine reads them, and checks each byte.
func TestRingBytes(t *testing.T) {
	var r Ring
	const packets = 5_000
	fill := func(i int) []byte {
		return bytes.Repeat([]byte{byte(i)}, i*37%(MaxPayload+1))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; i < packets; runtime.Gosched() {
			if r.Push(&Packet{Seq: uint16(i), Payload: fill(i)}) {
				i++
			}
		}
	}()
	for i := 0; i < packets; runtime.Gosched() {
		p := r.Peek()
		if p == nil {
			continue
		}
		if p.Seq != uint16(i) || !bytes.Equal(p.Payload, fill(i)) {
			t.Fatalf("packet %d: number %d, %d bytes", i, p.Seq, len(p.Payload))
		}
		r.Drop()
		i++
	}
	<-done
	// Long packets fill the bytes before the slots.
	n := 0
	for r.Push(&Packet{Payload: make([]byte, MaxPayload)}) {
		n++
	}
	if n < ringBytes/MaxPayload-1 || n > ringBytes/MaxPayload {
		t.Errorf("room for %d packets of %d bytes", n, MaxPayload)
	}
}
