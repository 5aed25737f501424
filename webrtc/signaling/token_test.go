package signaling_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/webrtc/signaling"
)

func TestToken(t *testing.T) {
	key, now := signaling.TokenKey("0123456789abcdef0123456789abcdef"), time.Unix(1_795_222_586, 0)
	c := key.NewClaims("call_A", now.Add(signaling.TokenLifetime))
	token := key.Sign(c)
	if got, err := key.Verify(token, now); err != nil || got.CallID != "call_A" || got.ID != c.ID || !got.Expires.Equal(c.Expires) {
		t.Fatalf("%+v %v", got, err)
	}
	if again := key.Sign(key.NewClaims("call_A", now.Add(signaling.TokenLifetime))); again != token {
		t.Error("got two different tokens for one call")
	}
	if key.NewClaims("call_B", now).ID == c.ID {
		t.Error("got one token for two calls")
	}
	swap := func(part int, with string) string {
		parts := strings.Split(token, ".")
		parts[part] = base64.RawURLEncoding.EncodeToString([]byte(with))
		return strings.Join(parts, ".")
	}
	for name, tt := range map[string]struct {
		token string
		now   time.Time
		want  error
	}{
		"good to the last second": {token, now.Add(signaling.TokenLifetime - time.Second), nil},
		"expired":                 {token, now.Add(signaling.TokenLifetime), signaling.ErrExpiredToken},
		"of another key":          {signaling.TokenKey("another").Sign(c), now, signaling.ErrInvalidToken},
		"for another call":        {swap(1, `{"sub":"call_B","aud":"rtc","exp":9999999999,"jti":"x"}`), now, signaling.ErrInvalidToken},
		"not signed":              {swap(0, `{"alg":"none","typ":"JWT"}`), now, signaling.ErrInvalidToken},
		"without a signature":     {token[:strings.LastIndexByte(token, '.')], now, signaling.ErrInvalidToken},
		"empty":                   {"", now, signaling.ErrInvalidToken},
		"huge":                    {strings.Repeat("a", 1<<20), now, signaling.ErrInvalidToken},
	} {
		if _, err := key.Verify(tt.token, tt.now); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// FuzzToken checks that no token is accepted without the key.
func FuzzToken(f *testing.F) {
	key := signaling.TokenKey("0123456789abcdef0123456789abcdef")
	now := time.Unix(1_795_222_586, 0)
	good := key.Sign(key.NewClaims("call_A", now.Add(signaling.TokenLifetime)))
	f.Add(good[:len(good)-1])
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := key.Verify(token, now); err == nil && token != good {
			t.Errorf("%q was accepted", token)
		}
	})
}
