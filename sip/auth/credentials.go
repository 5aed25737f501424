package auth

import (
	"errors"
	"fmt"
	"sync"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/sip/guard"
)

// Credentials answer one server's challenge. Later requests of the same call
// carry them unasked (RFC 3261 section 22.3): their nonce is the server's own,
// so they tell nobody else anything.
type Credentials struct {
	Username string
	Password media.Secret

	mu        sync.Mutex
	challenge Challenge
	header    string // "Authorization" or "Proxy-Authorization"; "" before a challenge
	count     uint32 // requests that answered the nonce
}

// Accept takes the challenge to be answered from now on.
func (c *Credentials) Accept(challenge Challenge, proxy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.challenge, c.count, c.header = challenge, 0, "Authorization"
	if proxy {
		c.header = "Proxy-Authorization"
	}
}

// Header is the header that a request carries. Its name is empty where nobody
// has asked for credentials.
func (c *Credentials) Header(method, uri string) (name, value string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.header == "" {
		return "", "", nil
	}
	if err = guard.Text("username", c.Username); err != nil {
		return "", "", err
	}
	c.count++
	value, err = c.challenge.Answer(c.Username, string(c.Password), method, uri, c.count)
	return c.header, value, err
}

// Pick returns the strongest of the challenges in values whose realm ours says
// is the server's.
func Pick(values []string, ours func(realm string) bool) (best Challenge, err error) {
	err = errors.New("challenge is missing")
	found := false
	for _, v := range values {
		c, parseErr := Parse(v)
		if parseErr == nil {
			parseErr = guard.Text("challenge", v)
		}
		switch {
		case parseErr != nil:
			err = fmt.Errorf("challenge: %w", parseErr)
		case !ours(c.Realm):
			err = errors.New("challenge of a foreign realm")
		case !found || c.Algorithm == "SHA-256":
			best, found = c, true
		}
	}
	if found {
		return best, nil
	}
	return best, err
}
