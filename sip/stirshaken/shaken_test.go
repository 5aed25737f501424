package stirshaken

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const certURL = "https://cert.example.org/passport.cer"

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func attested(level Level) func(string) Level { return func(string) Level { return level } }

// TestExample writes the example of RFC 8225 appendix A. The printed signature
// does not match the printed key, so it is not compared.
func TestExample(t *testing.T) {
	const want = "eyJhbGciOiJFUzI1NiIsInR5cCI6InBhc3Nwb3J0IiwieDV1IjoiaHR0cHM6Ly9jZXJ0LmV4YW1wbGUub3JnL3Bhc3Nwb3J0LmNlciJ9" +
		".eyJkZXN0Ijp7InVyaSI6WyJzaXA6YWxpY2VAZXhhbXBsZS5jb20iXX0sImlhdCI6MTQ3MTM3NTQxOCwib3JpZyI6eyJ0biI6IjEyMTU1NTUxMjEyIn19"
	got, err := serialize(header{Alg: algorithm, Typ: passport, X5U: certURL},
		claims{Dest: destination{URI: []string{"sip:alice@example.com"}}, IAT: 1471375418, Orig: origin{TN: "12155551212"}})
	if err != nil || got != want {
		t.Errorf("wrote %s, %v", got, err)
	}
}

// TestSignature checks that only the ES256 signature of RFC 7515 appendix A.3 is accepted.
func TestSignature(t *testing.T) {
	decode := func(text string) []byte {
		raw, err := encoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	point := append([]byte{4}, decode("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU")...)
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(point, decode("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")...))
	if err != nil {
		t.Fatal(err)
	}
	const input = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
	raw := decode("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q")
	if !isSigned(key, input, raw) {
		t.Error("a valid signature was refused")
	}
	raw[5] ^= 1
	if isSigned(key, input, raw) || isSigned(key, input, raw[:63]) || isSigned(nil, input, raw) {
		t.Error("a broken signature is accepted")
	}
}

func TestSign(t *testing.T) {
	s := &Signer{
		Key: newKey(t), X5U: certURL + "?a=1&b=2", Attest: attested(Full), OrigID: "123e4567-e89b-12d3-a456-426655440000",
		Dialed: func(to string) string { return strings.TrimPrefix(to, "9011") },
	}
	at := time.Unix(1_800_000_000, 0)
	value, err := s.Sign("+1 (215) 555-1212", "901144205550123", at)
	if err != nil {
		t.Fatal(err)
	}
	token, params, _ := strings.Cut(value, ";")
	if params != "info=<"+s.X5U+">;alg=ES256;ppt=shaken" {
		t.Errorf("parameters %q", params)
	}
	parts := strings.Split(token, ".")
	for i, want := range []string{
		`{"alg":"ES256","ppt":"shaken","typ":"passport","x5u":"` + s.X5U + `"}`,
		`{"attest":"A","dest":{"tn":["44205550123"]},"iat":1800000000,"orig":{"tn":"12155551212"},"origid":"123e4567-e89b-12d3-a456-426655440000"}`,
	} {
		if got, wrong := encoding.DecodeString(parts[i]); wrong != nil || string(got) != want {
			t.Errorf("part %d is %s, %v", i, got, wrong)
		}
	}
	p, err := Parse(value)
	if err != nil || p.Attest != Full || p.From != "12155551212" || len(p.To) != 1 || p.To[0] != "44205550123" || !p.At.Equal(at) || p.OrigID != s.OrigID || p.X5U != s.X5U {
		t.Errorf("read %+v, %v", p, err)
	}
	if err := p.Verify(&s.Key.PublicKey, at.Add(time.Minute), time.Minute); err != nil {
		t.Error(err)
	}
	if err := p.Verify(&newKey(t).PublicKey, at, time.Minute); !errors.Is(err, ErrSignature) {
		t.Errorf("another key: %v", err)
	}
	for _, d := range []time.Duration{61 * time.Second, -61 * time.Second} {
		if err := p.Verify(&s.Key.PublicKey, at.Add(d), time.Minute); err == nil {
			t.Errorf("accepted with a clock off by %v", d)
		}
	}
	s.OrigID = ""
	one, _ := s.Sign("1", "2", at)
	two, _ := s.Sign("1", "2", at)
	first, err1 := Parse(one)
	second, err2 := Parse(two)
	if err1 != nil || err2 != nil || first.OrigID == second.OrigID {
		t.Errorf("origids %q and %q, %v, %v", first.OrigID, second.OrigID, err1, err2)
	}
}

