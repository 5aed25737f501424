package sdp

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/media/srtp"
)

func localAddr() netip.AddrPort { return netip.MustParseAddrPort("192.0.2.1:20000") }

// TestEncryption negotiates SRTP and checks that each side decrypts with the key with which the other side encrypts.
func TestEncryption(t *testing.T) {
	us, err := CapabilitiesFor(media.Trunk{Encryption: media.Encrypted, Codecs: []string{"pcma", "G722"}})
	if err != nil {
		t.Fatal(err)
	}
	them := Capabilities{Keys: srtp.New()[1:]} // only the suite with the short tag
	offer, err := Parse(Offer(localAddr(), Origin{1, 1}, us).Bytes())
	if err != nil || !offer.IsEncrypted() || len(offer.Crypto) != 2 {
		t.Fatalf("%+v, %v", offer, err)
	}
	there, err := Agree(offer, them)
	if err != nil || there.Codec.Name() != "PCMA" {
		t.Fatalf("%+v, %v", there, err)
	}
	text := string(Answer(localAddr(), Origin{2, 1}, there).Bytes())
	if !strings.Contains(text, "RTP/SAVP 8") || !strings.Contains(text, "a=crypto:2 AES_CM_128_HMAC_SHA1_32 ") || strings.Count(text, "a=crypto") != 1 {
		t.Errorf("answered %q", text)
	}
	answer, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	here, err := Agree(answer, us)
	if err != nil || !here.LocalKey.Equal(there.RemoteKey) || !here.RemoteKey.Equal(there.LocalKey) || here.LocalKey.Equal(here.RemoteKey) {
		t.Errorf("%+v and %+v, %v", here, there, err)
	}
	plain := Offer(localAddr(), Origin{}, Capabilities{})
	if _, err := Agree(plain, us); !errors.Is(err, ErrEncryption) {
		t.Errorf("got %v for an RTP offer where SRTP is required", err)
	}
	if _, err := Agree(offer, Capabilities{}); !errors.Is(err, ErrEncryption) {
		t.Errorf("got %v for an SRTP offer where RTP is required", err)
	}
	offer.Crypto = nil
	if _, err := Agree(offer, us); !errors.Is(err, ErrNoCommonKey) {
		t.Errorf("got %v for an SRTP offer without a key", err)
	}
}

