package sdp

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

const carrier = "v=0\r\no=- 20518 1 IN IP4 198.51.100.1\r\ns=-\r\nc=IN IP4 198.51.100.1\r\nt=0 0\r\n" +
	"m=audio 54400 RTP/AVP 0 8 97 13\r\na=rtpmap:97 telephone-event/8000\r\na=fmtp:97 0-15\r\na=ptime:30\r\na=sendrecv\r\n"

func TestParse(t *testing.T) {
	d, err := Parse([]byte(carrier))
	if err != nil {
		t.Fatal(err)
	}
	if d.Addr != netip.MustParseAddrPort("198.51.100.1:54400") || d.Ptime != 30 || d.Direction != SendRecv || d.RTCP.Port() != 54401 {
		t.Errorf("%+v", d)
	}
	a, err := Agree(d, Capabilities{})
	if err != nil || a.Codec.Name() != "PCMU" || a.PayloadType != 0 || a.KeyType != 97 || a.Mute || a.RemoteMuted {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestParseVariants(t *testing.T) {
	base := "v=0\no=- 1 1 IN IP4 192.0.2.1\ns=-\nc=IN IP4 192.0.2.1\nt=0 0\n"
	for name, row := range map[string]struct {
		text  string
		check func(d *Description, a Agreement, err error) bool
	}{
		"line feeds, no last newline": {base + "m=audio 4000 RTP/AVP 8", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.Codec.Name() == "PCMA" && a.Remote.Port() == 4000
		}},
		"connection of the stream wins": {base + "m=audio 4000 RTP/AVP 0\nc=IN IP4 192.0.2.9\n", func(d *Description, _ Agreement, err error) bool {
			return err == nil && d.Addr.Addr() == netip.MustParseAddr("192.0.2.9")
		}},
		"dynamic type for a static codec": {base + "m=audio 4000 RTP/AVP 96\na=rtpmap:96 pcmu/8000/1\n", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.Codec.Name() == "PCMU" && a.PayloadType == 96
		}},
		"type redefined by name": {base + "m=audio 4000 RTP/AVP 0\na=rtpmap:0 opus/48000/2\n", func(_ *Description, _ Agreement, err error) bool {
			return errors.Is(err, ErrNoCommonCodec)
		}},
		"event type of another clock": {base + "m=audio 4000 RTP/AVP 0 102 101\na=rtpmap:102 telephone-event/48000\na=rtpmap:101 telephone-event/8000\n", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.KeyType == 101
		}},
		"refused": {base + "m=audio 0 RTP/AVP 0\n", func(d *Description, _ Agreement, err error) bool {
			return err != nil && d.IsRejected()
		}},
		"hold": {base + "m=audio 4000 RTP/AVP 0\na=sendonly\n", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.Mute && !a.RemoteMuted
		}},
		"hold of the session": {base + "a=inactive\nm=audio 4000 RTP/AVP 0\n", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.Mute && a.RemoteMuted
		}},
		"hold as in RFC 2543": {"v=0\nc=IN IP4 0.0.0.0\nm=audio 4000 RTP/AVP 0\n", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.Mute && a.RemoteMuted
		}},
		"video first": {base + "m=video 5000 RTP/AVP 96\nc=IN IP4 nonsense\na=rtpmap:96 H264/90000\nm=audio 4000 RTP/AVP 0\n", func(d *Description, _ Agreement, err error) bool {
			return err == nil && d.Addr.Port() == 4000
		}},
		"second audio ignored": {base + "m=audio 4000 RTP/AVP 0\nm=audio 5000 RTP/AVP 8\na=recvonly\n", func(d *Description, a Agreement, err error) bool {
			return err == nil && d.Addr.Port() == 4000 && a.Codec.Name() == "PCMU" && !a.RemoteMuted
		}},
		"rtcp elsewhere": {base + "m=audio 4000 RTP/AVP 0\na=rtcp:53020 IN IP4 126.16.64.4\n", func(d *Description, _ Agreement, err error) bool {
			return err == nil && d.RTCP == netip.MustParseAddrPort("126.16.64.4:53020")
		}},
		"version 6": {"v=0\nc=IN IP6 2001:db8::1\nm=audio 4000 RTP/AVP 0\n", func(d *Description, _ Agreement, err error) bool {
			return err == nil && d.Addr == netip.MustParseAddrPort("[2001:db8::1]:4000")
		}},
		"packet times": {base + "m=audio 4000 RTP/AVP 0\na=ptime:60\na=maxptime:40.0", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.Ptime == 40*time.Millisecond
		}},
		"invalid packet time": {base + "m=audio 4000 RTP/AVP 0\na=ptime:NaN\na=maxptime:1e99", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.Ptime == 20*time.Millisecond
		}},
		"packet time too long": {base + "m=audio 4000 RTP/AVP 0\na=ptime:200\n", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.Ptime == 20*time.Millisecond
		}},
		"comfort noise and mux": {base + "m=audio 4000 RTP/AVP 9 13\na=rtcp-mux\n", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.Codec.Name() == "G722" && a.ComfortType == 13 && a.Mux && a.RTCP.Port() == 4001
		}},
		"refused audio first": {base + "m=audio 0 RTP/AVP 0\nm=audio 4000 RTP/AVP 8\n", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.Remote.Port() == 4000
		}},
		"encrypted or plain": {base + "m=audio 5000 RTP/SAVP 0\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR\nm=audio 4000 RTP/AVP 0\n", func(_ *Description, a Agreement, err error) bool {
			return err == nil && a.Remote.Port() == 4000 && !a.RemoteKey.IsSet()
		}},
		"encrypted": {base + "m=audio 5000 RTP/SAVP 0\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR\n", func(_ *Description, _ Agreement, err error) bool {
			return errors.Is(err, ErrEncryption)
		}},
		"unknown lines": {base + "x=1\nb=AS:84\nk=clear:no\nm=audio 4000 RTP/AVP 0\na=candidate\na=\n", func(_ *Description, _ Agreement, err error) bool {
			return err == nil
		}},
	} {
		d, err := Parse([]byte(row.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if a, err := Agree(d, Capabilities{}); !row.check(d, a, err) {
			t.Errorf("%s: %+v, %+v, %v", name, d, a, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "empty",
		"hello":                    "line 1 is not type=value",
		"o=- 1 1 IN IP4 192.0.2.1": "the first line must be v=0",
		"v=0\n":                    "no media",
		"v=0\nm=video 1 RTP/AVP 0": "no audio over RTP",
		"v=0\nm=audio 1 RTP/AVP 0": "no connection address",
		"v=0\nm=audio 1":           "cut short",
		"v=0\nc=IN IP4 x.example\nm=audio 1 RTP/AVP 0":                            "is not an IP",
		"v=0\nm=audio 70000 RTP/AVP 0":                                            "port",
		"v=0\nm=audio 1 RTP/AVP x":                                                "payload type",
		"v=0\nm=audio 1 RTP/AVP 0\na=rtpmap:0 PCMU":                               "rtpmap",
		"v=0\nm=audio 1 UDP/TLS/RTP/SAVPF 0":                                      "no audio over RTP",
		"v=0\nm=audio 1 RTP/SAVP 0\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:AA": "key is not",
		"v=0\nm=audio 1 RTP/SAVP 0\na=crypto:x":                                   "crypto tag",
		"v=0\n" + strings.Repeat("a=x\n", 5000):                                   "bytes long",
	} {
		if d, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, %v; want %q", text, d, err, want)
		}
	}
}

func TestOfferAnswer(t *testing.T) {
	us, them := netip.MustParseAddrPort("192.0.2.1:20000"), netip.MustParseAddrPort("[2001:db8::2]:30000")
	offer, err := Parse(Offer(us, Origin{7, 1}, Capabilities{}).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Agree(offer, Capabilities{})
	if err != nil || got.Remote != us || got.Codec.Name() != "PCMU" || got.KeyType != eventType {
		t.Fatalf("offer: %+v, %v", got, err)
	}
	answer, err := Parse(Answer(them, Origin{9, 2}, got).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	back, err := Agree(answer, Capabilities{})
	if err != nil || back.Remote != them || back.Codec != got.Codec || back.KeyType != eventType || answer.Origin != (Origin{9, 2}) {
		t.Fatalf("answer: %+v, %v", back, err)
	}
}

func TestAnswerDirection(t *testing.T) {
	for theirs, want := range map[Direction]Direction{SendRecv: SendRecv, SendOnly: RecvOnly, RecvOnly: SendOnly, Inactive: Inactive} {
		offer := Offer(netip.MustParseAddrPort("192.0.2.1:20000"), Origin{}, Capabilities{})
		offer.Direction = theirs
		a, err := Agree(offer, Capabilities{})
		if err != nil {
			t.Fatal(err)
		}
		// The answer to sendonly is recvonly (RFC 3264 section 6.1). A side that holds the call may send music, but
		// does not want to receive.
		if got := Answer(offer.Addr, Origin{}, a).Direction; got != want {
			t.Errorf("%s answered %s, want %s", theirs, got, want)
		}
	}
}
