// Package seal keeps secrets unreadable in the database: a media.Secret that is
// written is sealed on its way by the connection, and one that is read is
// opened. Whoever has the database alone, or a dump of it, reads none.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-voice/parley/media"
)

// prefix begins what is sealed: the id of the key follows, and then nonce and
// ciphertext in base64.
const prefix = "sealed:v1:"

// keyLen is the length of a key in bytes: AES-256.
const keyLen = 32

// A Key seals with AES-256-GCM (NIST SP 800-38D). The nonce is a keyed hash of
// the text, as in RFC 5297: it repeats with the text alone. So what is written
// again stays the same, and a dump tells which secrets are equal, but nothing
// else. The id tells which key it is, and nothing of it.
type Key struct {
	ID    string
	aead  cipher.AEAD
	nonce []byte // the key of the hash
}

// Keys are those of a service: the first one seals, and all of them open.
type Keys []Key

// Generate returns a new key as Parse reads it.
func Generate() media.Secret {
	var raw [keyLen]byte
	_, _ = rand.Read(raw[:]) // never fails since Go 1.24
	return media.Secret(base64.StdEncoding.EncodeToString(raw[:]))
}

// Parse reads keys: the base64 of 32 bytes each, with commas or white space
// between them.
func Parse(text media.Secret) (Keys, error) {
	var all Keys
	for i, s := range strings.FieldsFunc(string(text), func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		raw, err := base64.StdEncoding.DecodeString(s)
		if err != nil || len(raw) != keyLen {
			return nil, fmt.Errorf("key %d is not the base64 of 32 bytes", i+1)
		}
		k, err := newKey(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no key")
	}
	return all, nil
}

func newKey(raw []byte) (Key, error) {
	var parts [3][]byte
	for i, use := range []string{"parley seal text", "parley seal nonce", "parley seal id"} {
		var err error
		if parts[i], err = hkdf.Key(sha256.New, raw, nil, use, keyLen); err != nil { // RFC 5869
			return Key{}, err
		}
	}
	block, err := aes.NewCipher(parts[0])
	if err != nil {
		return Key{}, err
	}
	aead, err := cipher.NewGCM(block)
	return Key{ID: hex.EncodeToString(parts[2][:6]), aead: aead, nonce: parts[1]}, err
}

// seal returns nonce and ciphertext.
func (k Key) seal(plain, head []byte) []byte {
	mac := hmac.New(sha256.New, k.nonce)
	mac.Write(plain)
	nonce := mac.Sum(nil)[:k.aead.NonceSize()]
	return k.aead.Seal(nonce, nonce, plain, head)
}

func (k Key) open(text, head []byte) ([]byte, error) {
	n := k.aead.NonceSize()
	if len(text) < n {
		return nil, errors.New("it is cut")
	}
	return k.aead.Open(nil, text[:n], text[n:], head)
}

// Seal seals a text. The empty one stays empty: that there is no secret is none.
func (k Keys) Seal(plain media.Secret) (string, error) {
	if plain == "" {
		return "", nil
	}
	if len(k) == 0 {
		return "", errors.New("there is no key to seal with")
	}
	head := prefix + k[0].ID + ":"
	return head + base64.StdEncoding.EncodeToString(k[0].seal([]byte(plain), []byte(head))), nil
}

// Open opens what was sealed with one of the keys. What was never sealed, as
// before secrets were, is returned as it is.
func (k Keys) Open(stored string) (media.Secret, error) {
	rest, sealed := strings.CutPrefix(stored, prefix)
	if !sealed {
		return media.Secret(stored), nil
	}
	id, text, _ := strings.Cut(rest, ":")
	for _, key := range k {
		if key.ID != id {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return "", fmt.Errorf("sealed with key %s: no base64", id)
		}
		plain, err := key.open(raw, []byte(prefix+id+":"))
		if err != nil {
			return "", fmt.Errorf("sealed with key %s: %w", id, err)
		}
		return media.Secret(plain), nil
	}
	return "", &UnknownKeyError{ID: id}
}

// An UnknownKeyError is returned for what was sealed with a key that is not
// among ours.
type UnknownKeyError struct{ ID string }

// Error implements error.
func (e *UnknownKeyError) Error() string {
	return "a secret in the database is sealed with key " + e.ID + ", which is not among PARLEY_SEAL_KEY"
}