func TestCapabilitiesFor(t *testing.T) {
	for _, bad := range []media.Trunk{{Codecs: []string{"PCMU", "G729"}}, {Encryption: "maybe"}} {
		if w, err := CapabilitiesFor(bad); err == nil {
			t.Errorf("CapabilitiesFor(%+v): got %+v, want an error", bad, w)
		}
	}
	w, err := CapabilitiesFor(media.Trunk{Codecs: []string{"G722", "PCMU"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(Offer(localAddr(), Origin{}, w).Bytes()); !strings.Contains(text, "RTP/AVP 9 0 101\r\na=rtpmap:9 G722/8000\r\n") {
		t.Errorf("offered %q", text)
	}
	if text := string(Offer(localAddr(), Origin{}, Capabilities{}).Bytes()); !strings.Contains(text, "RTP/AVP 0 8 9 101\r\n") {
		t.Errorf("offered %q", text)
	}
}

// TestOtherStreams checks that the answer to an offer with several streams has a line for each (RFC 3264 section 6),
// and port 0 in the lines of rejected streams.
func TestOtherStreams(t *testing.T) {
	offer, err := Parse([]byte("v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n" +
		"m=video 5000 RTP/AVP 96 97\r\na=rtpmap:96 H264/90000\r\n" +
		"m=audio 4000 RTP/AVP 8 101\r\na=rtpmap:101 telephone-event/8000\r\na=rtcp-mux\r\n" +
		"m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n" +
		"m=audio 6000 RTP/SAVP 0\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Agree(offer, Capabilities{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.SplitSeq(string(Answer(localAddr(), Origin{}, a).Bytes()), "\r\n") {
		if strings.HasPrefix(line, "m=") || line == "a=rtcp-mux" {
			lines = append(lines, line)
		}
	}
	want := "m=video 0 RTP/AVP 96|m=audio 20000 RTP/AVP 8 101|a=rtcp-mux|m=application 0 UDP/DTLS/SCTP webrtc-datachannel|m=audio 0 RTP/SAVP 0"
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("answered\n%s, want\n%s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(carrier))
	f.Add([]byte("v=0\nc=IN IP4 0.0.0.0\nm=audio 4000/2 RTP/AVP 0\na=rtcp:53020 IN IP6 ::1\n"))
	f.Add([]byte("v=0\na=rtpmap:0 a/1\nm=audio 1 RTP/AVP 0 127\na=fmtp:127\na=ptime:-4\na=rtpmap:1 x/1/2/3"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		d, err := Parse(text)
		if err == nil {
			_, _ = Parse(d.Bytes()) // must not panic
		}
	})
}

// FuzzAnswer checks that every answer can be parsed, has as many streams as the offer, and matches the agreement.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(carrier), false)
	f.Add([]byte("v=0\nc=IN IP4 0.0.0.0\nm=audio 4000/2 RTP/AVP 0\na=rtcp:53020 IN IP6 ::1\nm=video 1 x y"), false)
	f.Add([]byte("v=0\nc=IN IP6 ::1\nm=audio 0 RTP/AVP 0\nm=image 1 udptl t38\nm=audio 7 RTP/SAVPF 9 101\na=crypto:7 AES_CM_128_HMAC_SHA1_32 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR|2^20\na=rtpmap:101 telephone-event/8000"), true)
	keys := srtp.New()
	f.Fuzz(func(t *testing.T, text []byte, encrypted bool) {
		capabilities := Capabilities{}
		if encrypted {
			capabilities.Keys = keys
		}
		d, err := Parse(text)
		if err != nil {
			return
		}
		a, err := Agree(d, capabilities)
		if err != nil {
			return
		}
		again, err := Parse(Answer(localAddr(), d.Origin, a).Bytes())
		if err != nil {
			t.Fatalf("our answer to %q does not parse: %v", text, err)
		}
		if len(again.streams) != len(d.streams) {
			t.Fatalf("our answer to %q has %d streams", text, len(again.streams))
		}
		back, err := Agree(again, capabilities)
		if err != nil || back.Codec != a.Codec || back.PayloadType != a.PayloadType || back.KeyType != a.KeyType || back.index != a.index || !back.RemoteKey.Equal(a.LocalKey) {
			t.Fatalf("our answer to %q says %+v, %v", text, back, err)
		}
	})
}

// TestOtherPayloadTypes checks which other payload types the remote side may use: those of all common codecs, and
// those of the local offer.
func TestOtherPayloadTypes(t *testing.T) {
	for name, row := range map[string]struct {
		formats, maps string
		capabilities  Capabilities
		pt            uint8
		others        string
		key, alias    uint8
	}{
		"as offered":            {"0 8 101", "101 telephone-event/8000", Capabilities{}, 0, "8 PCMA", 101, 0},
		"keys renumbered":       {"8 96", "96 telephone-event/8000", Capabilities{}, 8, "", 96, 101},
		"101 is another format": {"8 96 101", "96 telephone-event/8000\r\na=rtpmap:101 opus/48000/2", Capabilities{}, 8, "", 96, 0},
		"no keys":               {"8", "8 PCMA/8000", Capabilities{}, 8, "", 0, 0},
		"audio renumbered":      {"97 98", "97 PCMA/8000\r\na=rtpmap:98 G722/8000", Capabilities{}, 97, "98 G722 8 PCMA 9 G722", 0, 0},
		"not in capabilities":   {"0 8 9", "9 G722/8000", Capabilities{Codecs: []string{"G722", "PCMU"}}, 0, "9 G722", 0, 0},
		"8 is another format":   {"97 8", "97 PCMA/8000\r\na=rtpmap:8 PCMU/8000", Capabilities{}, 97, "8 PCMU 0 PCMU", 0, 0},
		"two types of a codec":  {"0 99", "99 PCMU/8000", Capabilities{}, 0, "99 PCMU", 0, 0},
	} {
		theirs, err := Parse([]byte("v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\nm=audio 4000 RTP/AVP " + row.formats + "\r\na=rtpmap:" + row.maps + "\r\n"))
		if err != nil {
			t.Fatal(name, err)
		}
		a, err := Agree(theirs, row.capabilities)
		if err != nil {
			t.Fatal(name, err)
		}
		var others []string
		for _, m := range a.Others {
			others = append(others, strconv.Itoa(int(m.PayloadType)), m.Codec.Name())
		}
		if got := strings.Join(others, " "); got != row.others || a.PayloadType != row.pt || a.KeyType != row.key || a.KeyAlias != row.alias {
			t.Errorf("%s: %d and %q, keys %d and %d", name, a.PayloadType, got, a.KeyType, a.KeyAlias)
		}
	}
}
