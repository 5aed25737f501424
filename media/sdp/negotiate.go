package sdp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/codec"
	"github.com/parley-voice/parley/media/srtp"
)

const (
	eventName   = "TELEPHONE-EVENT" // encoding name of telephone events (RFC 4733 section 7.1.1)
	eventType   = 101               // payload type of telephone events in local offers
	comfortName = "CN"              // encoding name of comfort noise (RFC 3389)
	eventClock  = 8000              // in Hz, for every supported codec
	ptime       = 20                // requested packet time of received audio, in ms
)

// Reasons why a negotiation fails.
var (
	ErrNoCommonCodec = errors.New("sdp: no common audio codec")
	ErrEncryption    = errors.New("sdp: one side wants encrypted audio, the other does not")
	ErrNoCommonKey   = errors.New("sdp: no common encryption")
)

// Capabilities says what the local side supports in a call. The zero value means unencrypted audio with all codecs.
type Capabilities struct {
	// Codecs are encoding names in the order of preference. Empty means all codecs. Unknown names are ignored.
	Codecs []string
	// Keys are local keys from srtp.New. If they are set, audio must be encrypted. They stay the same during the
	// whole call.
	Keys []srtp.Key
}

// Agreement is the result of a negotiation.
type Agreement struct {
	Remote      netip.AddrPort // remote address for media
	RTCP        netip.AddrPort // remote address for RTCP, unless Mux is set; may be invalid
	Mux         bool           // RTCP uses the address of RTP (RFC 5761)
	Codec       codec.Codec
	PayloadType uint8
	// Others are the other payload types that the remote side may use at any time: those of all common codecs (RFC 3264
	// section 6.1), and those of the local offer (section 5.1).
	Others      []codec.Mapping
	KeyType     uint8         // payload type of telephone events; 0 if none
	KeyAlias    uint8         // another payload type with which telephone events are received; 0 if none
	ComfortType uint8         // payload type of comfort noise; 0 if none
	Ptime       time.Duration // packet time that the remote side requests
	LocalKey    srtp.Key      // key for sending; not set if audio is not encrypted
	RemoteKey   srtp.Key      // key for receiving
	Mute        bool          // the remote side does not want to receive
	RemoteMuted bool          // the remote side does not send

	tag     int // tag of the chosen crypto attribute
	profile string
	streams []stream
	index   int
}

// CapabilitiesFor returns the capabilities for a trunk. If the trunk requires encryption, they contain new keys. An
// unknown codec or encryption is an error.
func CapabilitiesFor(t media.Trunk) (Capabilities, error) {
	for _, name := range t.Codecs {
		if _, ok := codec.ByName(name); !ok {
			return Capabilities{}, fmt.Errorf("sdp: unknown codec %q", name)
		}
	}
	w := Capabilities{Codecs: t.Codecs}
	switch t.Encryption {
	case media.Plain:
	case media.Encrypted:
		w.Keys = srtp.New()
	default:
		return Capabilities{}, fmt.Errorf("sdp: unknown encryption %q", t.Encryption)
	}
	return w, nil
}

func (w Capabilities) codecList() []codec.Codec {
	if len(w.Codecs) == 0 {
		return codec.All()
	}
	var all []codec.Codec
	for _, name := range w.Codecs {
		if c, ok := codec.ByName(name); ok {
			all = append(all, c)
		}
	}
	return all
}

// Offer returns an offer with the capabilities w.
func Offer(local netip.AddrPort, origin Origin, w Capabilities) *Description {
	d := &Description{Addr: local, Direction: SendRecv, Ptime: ptime, Mux: true, Profile: "RTP/AVP", Origin: origin}
	for _, c := range w.codecList() {
		d.Formats = append(d.Formats, Format{PayloadType: c.PayloadType(), Name: c.Name(), ClockRate: c.ClockRate(), Channels: 1})
	}
	d.Formats = append(d.Formats, eventFormat(eventType))
	for i, k := range w.Keys {
		d.Profile = "RTP/SAVP"
		d.Crypto = append(d.Crypto, Crypto{Tag: i + 1, Key: k})
	}
	return d
}

func eventFormat(pt uint8) Format {
	return Format{PayloadType: pt, Name: eventName, ClockRate: eventClock, Channels: 1, Params: "0-16"}
}

