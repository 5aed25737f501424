package srtp

import (
	"fmt"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

const (
	// Overhead is the maximum number of bytes by which a packet grows: an SRTCP index and a tag.
	Overhead = 4 + 10
	// window is the size of the replay window in packets.
	window = 128
)

func context(k Key, options ...srtp.ContextOption) (*srtp.Context, error) {
	profile := srtp.ProtectionProfileAes128CmHmacSha1_80
	if k.suite == Tag32 {
		profile = srtp.ProtectionProfileAes128CmHmacSha1_32
	}
	if !k.IsSet() {
		return nil, fmt.Errorf("srtp without a key")
	}
	master := k.master()
	c, err := srtp.CreateContext(master[:keyLen], master[keyLen:], profile, options...)
	if err != nil {
		return nil, fmt.Errorf("srtp context: %w", err)
	}
	return c, nil
}

// Encrypter encrypts packets that are sent. It must be used by one goroutine only.
type Encrypter struct {
	context *srtp.Context
	header  rtp.Header
	control rtcp.Header
}

// NewEncrypter returns an Encrypter with the local key.
func NewEncrypter(local Key) (*Encrypter, error) {
	c, err := context(local)
	if err != nil {
		return nil, err
	}
	return &Encrypter{context: c}, nil
}

// RTP encrypts a packet into dst and returns the result. dst needs a capacity of len(packet)+Overhead.
func (e *Encrypter) RTP(dst, packet []byte) ([]byte, error) {
	return e.context.EncryptRTP(dst, packet, &e.header)
}

// RTCP does the same as RTP for a compound RTCP packet.
func (e *Encrypter) RTCP(dst, packet []byte) ([]byte, error) {
	return e.context.EncryptRTCP(dst, packet, &e.control)
}

// Decrypter authenticates and decrypts received packets. It must be used by one goroutine only.
type Decrypter struct {
	context *srtp.Context
	header  rtp.Header
	control rtcp.Header
}

// NewDecrypter returns a Decrypter with the remote key.
func NewDecrypter(remote Key) (*Decrypter, error) {
	c, err := context(remote, srtp.SRTPReplayProtection(window), srtp.SRTCPReplayProtection(window))
	if err != nil {
		return nil, err
	}
	return &Decrypter{context: c}, nil
}

// RTP decrypts a packet into dst and returns the result. dst needs a capacity of len(packet). A forged or replayed
// packet is an error.
func (d *Decrypter) RTP(dst, packet []byte) ([]byte, error) {
	return d.context.DecryptRTP(dst, packet, &d.header)
}

// RTCP does the same as RTP for a compound RTCP packet.
func (d *Decrypter) RTCP(dst, packet []byte) ([]byte, error) {
	return d.context.DecryptRTCP(dst, packet, &d.control)
}
