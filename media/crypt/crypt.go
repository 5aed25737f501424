package crypt

import (
	"fmt"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

const (
	// Overhead is the most by which a packet grows: an SRTCP index and a tag.
	Overhead = 4 + 10
	// window is how many packets back a copy is known.
	window = 128
)

func context(k Key, options ...srtp.ContextOption) (*srtp.Context, error) {
	profile := srtp.ProtectionProfileAes128CmHmacSha1_80
	if k.suite == Tag32 {
		profile = srtp.ProtectionProfileAes128CmHmacSha1_32
	}
	if !k.Set() {
		return nil, fmt.Errorf("srtp without a key")
	}
	master := k.master()
	c, err := srtp.CreateContext(master[:keyLen], master[keyLen:], profile, options...)
	if err != nil {
		return nil, fmt.Errorf("srtp context: %w", err)
	}
	return c, nil
}

// A Sealer encrypts what leaves. It belongs to one goroutine.
type Sealer struct {
	context *srtp.Context
	header  rtp.Header
	control rtcp.Header
}

// NewSealer returns a Sealer under our key.
func NewSealer(ours Key) (*Sealer, error) {
	c, err := context(ours)
	if err != nil {
		return nil, err
	}
	return &Sealer{context: c}, nil
}

// RTP encrypts a packet into dst, which must have room for Overhead more, and
// returns what was written.
func (s *Sealer) RTP(dst, packet []byte) ([]byte, error) {
	return s.context.EncryptRTP(dst, packet, &s.header)
}

// RTCP is RTP for a compound control packet.
func (s *Sealer) RTCP(dst, packet []byte) ([]byte, error) {
	return s.context.EncryptRTCP(dst, packet, &s.control)
}

// An Opener checks and decrypts what comes in. It belongs to one goroutine.
type Opener struct {
	context *srtp.Context
	header  rtp.Header
	control rtcp.Header
}

// NewOpener returns an Opener under the party's key.
func NewOpener(theirs Key) (*Opener, error) {
	c, err := context(theirs, srtp.SRTPReplayProtection(window), srtp.SRTCPReplayProtection(window))
	if err != nil {
		return nil, err
	}
	return &Opener{context: c}, nil
}

// RTP decrypts a packet into dst, which must be as long, and returns what was
// written. It is an error where the packet is not of the party, or came before.
func (o *Opener) RTP(dst, packet []byte) ([]byte, error) {
	return o.context.DecryptRTP(dst, packet, &o.header)
}

// RTCP is RTP for a compound control packet.
func (o *Opener) RTCP(dst, packet []byte) ([]byte, error) {
	return o.context.DecryptRTCP(dst, packet, &o.control)
}
