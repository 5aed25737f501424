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
	eventName   = "TELEPHONE-EVENT" // encoding name (RFC 4733 section 7.1.1)
	eventType   = 101               // in local offers
	comfortName = "CN"              // RFC 3389
	eventClock  = 8000              // Hz, for every supported codec
	ptime       = 20                // ms, wanted for received audio
)

// Reasons why a negotiation fails.
var (
	ErrNoCommonCodec = errors.New("sdp: no common audio codec")
	ErrEncryption    = errors.New("sdp: one side wants encrypted audio, the other does not")
	ErrNoCommonKey   = errors.New("sdp: no common encryption")
)

// Capabilities are what the local side supports in a call. The zero value
// means unencrypted audio with any supported codec.
type Capabilities struct {
	// Codecs are encoding names, preferred first; empty means all. Unknown
	// names are ignored.
	Codecs []string
	// Keys are local keys from srtp.New if audio must be encrypted. They stay
	// the same for the whole call.
	Keys []srtp.Key
}

// An Agreement is the result of a negotiation.
type Agreement struct {
	Remote      netip.AddrPort // remote media address
	RTCP        netip.AddrPort // remote RTCP address unless Mux; may be invalid
	Mux         bool           // RTCP shares the RTP address (RFC 5761)
	Codec       codec.Codec
	PayloadType uint8
	// Others are further payload types that the remote side may send at any
	// time, of any common codec (RFC 3264 section 6.1). It may also use the
	// types of the local offer (section 5.1).
	Others      []codec.Mapping
	KeyType     uint8         // payload type of telephone events; 0 if none
	KeyAlias    uint8         // further payload type of received telephone events; 0 if none
	ComfortType uint8         // payload type of comfort noise; 0 if none
	Ptime       time.Duration // packet time that the remote side wants
	LocalKey    srtp.Key      // for sending; not set if audio is not encrypted
	RemoteKey   srtp.Key      // for receiving
	Mute        bool          // the remote side does not want to receive
	RemoteMuted bool          // the remote side does not send

	tag     int // of the chosen crypto attribute
	profile string
	streams []stream
	index   int
}

// CapabilitiesFor returns the capabilities of a trunk, with new keys if it
// requires encryption. An unknown codec or encryption is an error.
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

// Offer returns an offer of w.
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

// Agree negotiates with a remote description: an answer to the offer of w, or
// an offer. The first of the remote codecs that w contains wins, with the
// remote payload type; formats match by name.
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

// matchFormats selects the remote formats that are supported locally.
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

// addOfferTypes adds the payload types of the local offer, unless the remote
// side assigned them otherwise. The answerer may use either.
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

// pick returns the first stream whose encryption fits. Some peers offer the
// same audio twice, with and without SRTP.
func (d *Description) pick(encrypted bool) *Description {
	for _, s := range d.siblings {
		if !s.IsRejected() && s.IsEncrypted() == encrypted {
			return s
		}
	}
	return d
}

// packetTime returns the requested packet time if supported, else 20 ms.
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

// chooseKeys selects the first of the remote suites that is supported.
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

// Answer returns the answer to an offer that led to a. All other streams of
// the offer are rejected.
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