// Agree negotiates with a remote description: an offer, or the answer to an offer with the capabilities w. It chooses
// the first remote codec that w contains, with the remote side's payload type. Codecs match by name and clock rate.
func Agree(remote *Description, w Capabilities) (Agreement, error) {
	remote = remote.pick(len(w.Keys) > 0)
	if remote.IsRejected() {
		return Agreement{}, errors.New("sdp: audio refused")
	}
	a := Agreement{
		Remote: remote.Addr, RTCP: remote.RTCP, Mux: remote.Mux, Mute: remote.IsOnHold(), RemoteMuted: remote.IsMuted(),
		Ptime: remote.packetTime(), profile: remote.Profile, streams: remote.streams, index: remote.index,
	}
	if err := a.chooseKeys(remote, w.Keys); err != nil {
		return Agreement{}, err
	}
	a.matchFormats(remote.Formats, w.codecList())
	if a.Codec == nil {
		return Agreement{}, ErrNoCommonCodec
	}
	a.addOfferTypes(remote.Formats)
	return a, nil
}

// matchFormats chooses the remote formats that the local side supports.
func (a *Agreement) matchFormats(remote []Format, local []codec.Codec) {
	for _, f := range remote {
		if f.Channels != 1 {
			continue
		}
		switch f.Name {
		case eventName:
			if f.ClockRate == eventClock && a.KeyType == 0 {
				a.KeyType = f.PayloadType
			}
			continue
		case comfortName:
			if f.ClockRate == eventClock && a.ComfortType == 0 {
				a.ComfortType = f.PayloadType
			}
			continue
		}
		n := slices.IndexFunc(local, func(c codec.Codec) bool {
			return strings.EqualFold(c.Name(), f.Name) && c.ClockRate() == f.ClockRate
		})
		switch {
		case n < 0:
		case a.Codec == nil:
			a.Codec, a.PayloadType = local[n], f.PayloadType
		default:
			a.Others = append(a.Others, codec.Mapping{PayloadType: f.PayloadType, Codec: local[n]})
		}
	}
}

// addOfferTypes adds the payload types of the local offer, because the remote side may use them too. It leaves out
// types that the remote side uses for other formats.
func (a *Agreement) addOfferTypes(remote []Format) {
	free := func(pt uint8) bool {
		return !slices.ContainsFunc(remote, func(f Format) bool { return f.PayloadType == pt }) &&
			!slices.ContainsFunc(a.Others, func(m codec.Mapping) bool { return m.PayloadType == pt })
	}
	if a.KeyType != 0 && free(eventType) {
		a.KeyAlias = eventType
	}
	common := append([]codec.Mapping{{PayloadType: a.PayloadType, Codec: a.Codec}}, a.Others...)
	for _, m := range common {
		if pt := m.Codec.PayloadType(); free(pt) {
			a.Others = append(a.Others, codec.Mapping{PayloadType: pt, Codec: m.Codec})
		}
	}
}

// pick returns the first stream with the required encryption. Some peers offer the same audio twice, with and without
// SRTP.
func (d *Description) pick(encrypted bool) *Description {
	for _, s := range d.siblings {
		if !s.IsRejected() && s.IsEncrypted() == encrypted {
			return s
		}
	}
	return d
}

// packetTime returns the requested packet time if it is supported, and 20 ms otherwise.
func (d *Description) packetTime() time.Duration {
	n := d.Ptime
	if n < 10 || n > 60 {
		n = ptime
	}
	if d.Maxptime >= 10 {
		n = min(n, d.Maxptime)
	}
	return time.Duration(n) * time.Millisecond
}

// chooseKeys chooses the first remote crypto suite that is supported.
func (a *Agreement) chooseKeys(remote *Description, local []srtp.Key) error {
	if remote.IsEncrypted() != (len(local) > 0) {
		return ErrEncryption
	}
	if len(local) == 0 {
		return nil
	}
	for _, c := range remote.Crypto {
		for _, k := range local {
			if k.Suite() == c.Key.Suite() {
				a.LocalKey, a.RemoteKey, a.tag = k, c.Key, c.Tag
				return nil
			}
		}
	}
	return ErrNoCommonKey
}

// Answer returns the answer to the offer from which Agree returned a. It rejects all other streams of the offer.
func Answer(local netip.AddrPort, origin Origin, a Agreement) *Description {
	d := &Description{
		Addr: local, Ptime: ptime, Origin: origin, Direction: SendRecv, Mux: a.Mux, Profile: a.profile,
		streams: a.streams, index: a.index,
	}
	switch {
	case a.Mute && a.RemoteMuted:
		d.Direction = Inactive
	case a.Mute:
		d.Direction = RecvOnly
	case a.RemoteMuted:
		d.Direction = SendOnly
	}
	d.Formats = []Format{{PayloadType: a.PayloadType, Name: a.Codec.Name(), ClockRate: a.Codec.ClockRate(), Channels: 1}}
	if a.KeyType != 0 {
		d.Formats = append(d.Formats, eventFormat(a.KeyType))
	}
	if a.LocalKey.IsSet() {
		d.Crypto = []Crypto{{Tag: a.tag, Key: a.LocalKey}}
	}
	return d
}
