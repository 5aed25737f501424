package operator

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
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

// A Cost is what a hash by argon2id takes; the zero one is the usual.
type Cost struct {
	Passes uint32
	Memory uint32 // KiB
}

// usual is the second of RFC 9106's and OWASP's advice, a server's memory kept in mind.
func usual() Cost { return Cost{Passes: 2, Memory: 19 << 10} }

// Bounds of what a hash may take that is looked at.
const (
	mostPasses = 16
	mostMemory = 1 << 20 // KiB
)

const (
	threads = 1
	length  = 32
)

// working bounds how many passwords are hashed at a time. Who comes then waits:
// more would cost memory, and calls their processor.
var working = make(chan struct{}, max(1, runtime.NumCPU()/2)) //nolint:gochecknoglobals // the process's

func (c Cost) derive(p media.Secret, salt []byte) []byte {
	working <- struct{}{}
	defer func() { <-working }()
	return argon2.IDKey([]byte(p), salt, c.Passes, c.Memory, threads, length)
}

// form is how the cost of a hash is written (PHC).
const form = "$argon2id$v=19$m=%d,t=%d,p=1$"

func (c Cost) hash(p media.Secret) string {
	if c == (Cost{}) {
		c = usual()
	}
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails since Go 1.24
	b := base64.RawStdEncoding
	return fmt.Sprintf(form, c.Memory, c.Passes) + b.EncodeToString(salt[:]) + "$" + b.EncodeToString(c.derive(p, salt[:]))
}

// nobody is what the passwords of unknown accounts are held against, so that they
// take as long.
func nobody() string {
	c := usual()
	return fmt.Sprintf(form, c.Memory, c.Passes) + "AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
}

// matches tells whether a password is that of a hash.
func matches(hash string, p media.Secret) bool {
	c, salt, want, ok := read(hash)
	if !ok {
		c = usual()
	}
	got := c.derive(p, salt)
	return ok && subtle.ConstantTimeCompare(got, want) == 1
}

// read takes a hash apart.
func read(hash string) (c Cost, salt, sum []byte, ok bool) {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 {
		return c, nil, nil, false
	}
	if _, err := fmt.Sscanf(hash, form, &c.Memory, &c.Passes); err != nil {
		return c, nil, nil, false
	}
	b := base64.RawStdEncoding
	salt, errSalt := b.DecodeString(parts[4])
	sum, errSum := b.DecodeString(parts[5])
	ok = c.Passes >= 1 && c.Passes <= mostPasses && c.Memory >= 8 && c.Memory <= mostMemory && len(salt) > 0 && len(sum) == length && errors.Join(errSalt, errSum) == nil
	return c, salt, sum, ok
}
