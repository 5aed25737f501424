package operator

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/parley-voice/parley/media"
)

// How long a password is.
const (
	leastPassword = 12  // characters
	mostPassword  = 256 // bytes
)

// CheckPassword returns what is wrong with a password. It never repeats it.
func CheckPassword(p media.Secret) error {
	if !utf8.ValidString(string(p)) || utf8.RuneCountInString(string(p)) < leastPassword || len(p) > mostPassword {
		return fmt.Errorf("a password has %d characters at least, and %d bytes at most", leastPassword, mostPassword)
	}
	return nil
}

// NewPassword makes one up.
func NewPassword() media.Secret { return media.Secret(rand.Text()) }

// What a hash costs: the second of RFC 9106's and OWASP's advice for argon2id, a
// server's memory kept in mind.
const (
	passes  = 2
	memory  = 19 << 10 // KiB
	threads = 1
	length  = 32
)

// working bounds how many passwords are hashed at a time. Who comes then waits:
// more would cost memory, and calls their processor.
var working = make(chan struct{}, max(1, runtime.NumCPU()/2)) //nolint:gochecknoglobals // the process's

func derive(p media.Secret, salt []byte) []byte {
	working <- struct{}{}
	defer func() { <-working }()
	return argon2.IDKey([]byte(p), salt, passes, memory, threads, length)
}

// form is how a hash is written (PHC).
const form = "$argon2id$v=19$m=19456,t=2,p=1$"

func hash(p media.Secret) string {
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails since Go 1.24
	b := base64.RawStdEncoding
	return form + b.EncodeToString(salt[:]) + "$" + b.EncodeToString(derive(p, salt[:]))
}

// nobody is what the passwords of unknown accounts are held against, so that they
// take as long.
const nobody = form + "AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// matches tells whether a password is that of a hash.
func matches(hash string, p media.Secret) bool {
	rest, ok := strings.CutPrefix(hash, form)
	salt, sum, _ := strings.Cut(rest, "$")
	b := base64.RawStdEncoding
	s, errSalt := b.DecodeString(salt)
	want, errSum := b.DecodeString(sum)
	got := derive(p, s)
	return ok && errSalt == nil && errSum == nil && subtle.ConstantTimeCompare(got, want) == 1
}
