package auth

import (
	"errors"
	"fmt"
	"sync"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/sanitize"
)

// Credentials answer one server's challenge. Later requests of the call carry
// them without a challenge (RFC 3261 section 22.3). Other servers do not accept
// the nonce.
type Credentials struct {
	Username string
	Password media.Secret

	mu        sync.Mutex
	challenge Challenge
	header    string // "Authorization" or "Proxy-Authorization"; "" before a challenge
	count     uint32 // requests sent with this nonce
}

// SetChallenge sets the challenge to answer. proxy means a 407.
func (c *Credentials) SetChallenge(challenge Challenge, proxy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.challenge, c.count, c.header = challenge, 0, "Authorization"
	if proxy {
		c.header = "Proxy-Authorization"
	}
}

// Header returns the header for a request. Its name is empty before a challenge.
func (c *Credentials) Header(method, uri string) (name, value string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.header == "" {
		return "", "", nil
	}
	if err = sanitize.CheckText("username", c.Username); err != nil {
		return "", "", err
	}
	c.count++
	value, err = c.challenge.Answer(c.Username, string(c.Password), method, uri, c.count)
	return c.header, value, err
}

// Pick returns the strongest of the challenges in values that refuse accepts.
func Pick(values []string, refuse func(Challenge) error) (best Challenge, err error) {
	err = errors.New("response has no challenge")
	found := false
	for _, v := range values {
		c, parseErr := Parse(v)
		if parseErr == nil {
			parseErr = sanitize.CheckText("challenge", v)
		}
		if parseErr != nil {
			err = fmt.Errorf("challenge: %w", parseErr)
			continue
		}
		switch refused := refuse(c); {
		case refused != nil:
			err = refused
		case !found || c.Algorithm == "SHA-256":
			best, found = c, true
		}
	}
	if found {
		return best, nil
	}
	return best, err
}
