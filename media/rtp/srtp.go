package rtp

// encrypt returns the packet to send: wire, or the encrypted packet in dst. If it returns false, nothing may be sent.
func (t *activeParams) encrypt(dst, wire []byte) ([]byte, bool) {
	if !t.encrypted {
		return wire, true
	}
	if t.encrypter == nil {
		return nil, false
	}
	out, err := t.encrypter.RTP(dst, wire)
	return out, err == nil
}

// decrypt decrypts the packet p, which was received as b. It returns false for a forged or replayed packet.
func (r *incoming) decrypt(t *activeParams, b []byte, p *packet) bool {
	if !t.encrypted {
		return true
	}
	if t.decrypter == nil {
		return false
	}
	out, err := t.decrypter.RTP(r.opened[:0], b)
	if err != nil {
		return false
	}
	plain, ok := parse(&r.header, out)
	*p = plain
	return ok
}
