package srtp

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

const inline = "PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR" // key from RFC 4568 section 6.1

func TestParse(t *testing.T) {
	for text, want := range map[string]Suite{
		"AES_CM_128_HMAC_SHA1_80 inline:" + inline:                 Tag80,
		"AES_CM_128_HMAC_SHA1_32 inline:" + inline + "|2^20":       Tag32,
		"aes_cm_128_hmac_sha1_80 INLINE:" + inline + "|1048576":    Tag80,
		"AES_CM_128_HMAC_SHA1_80 inline:" + inline + " WSH=64":     Tag80,
		"AES_CM_128_HMAC_SHA1_80 inline:" + inline + " KDR=0 -X=1": Tag80,
	} {
		k, err := Parse(text)
		if err != nil || k.Suite() != want || !k.IsSet() || !strings.HasSuffix(k.Attribute(), "inline:"+inline) {
			t.Errorf("%s: %v, %v", text, k.Suite(), err)
		}
	}
	for text, unknown := range map[string]bool{
		"":                                     false,
		"AES_CM_128_HMAC_SHA1_80":              false,
		"AES_CM_128_HMAC_SHA1_80 inline:AAAA":  false,
		"AES_CM_128_HMAC_SHA1_80 inline:!!!!!": false,
		"AES_CM_128_HMAC_SHA1_80 clear:" + inline:                        true,
		"F8_128_HMAC_SHA1_80 inline:" + inline:                           true,
		"AES_CM_128_HMAC_SHA1_80 inline:" + inline + "|2^20|1:4":         true,
		"AES_CM_128_HMAC_SHA1_80 inline:" + inline + "|1:4":              true,
		"AES_CM_128_HMAC_SHA1_80 inline:" + inline + " UNENCRYPTED_SRTP": true,
		"AES_CM_128_HMAC_SHA1_80 inline:" + inline + " KDR=5":            true,
		"AES_CM_128_HMAC_SHA1_80 inline:" + inline + ";inline:" + inline: true,
	} {
		k, err := Parse(text)
		if err == nil || errors.Is(err, ErrUnsupported) != unknown || k.IsSet() {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), inline[:8]) {
			t.Errorf("error contains the key: %v", err)
		}
	}
}

func TestKeysNeverPrint(t *testing.T) {
	for _, k := range New() {
		secret := k.Attribute()[len(k.Suite())+len(" inline:"):]
		raw, err := base64.StdEncoding.DecodeString(secret)
		if err != nil {
			t.Fatal(err)
		}
		nested := struct {
			Key  Key
			Many []Key
			own  Key
		}{k, []Key{k}, k}
		text, _ := json.Marshal(nested)
		numbers := fmt.Sprintf("%d", raw)
		all := string(text)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			all += fmt.Sprintf(verb, k) + fmt.Sprintf(verb, nested) + fmt.Sprintf(verb, &nested)
		}
		for _, leak := range []string{secret, string(raw), hex.EncodeToString(raw), strings.Trim(numbers, "[]")} {
			if strings.Contains(all, leak) {
				t.Errorf("a key prints: %s", all)
			}
		}
	}
	if a, b := New(), New(); a[0].Equal(b[0]) || a[0].Equal(a[1]) || !a[0].Equal(a[0]) || a[0].Equal(Key{}) {
		t.Error("keys repeat")
	}
}

func packetOf(tb testing.TB, seq uint16) []byte {
	tb.Helper()
	h := rtp.Header{Version: 2, SequenceNumber: seq, Timestamp: 160 * uint32(seq), SSRC: 7}
	b, err := h.Marshal()
	if err != nil {
		tb.Fatal(err)
	}
	return append(b, bytes.Repeat([]byte{byte(seq)}, 160)...)
}

