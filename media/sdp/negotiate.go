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
	"github.com/parley-voice/parley/media/crypt"
)

const (
	keyName     = "TELEPHONE-EVENT" // encoding name (RFC 4733 section 7.1.1)
	keyType     = 101               // under which we offer it
	comfortName = "CN"              // RFC 3389
	keyClock    = 8000              // Hz, as of every codec we have
	ptime       = 20                // ms, in which we want to be sent to
)

// What two sides may fail to agree on.
var (
	ErrNoCommonCodec = errors.New("sdp: no common audio codec")
	ErrEncryption    = errors.New("sdp: one side wants encrypted audio, the other does not")
	ErrNoCommonKey   = errors.New("sdp: no common encryption")
)

// A Wish is what one side brings to a call. Its zero value is plain audio in
// any codec there is.
type Wish struct {
	// Codecs are encoding names, the preferred first; empty is all that there
	// are. Unknown names are passed over.
	Codecs []string
	// Keys are ours of crypt.New, where audio must be encrypted. They stay the
	// same for the whole call.
	Keys []crypt.Key
}

// An Agreement is what two sides agreed on.
type Agreement struct {
	Remote      netip.AddrPort // where the other side wants to be sent to
	RTCP        netip.AddrPort // where its reports go, unless Mux; may be invalid
	Mux         bool           // reports go where the audio goes (RFC 5761)
	Codec       codec.Codec
	PayloadType uint8
	// Others are the further payload types that the other side may send audio
	// under at any time, of this codec and of others in common (RFC 3264
	// section 6.1). It may go by the types of our offer, too (section 5.1).
	Others      []codec.Mapping
	KeyType     uint8         // payload type of telephone events; 0 where there is none
	KeyAlias    uint8         // under which they may come as well; 0 where there is none
	ComfortType uint8         // payload type of comfort noise; 0 where there is none
	Ptime       time.Duration // in which the other side wants to be sent to
	Ours        crypt.Key     // that we send under; not set where audio is plain
	Theirs      crypt.Key     // that the other side sends under
	Mute        bool          // the other side does not want to hear us
	Quiet       bool          // the other side does not send

	tag     int // of the crypto that was chosen
	profile string
	streams []stream
	place   int
}

// Wished is what a trunk wishes, with keys made for one call where it wants
// audio encrypted. A codec or encryption that is not known is an error.
func Wished(t media.Trunk) (Wish, error) {
	for _, name := range t.Codecs {
		if _, ok := codec.ByName(name); !ok {
			return Wish{}, fmt.Errorf("sdp: unknown codec %q", name)
		}
	}
	w := Wish{Codecs: t.Codecs}
	switch t.Encryption {
	case media.Plain:
	case media.Encrypted:
		w.Keys = crypt.New()
	default:
		return Wish{}, fmt.Errorf("sdp: unknown encryption %q", t.Encryption)
	}
	return w, nil
}

