package operator

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/parley-voice/parley/media"
)

// Limits of a password's length.
const (
	minPassword = 12  // characters
	maxPassword = 256 // bytes
)

// CheckPassword returns an error if a password is invalid. The error never contains the password.
func CheckPassword(p media.Secret) error {
	if !utf8.ValidString(string(p)) || utf8.RuneCountInString(string(p)) < minPassword || len(p) > maxPassword {
		return fmt.Errorf("a password must have at least %d characters and at most %d bytes", minPassword, maxPassword)
	}
	return nil
}

// NewPassword returns a random password.
func NewPassword() media.Secret { return media.Secret(rand.Text()) }

// Cost is the cost of an argon2id hash; the zero value means the default.
type Cost struct {
	Passes uint32
	Memory uint32 // in KiB
}

// defaultCost is the second recommendation of RFC 9106 and OWASP. It uses less memory than the first.
func defaultCost() Cost { return Cost{Passes: 2, Memory: 19 << 10} }

// Limits of the cost of stored hashes.
const (
	maxPasses = 16
	maxMemory = 1 << 20 // in KiB
)

const (
	threads = 1
	length  = 32
)

// limiter limits how many requests work at the same time, and how many wait.
type limiter struct {
	working chan struct{}
	most    int64 // maximum number of waiting requests
	waiting atomic.Int64
}

// hashing limits password hashing, which takes memory and CPU time from calls. counting limits the counting of
// attempts, which takes database connections. refusing limits the entries of refusals, so that no flood of them delays
// sign-ins.
var (
	hashing  = &limiter{working: make(chan struct{}, max(1, runtime.NumCPU()/2)), most: 20} //nolint:gochecknoglobals // the process's
	counting = &limiter{working: make(chan struct{}, 2), most: 200}                         //nolint:gochecknoglobals // the process's
	refusing = &limiter{working: make(chan struct{}, 1), most: 100}                         //nolint:gochecknoglobals // the process's
)

// enter waits until the request may start its work, or until ctx ends. If too many requests wait, it fails at once with
// a *SlowDownError, unless patient is set.
func (q *limiter) enter(ctx context.Context, patient bool) (leave func(), err error) {
	if n := q.waiting.Add(1); n > q.most && !patient {
		q.waiting.Add(-1)
		return nil, &SlowDownError{For: 5 * time.Second}
	}
	defer q.waiting.Add(-1)
	select {
	case q.working <- struct{}{}:
		return func() { <-q.working }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c Cost) derive(p media.Secret, salt []byte) []byte {
	return argon2.IDKey([]byte(p), salt, c.Passes, c.Memory, threads, length)
}

// form is the PHC string format of a hash.
const form = "$argon2id$v=19$m=%d,t=%d,p=1$"

func (c Cost) hash(ctx context.Context, p media.Secret) (string, error) {
	leave, err := hashing.enter(ctx, true)
	if err != nil {
		return "", err
	}
	defer leave()
	if c == (Cost{}) {
		c = defaultCost()
	}
	var salt [16]byte
	_, _ = rand.Read(salt[:]) // never fails since Go 1.24
	b := base64.RawStdEncoding
	return fmt.Sprintf(form, c.Memory, c.Passes) + b.EncodeToString(salt[:]) + "$" + b.EncodeToString(c.derive(p, salt[:])), nil
}

// dummyHash is compared with the password of an unknown account, so that the response takes as long as for a known
// account.
func dummyHash() string {
	c := defaultCost()
	return fmt.Sprintf(form, c.Memory, c.Passes) + "AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
}

// matches reports whether a password matches a hash. patient has the same meaning as for enter.
func matches(ctx context.Context, hash string, p media.Secret, patient bool) (bool, error) {
	leave, err := hashing.enter(ctx, patient)
	if err != nil {
		return false, err
	}
	defer leave()
	c, salt, want, ok := read(hash)
	if !ok {
		c = defaultCost()
	}
	got := c.derive(p, salt)
	return ok && subtle.ConstantTimeCompare(got, want) == 1, nil
}

// read parses a hash. ok is false if the hash is invalid.
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
	ok = c.Passes >= 1 && c.Passes <= maxPasses && c.Memory >= 8 && c.Memory <= maxMemory && len(salt) > 0 && len(sum) == length &&
		errors.Join(errSalt, errSum) == nil
	return c, salt, sum, ok
}