// TestAgainstPion compares results with those of pion/srtp for the same key.
func TestAgainstPion(t *testing.T) {
	raw, err := base64.StdEncoding.DecodeString(inline)
	if err != nil {
		t.Fatal(err)
	}
	for suite, profile := range map[Suite]srtp.ProtectionProfile{
		Tag80: srtp.ProtectionProfileAes128CmHmacSha1_80, Tag32: srtp.ProtectionProfileAes128CmHmacSha1_32,
	} {
		k, err := Parse(string(suite) + " inline:" + inline)
		if err != nil {
			t.Fatal(err)
		}
		library, err := srtp.CreateContext(raw[:16], raw[16:], profile)
		if err != nil {
			t.Fatal(err)
		}
		encrypter, decrypter := newPair(t, k)
		for i := range 3 {
			plain := packetOf(t, uint16(65534+i)) // sequence numbers wrap around
			var encrypted, got []byte
			if encrypted, err = encrypter.RTP(make([]byte, 0, 300), plain); err != nil || bytes.Contains(encrypted, plain[12:40]) {
				t.Fatalf("%s: %v", suite, err)
			}
			if got, err = library.DecryptRTP(nil, encrypted, nil); err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("%s: the library decrypts %x, %v", suite, got, err)
			}
			encrypted, err = library.EncryptRTP(nil, plain, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err = decrypter.RTP(make([]byte, 0, 300), encrypted); err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("%s: decrypted %x, %v", suite, got, err)
			}
		}
		report, err := rtcp.Marshal([]rtcp.Packet{&rtcp.ReceiverReport{SSRC: 7}})
		if err != nil {
			t.Fatal(err)
		}
		encrypted, err := encrypter.RTCP(make([]byte, 0, 100), report)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := library.DecryptRTCP(nil, encrypted, nil); err != nil || !bytes.Equal(got, report) {
			t.Fatalf("%s: the library decrypts %x, %v", suite, got, err)
		}
		if got, err := decrypter.RTCP(make([]byte, 0, 100), encrypted); err != nil || !bytes.Equal(got, report) {
			t.Fatalf("%s: decrypted %x, %v", suite, got, err)
		}
	}
}

func newPair(tb testing.TB, k Key) (*Encrypter, *Decrypter) {
	tb.Helper()
	encrypter, err := NewEncrypter(k)
	if err != nil {
		tb.Fatal(err)
	}
	decrypter, err := NewDecrypter(k)
	if err != nil {
		tb.Fatal(err)
	}
	return encrypter, decrypter
}

func TestForgedPackets(t *testing.T) {
	for _, k := range New() {
		encrypter, decrypter := newPair(t, k)
		var last []byte
		for seq := range uint16(200) {
			encrypted, err := encrypter.RTP(make([]byte, 0, 300), packetOf(t, seq))
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []int{1, 3, 9, 12, 100, len(encrypted) - 1} {
				bad := bytes.Clone(encrypted)
				bad[at] ^= 4
				if _, err := decrypter.RTP(make([]byte, 0, 300), bad); err == nil {
					t.Fatalf("accepted a packet with byte %d modified", at)
				}
			}
			if _, err := decrypter.RTP(make([]byte, 0, 300), encrypted); err != nil {
				t.Fatal(err)
			}
			for _, old := range [][]byte{encrypted, last} {
				if _, err := decrypter.RTP(make([]byte, 0, 300), old); err == nil {
					t.Fatal("accepted a replayed packet")
				}
			}
			last = encrypted
		}
		if _, err := decrypter.RTP(make([]byte, 0, 300), last[:15]); err == nil {
			t.Error("accepted a truncated packet")
		}
	}
	if _, err := NewEncrypter(Key{}); err == nil {
		t.Error("NewEncrypter: got no error without a key")
	}
	if _, err := NewDecrypter(Key{}); err == nil {
		t.Error("NewDecrypter: got no error without a key")
	}
}

func BenchmarkEncryptDecrypt(b *testing.B) {
	encrypter, decrypter := newPair(b, New()[0])
	seq := uint16(0)
	plain, encrypted, decrypted := packetOf(b, 0), make([]byte, 0, 300), make([]byte, 0, 300)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		plain[2], plain[3] = byte(seq>>8), byte(seq)
		out, _ := encrypter.RTP(encrypted, plain)
		_, _ = decrypter.RTP(decrypted, out)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("AES_CM_128_HMAC_SHA1_80 inline:" + inline + "|2^20|1:32 KDR=1")
	f.Add("AES_CM_128_HMAC_SHA1_32 inline:" + inline)
	f.Fuzz(func(t *testing.T, text string) {
		k, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(k.Attribute())
		if err != nil || !again.Equal(k) {
			t.Fatalf("%q became %q, %v", text, k.Attribute(), err)
		}
	})
}