// codecs are those wished for.
func (w Wish) codecs() []codec.Codec {
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

// Offer describes our side as wished.
func Offer(local netip.AddrPort, origin Origin, w Wish) *Description {
	d := &Description{Addr: local, Direction: SendRecv, Ptime: ptime, Mux: true, Profile: "RTP/AVP", Origin: origin}
	for _, c := range w.codecs() {
		d.Formats = append(d.Formats, Format{PayloadType: c.PayloadType(), Name: c.Name(), ClockRate: c.ClockRate(), Channels: 1})
	}
	d.Formats = append(d.Formats, keyFormat(keyType))
	for i, k := range w.Keys {
		d.Profile = "RTP/SAVP"
		d.Crypto = append(d.Crypto, Crypto{Tag: i + 1, Key: k})
	}
	return d
}

func keyFormat(pt uint8) Format {
	return Format{PayloadType: pt, Name: keyName, ClockRate: keyClock, Channels: 1, Params: "0-16"}
}

// Agree finds what to send to, and hear from, the side that wrote theirs: an
// answer to our offer of w, or an offer to us who wish w. It takes the first
// of their codecs that we wish, under their payload type, for types are
// matched by name.
func Agree(theirs *Description, w Wish) (Agreement, error) {
	theirs = theirs.pick(len(w.Keys) > 0)
	if theirs.Refused() {
		return Agreement{}, errors.New("sdp: audio refused")
	}
	a := Agreement{
		Remote: theirs.Addr, RTCP: theirs.RTCP, Mux: theirs.Mux, Mute: theirs.Held(), Quiet: theirs.Quiet(),
		Ptime: theirs.packetTime(), profile: theirs.Profile, streams: theirs.streams, place: theirs.place,
	}
	if err := a.encrypt(theirs, w.Keys); err != nil {
		return Agreement{}, err
	}
	a.take(theirs.Formats, w.codecs())
	if a.Codec == nil {
		return Agreement{}, ErrNoCommonCodec
	}
	a.alias(theirs.Formats)
	return a, nil
}

// take takes what of their formats we have too.
func (a *Agreement) take(theirs []Format, ours []codec.Codec) {
	for _, f := range theirs {
		if f.Channels != 1 {
			continue
		}
		switch f.Name {
		case keyName:
			if f.ClockRate == keyClock && a.KeyType == 0 {
				a.KeyType = f.PayloadType
			}
			continue
		case comfortName:
			if f.ClockRate == keyClock && a.ComfortType == 0 {
				a.ComfortType = f.PayloadType
			}
			continue
		}
		n := slices.IndexFunc(ours, func(c codec.Codec) bool {
			return strings.EqualFold(c.Name(), f.Name) && c.ClockRate() == f.ClockRate
		})
		switch {
		case n < 0:
		case a.Codec == nil:
			a.Codec, a.PayloadType = ours[n], f.PayloadType
		default:
			a.Others = append(a.Others, codec.Mapping{PayloadType: f.PayloadType, Codec: ours[n]})
		}
	}
}

// alias adds the types of our offers, where theirs are others and mean nothing
// else by them. Who answers us may send under either.
func (a *Agreement) alias(theirs []Format) {
	free := func(pt uint8) bool {
		return !slices.ContainsFunc(theirs, func(f Format) bool { return f.PayloadType == pt }) &&
			!slices.ContainsFunc(a.Others, func(m codec.Mapping) bool { return m.PayloadType == pt })
	}
	if a.KeyType != 0 && free(keyType) {
		a.KeyAlias = keyType
	}
	common := append([]codec.Mapping{{PayloadType: a.PayloadType, Codec: a.Codec}}, a.Others...)
	for _, m := range common {
		if pt := m.Codec.PayloadType(); free(pt) {
			a.Others = append(a.Others, codec.Mapping{PayloadType: pt, Codec: m.Codec})
		}
	}
}

// pick is the stream to agree on: of several, the first that is encrypted as
// we wish. Some sides offer the same audio twice, plain and not.
func (d *Description) pick(encrypted bool) *Description {
	for _, s := range d.siblings {
		if !s.Refused() && s.Encrypted() == encrypted {
			return s
		}
	}
	return d
}

// packetTime is what the side wants, where it can be had, else 20 ms.
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

// encrypt chooses the first of their suites that we have.
func (a *Agreement) encrypt(theirs *Description, ours []crypt.Key) error {
	if theirs.Encrypted() != (len(ours) > 0) {
		return ErrEncryption
	}
	if len(ours) == 0 {
		return nil
	}
	for _, c := range theirs.Crypto {
		for _, k := range ours {
			if k.Suite() == c.Key.Suite() {
				a.Ours, a.Theirs, a.tag = k, c.Key, c.Tag
				return nil
			}
		}
	}
	return ErrNoCommonKey
}

// Answer describes our side in answer to an offer that led to a. What the
// offer has beside the audio agreed on is refused.
func Answer(local netip.AddrPort, origin Origin, a Agreement) *Description {
	d := &Description{
		Addr: local, Ptime: ptime, Origin: origin, Direction: SendRecv, Mux: a.Mux, Profile: a.profile,
		streams: a.streams, place: a.place,
	}
	switch {
	case a.Mute && a.Quiet:
		d.Direction = Inactive
	case a.Mute:
		d.Direction = RecvOnly
	case a.Quiet:
		d.Direction = SendOnly
	}
	d.Formats = []Format{{PayloadType: a.PayloadType, Name: a.Codec.Name(), ClockRate: a.Codec.ClockRate(), Channels: 1}}
	if a.KeyType != 0 {
		d.Formats = append(d.Formats, keyFormat(a.KeyType))
	}
	if a.Ours.Set() {
		d.Crypto = []Crypto{{Tag: a.tag, Key: a.Ours}}
	}
	return d
}
