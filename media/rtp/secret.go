package rtp

// sealed returns a packet as it leaves, in dst where it is encrypted. Where
// that fails nothing may leave.
func (t *terms) sealed(dst, wire []byte) ([]byte, bool) {
	if !t.secret {
		return wire, true
	}
	if t.seal == nil {
		return nil, false
	}
	out, err := t.seal.RTP(dst, wire)
	return out, err == nil
}

// unseal decrypts the packet p that came in as b. It is false where the packet
// is not the party's, or came before.
func (r *receiver) unseal(t *terms, b []byte, p *packet) bool {
	if !t.secret {
		return true
	}
	if t.open == nil {
		return false
	}
	out, err := t.open.RTP(r.opened[:0], b)
	if err != nil {
		return false
	}
	plain, ok := parse(&r.header, out)
	*p = plain
	return ok
}
