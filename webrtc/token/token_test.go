package token_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/webrtc/token"
)

func TestToken(t *testing.T) {
	key, now := token.Key("0123456789abcdef0123456789abcdef"), time.Unix(1_795_222_586, 0)
	c := key.NewClaims("call_A", now.Add(token.Lifetime))
	word := key.Sign(c)
	if got, err := key.Verify(word, now); err != nil || got.CallID != "call_A" || got.ID != c.ID || !got.Expires.Equal(c.Expires) {
		t.Fatalf("%+v %v", got, err)
	}
	if again := key.Sign(key.NewClaims("call_A", now.Add(token.Lifetime))); again != word {
		t.Error("got two different tokens for one call")
	}
	if key.NewClaims("call_B", now).ID == c.ID {
		t.Error("got one token for two calls")
	}
	swap := func(part int, with string) string {
		parts := strings.Split(word, ".")
		parts[part] = base64.RawURLEncoding.EncodeToString([]byte(with))
		return strings.Join(parts, ".")
	}
	for name, tt := range map[string]struct {
		word string
		now  time.Time
		want error
	}{
		"good to the last second": {word, now.Add(token.Lifetime - time.Second), nil},
		"expired":                 {word, now.Add(token.Lifetime), token.ErrExpired},
		"of another key":          {token.Key("another").Sign(c), now, token.ErrInvalid},
		"for another call":        {swap(1, `{"sub":"call_B","aud":"rtc","exp":9999999999,"jti":"x"}`), now, token.ErrInvalid},
		"not signed":              {swap(0, `{"alg":"none","typ":"JWT"}`), now, token.ErrInvalid},
		"without a signature":     {word[:strings.LastIndexByte(word, '.')], now, token.ErrInvalid},
		"empty":                   {"", now, token.ErrInvalid},
		"huge":                    {strings.Repeat("a", 1<<20), now, token.ErrInvalid},
	} {
		if _, err := key.Verify(tt.word, tt.now); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// FuzzRead checks that no token is accepted without the key.
func FuzzRead(f *testing.F) {
	key := token.Key("0123456789abcdef0123456789abcdef")
	now := time.Unix(1_795_222_586, 0)
	good := key.Sign(key.NewClaims("call_A", now.Add(token.Lifetime)))
	f.Add(good[:len(good)-1])
	f.Add("..")
	f.Fuzz(func(t *testing.T, word string) {
		if _, err := key.Verify(word, now); err == nil && word != good {
			t.Errorf("%q was accepted", word)
		}
	})
}
