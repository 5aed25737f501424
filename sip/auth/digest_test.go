package auth

import (
	"strings"
	"testing"
)

// TestVectors uses the vectors of RFC 7616 section 3.9.1 and RFC 2069, as
// corrected.
func TestVectors(t *testing.T) {
	const nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
	const cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
	for _, row := range []struct {
		c                           Challenge
		user, password, method, uri string
		want                        string
	}{
		{
			Challenge{Realm: "http-auth@example.org", Nonce: nonce, Algorithm: "MD5", QOP: true},
			"Mufasa", "Circle of Life", "GET", "/dir/index.html", "8ca523f5e9506fed4657c9700eebdbec",
		},
		{
			Challenge{Realm: "http-auth@example.org", Nonce: nonce, Algorithm: "SHA-256", QOP: true},
			"Mufasa", "Circle of Life", "GET", "/dir/index.html", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
		},
		{
			Challenge{Realm: "testrealm@host.com", Nonce: "dcd98b7102dd2f0e8b11d0f600bfb0c093", Algorithm: "MD5"},
			"Mufasa", "CircleOfLife", "GET", "/dir/index.html", "1949323746fe6a43ef61f9606e7febea",
		},
	} {
		got := row.c.answer(row.user, row.password, row.method, row.uri, cnonce, "00000001")
		if !strings.Contains(got, `response="`+row.want+`"`) {
			t.Errorf("%s: %s", row.c.Algorithm, got)
		}
		if !row.c.Verify(got, row.user, row.password, row.method) {
			t.Errorf("%s does not verify", got)
		}
		if row.c.Verify(got, row.user, "other", row.method) || row.c.Verify(got, row.user, row.password, "POST") || row.c.Verify("Basic x", row.user, row.password, row.method) {
			t.Errorf("%s verifies for others", got)
		}
	}
}

func TestParse(t *testing.T) {
	c, err := Parse(`Digest realm="a \"b\", c" , nonce="n,=", qop="auth-int, auth",opaque="o", algorithm=sha-256, stale=TRUE, unknown=x`)
	want := Challenge{Realm: `a \"b\", c`, Nonce: "n,=", Opaque: "o", Algorithm: "SHA-256", QOP: true, Stale: true, hasAlgorithm: true}
	if err != nil || c != want {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []string{
		"", "Basic realm=x", "Digest", `Digest realm="x"`, `Digest nonce="x"`, `Digest realm="x", nonce="y`,
		`Digest realm="x", nonce="y", algorithm=MD5-sess`, `Digest realm="x", nonce="y", qop="auth-int"`, "Digest realm",
	} {
		if c, err := Parse(bad); err == nil {
			t.Errorf("%q: %+v", bad, c)
		}
	}
}

func TestAnswer(t *testing.T) {
	c := Challenge{Realm: "r", Nonce: "n", Algorithm: "MD5", QOP: true, Opaque: "o", hasAlgorithm: true}
	one, err := c.Answer("u", "secret", "INVITE", "sip:a@b", 1)
	if err != nil {
		t.Fatal(err)
	}
	two, err := c.Answer("u", "secret", "INVITE", "sip:a@b", 1)
	if err != nil || one == two {
		t.Errorf("the same answer twice: %s, %v", one, err)
	}
	if strings.Contains(one, "secret") || !strings.Contains(one, `opaque="o"`) || !strings.Contains(one, "algorithm=MD5") {
		t.Error(one)
	}
	if _, err := c.Answer(`u", realm="x`, "p", "INVITE", "sip:a@b", 1); err == nil {
		t.Error("a username with a quote was accepted")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`Digest realm="x", nonce="y", qop="auth", algorithm=SHA-256`)
	f.Add(`Digest realm="\`)
	f.Fuzz(func(t *testing.T, value string) {
		c, err := Parse(value)
		if err != nil {
			return
		}
		answer, err := c.Answer("u", "p", "INVITE", "sip:a@b", 1)
		if err != nil || !c.Verify(answer, "u", "p", "INVITE") {
			t.Fatalf("%q: %q does not verify, %v", value, answer, err)
		}
	})
}
