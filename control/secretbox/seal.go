// Package secretbox encrypts the secrets in the database. Database connections encrypt each media.Secret that they
// write, and decrypt each media.Secret that they read. A dump of the database therefore reveals no secret.
package secretbox

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

// prefix starts each encrypted text. After it come the id of the key, and the nonce and ciphertext in base64.
const prefix = "sealed:v1:"

// keyLen is the length of a key in bytes, as AES-256 requires.
const keyLen = 32

// Key encrypts with AES-256-GCM (NIST SP 800-38D). The nonce is a keyed hash of the text, as in RFC 5297, so equal
// texts have equal ciphertexts. A secret that is written again therefore stays the same, and a dump reveals only which
// secrets are equal. The id identifies the key and reveals nothing about it.
type Key struct {
	ID    string
	aead  cipher.AEAD
	nonce []byte // key for the hash that is the nonce
}

// Keys are the keys of a service. The first key encrypts; all keys can decrypt.
type Keys []Key

// Generate returns a new key in the form that Parse accepts.
func Generate() media.Secret {
	var raw [keyLen]byte
	_, _ = rand.Read(raw[:]) // never fails since Go 1.24
	return media.Secret(base64.StdEncoding.EncodeToString(raw[:]))
}

// Parse reads keys of 32 bytes in base64, separated by commas or white space.
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
		return nil, errors.New("no key given")
	}
	return all, nil
}

func newKey(raw []byte) (Key, error) {
	var parts [3][]byte
	for i, use := range []string{"parley seal text", "parley seal nonce", "parley seal id"} {
		var err error
		if parts[i], err = hkdf.Key(sha256.New, raw, nil, use, keyLen); err != nil { // key derivation by RFC 5869
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

func (k Key) seal(plain, head []byte) []byte {
	mac := hmac.New(sha256.New, k.nonce)
	mac.Write(plain)
	nonce := mac.Sum(nil)[:k.aead.NonceSize()]
	return k.aead.Seal(nonce, nonce, plain, head)
}

func (k Key) open(text, head []byte) ([]byte, error) {
	n := k.aead.NonceSize()
	if len(text) < n {
		return nil, errors.New("ciphertext too short")
	}
	return k.aead.Open(nil, text[:n], text[n:], head)
}

// Seal encrypts a text with the first key. An empty text stays empty; it means that there is no secret.
func (k Keys) Seal(plain media.Secret) (string, error) {
	if plain == "" {
		return "", nil
	}
	if len(k) == 0 {
		return "", errors.New("no key to seal with")
	}
	head := prefix + k[0].ID + ":"
	return head + base64.StdEncoding.EncodeToString(k[0].seal([]byte(plain), []byte(head))), nil
}

// Open decrypts a text with the key that encrypted it. It returns a plain text unchanged, because old versions stored
// secrets in plain text.
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
			return "", fmt.Errorf("sealed with key %s: not base64", id)
		}
		plain, err := key.open(raw, []byte(prefix+id+":"))
		if err != nil {
			return "", fmt.Errorf("sealed with key %s: %w", id, err)
		}
		return media.Secret(plain), nil
	}
	return "", &UnknownKeyError{ID: id}
}

// UnknownKeyError reports a secret that is encrypted with an unknown key.
type UnknownKeyError struct{ ID string }

// Error implements error.
func (e *UnknownKeyError) Error() string {
	return "a secret in the database is sealed with key " + e.ID + ", which is not among PARLEY_SEAL_KEY"
}