func TestNotSigned(t *testing.T) {
	key := newKey(t)
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		signer   Signer
		from, to string
		fails    bool
	}{
		"no attestation function": {Signer{Key: key, X5U: certURL}, "1", "2", false},
		"caller not attested":     {Signer{Key: key, X5U: certURL, Attest: attested(None)}, "1", "2", false},
		"a name as caller":        {Signer{Key: key, X5U: certURL, Attest: attested(Full)}, "alice", "2", false},
		"a name dialed":           {Signer{Key: key, X5U: certURL, Attest: attested(Full)}, "1", "*67#", false},
		"an empty number":         {Signer{Key: key, X5U: certURL, Attest: attested(Full)}, "+", "2", false},
		"no level":                {Signer{Key: key, X5U: certURL, Attest: attested("D")}, "1", "2", true},
		"no key":                  {Signer{X5U: certURL, Attest: attested(Full)}, "1", "2", true},
		"another curve":           {Signer{Key: other, X5U: certURL, Attest: attested(Full)}, "1", "2", true},
		"http":                    {Signer{Key: key, X5U: "http://a/b", Attest: attested(Full)}, "1", "2", true},
		"a line break in the URL": {Signer{Key: key, X5U: "https://a/>\r\nEvil: 1", Attest: attested(Full)}, "1", "2", true},
		"no UUID":                 {Signer{Key: key, X5U: certURL, Attest: attested(Full), OrigID: "1"}, "1", "2", true},
	} {
		if got, err := row.signer.Sign(row.from, row.to, time.Unix(1, 0)); got != "" || (err != nil) != row.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestRoundTrip checks that a signed passport reads back unchanged, and that a passport with any
// byte changed is refused.
func TestRoundTrip(t *testing.T) {
	key := newKey(t)
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[0-9]{1,15}`)
		from, to := digits.Draw(t, "from"), digits.Draw(t, "to")
		level := rapid.SampledFrom([]Level{Full, Partial, Gateway}).Draw(t, "level")
		at := time.Unix(rapid.Int64Range(1, 1<<40).Draw(t, "at"), 0)
		s := &Signer{Key: key, X5U: certURL, Attest: attested(level)}
		value, err := s.Sign("+"+from, to, at)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse(value)
		if err != nil || p.Attest != level || p.From != from || p.To[0] != to || !p.At.Equal(at) || p.Verify(&key.PublicKey, at, 0) != nil {
			t.Fatalf("%q: %+v, %v", value, p, err)
		}
		changed := []byte(value)
		changed[rapid.IntRange(0, strings.IndexByte(value, ';')-1).Draw(t, "where")] ^= byte(rapid.IntRange(1, 127).Draw(t, "how"))
		if p, err := Parse(string(changed)); err == nil && p.Verify(&key.PublicKey, at, 0) == nil {
			t.Fatalf("%q was accepted for %q", changed, value)
		}
	})
}

func TestParse(t *testing.T) {
	s := &Signer{Key: newKey(t), X5U: certURL, Attest: attested(Full)}
	good, err := s.Sign("1", "2", time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(strings.ReplaceAll(good, "ppt=shaken", `ppt="shaken";x=y`)); err != nil {
		t.Error(err)
	}
	token, params, _ := strings.Cut(good, ";")
	parts := strings.Split(token, ".")
	for name, bad := range map[string]string{
		"nothing":            "",
		"the compact form":   ".." + parts[2] + ";" + params,
		"no info":            token + ";alg=ES256",
		"another info":       strings.Replace(good, "cert.example", "evil.example", 1),
		"another algorithm":  strings.Replace(good, "alg=ES256", "alg=none", 1),
		"another extension":  strings.Replace(good, "ppt=shaken", "ppt=div", 1),
		"half a signature":   parts[0] + "." + parts[1] + "." + parts[2][:40] + ";" + params,
		"too long":           good + strings.Repeat(";a", maxIdentity),
		"no JSON":            "e30.bnVsbA." + parts[2] + ";" + params,
		"alg none signed":    encoding.EncodeToString([]byte(`{"alg":"none","ppt":"shaken","typ":"passport","x5u":"`+certURL+`"}`)) + "." + parts[1] + "." + parts[2] + ";" + params,
		"number with a plus": parts[0] + "." + encoding.EncodeToString([]byte(`{"attest":"A","dest":{"tn":["+2"]},"iat":1,"orig":{"tn":"1"},"origid":"123e4567-e89b-12d3-a456-426655440000"}`)) + "." + parts[2] + ";" + params,
		"level D":            parts[0] + "." + encoding.EncodeToString([]byte(`{"attest":"D","dest":{"tn":["2"]},"iat":1,"orig":{"tn":"1"},"origid":"123e4567-e89b-12d3-a456-426655440000"}`)) + "." + parts[2] + ";" + params,
	} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestLoad(t *testing.T) {
	dir, key, now := t.TempDir(), newKey(t), time.Unix(1_800_000_000, 0)
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	certify := func(name string, of *ecdsa.PrivateKey) string {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &of.PublicKey, of)
		if err != nil {
			t.Fatal(err)
		}
		return write(name, "CERTIFICATE", der)
	}
	sec1, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert, other := certify("cert.pem", key), certify("other.pem", newKey(t))
	for _, file := range []string{write("sec1.pem", "EC PRIVATE KEY", sec1), write("pkcs8.pem", "PRIVATE KEY", pkcs8)} {
		got, c, err := Load(file, cert, now)
		if err != nil || !got.Equal(key) || c == nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	good := filepath.Join(dir, "sec1.pem")
	for name, row := range map[string]struct {
		key, cert string
		now       time.Time
		want      string
	}{
		"no key":                     {filepath.Join(dir, "none"), cert, now, "no such file"},
		"no certificate":             {good, filepath.Join(dir, "none"), now, "no such file"},
		"a key as the certificate":   {good, good, now, "want a certificate in PEM"},
		"a certificate as the key":   {cert, cert, now, "want a P-256 private key"},
		"a broken key":               {write("broken.pem", "EC PRIVATE KEY", sec1[:20]), cert, now, "want a P-256 private key"},
		"a broken certificate":       {good, write("torn.pem", "CERTIFICATE", []byte("x")), now, "torn.pem"},
		"certificate of another key": {good, other, now, "does not match the key"},
		"too early":                  {good, cert, now.Add(-2 * time.Hour), "not valid before"},
		"too late":                   {good, cert, now.Add(2 * time.Hour), "not valid after"},
	} {
		_, _, err := Load(row.key, row.cert, row.now)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzIdentity checks that no value panics, none is accepted without the key's signature,
// and signed ones read back.
func FuzzIdentity(f *testing.F) {
	key := newKey(f)
	s := &Signer{Key: key, X5U: certURL, Attest: attested(Partial)}
	good, err := s.Sign("12155551212", "12155551213", time.Unix(1_800_000_000, 0))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, "12155551212")
	f.Add("e30.e30.AAAA;info=<https://a/b>;alg=ES256;ppt=shaken", "+1 (2)")
	f.Add(";;..;info", "*")
	f.Fuzz(func(t *testing.T, value, number string) {
		if p, err := Parse(value); err == nil && p.Verify(&key.PublicKey, p.At, 0) == nil {
			// The key signed one passport; only white space and parameters may
			// differ.
			token, _, _ := strings.Cut(good, ";")
			theirs, _, _ := strings.Cut(value, ";")
			if strings.TrimSpace(theirs) != token {
				t.Fatalf("%q was accepted", value)
			}
		}
		signed, err := s.Sign(number, number, time.Unix(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		digits, ok := Canonical(number)
		if ok != (signed != "") {
			t.Fatalf("%q was signed as %q", number, signed)
		}
		if !ok {
			return
		}
		if p, err := Parse(signed); err != nil || p.From != digits || p.Verify(&key.PublicKey, time.Unix(1, 0), 0) != nil {
			t.Fatalf("%q: %+v, %v", number, p, err)
		}
	})
}
