package operator

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the hash of RFC 6238 that authenticator apps support
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/media"
)

// One-time codes by RFC 6238, with the parameters that authenticator apps expect.
const (
	codePeriod    = 30 // seconds
	codeModulus   = 1_000_000
	codeDigits    = 6
	codeKeyLength = 20 // bytes
	maxCodes      = 50 // failed codes of an account in attemptWindow, from everywhere
)

// RecoveryCodes is the number of recovery codes of an account.
const RecoveryCodes = 10

// challengeLife is the time to enter a code after the password.
const challengeLife = 5 * time.Minute

// ErrBadCode is returned if a one-time code or recovery code is wrong, or was used before.
var ErrBadCode = errors.New("wrong or used code")

// ErrChallengeOver is returned if the time to enter a code is over, or the account has changed.
var ErrChallengeOver = errors.New("the time to enter a code is over")

// ErrHasCodes is returned if the account requires one-time codes already.
var ErrHasCodes = errors.New("one-time codes are already on")

// ErrOwnCodes is returned for the reset of the actor's own codes, which takes a password and a code.
var ErrOwnCodes = errors.New("turn off your own codes on your account page")

// ErrElsewhere is returned for a change that would weaken an account that has a role in an organization that the actor does not own.
var ErrElsewhere = errors.New(
	"the operator also has a role in an organization that you do not own; ask an administrator to use parley operator")

// CodeRequiredError means that the password is right, and that the account requires a code. Challenge proves the former.
type CodeRequiredError struct{ Challenge string }

// Error implements error.
func (e *CodeRequiredError) Error() string { return "a one-time code is required" }

var codeKey = base32.StdEncoding.WithPadding(base32.NoPadding) //nolint:gochecknoglobals // a constant

// NewCodeKey returns a random key for one-time codes, in base32.
func NewCodeKey() media.Secret {
	var key [codeKeyLength]byte
	_, _ = rand.Read(key[:]) // never fails since Go 1.24
	return media.Secret(codeKey.EncodeToString(key[:]))
}

func decodeKey(key media.Secret) (raw []byte, ok bool) {
	raw, err := codeKey.DecodeString(string(key))
	return raw, err == nil && len(raw) == codeKeyLength && len(key) == codeKey.EncodedLen(codeKeyLength)
}

// CodeAddress returns the address that authenticator apps read from a QR code.
func CodeAddress(service, email string, key media.Secret) string {
	q := url.Values{"secret": {string(key)}, "issuer": {service}}
	return "otpauth://totp/" + url.PathEscape(service+":"+email) + "?" + strings.ReplaceAll(q.Encode(), "+", "%20")
}

// code returns the one-time code of a step: the number of periods since 1970.
func code(key []byte, step int64) string {
	mac := hmac.New(sha1.New, key)
	_ = binary.Write(mac, binary.BigEndian, step) // a hash accepts all writes
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	return fmt.Sprintf("%0*d", codeDigits, binary.BigEndian.Uint32(sum[at:])&0x7fffffff%codeModulus)
}

// CurrentCode returns the one-time code of a time.
func CurrentCode(key media.Secret, at time.Time) (string, error) {
	raw, ok := decodeKey(key)
	if !ok {
		return "", errors.New("not a key for one-time codes")
	}
	return code(raw, at.Unix()/codePeriod), nil
}

// step returns the step of a code: that of now, the one before or the one after; 0 if the code is wrong.
func step(key media.Secret, given string, now time.Time) (found int64) {
	raw, ok := decodeKey(key)
	if !ok {
		return 0
	}
	for n := now.Unix()/codePeriod - 1; n <= now.Unix()/codePeriod+1; n++ {
		if subtle.ConstantTimeCompare([]byte(code(raw, n)), []byte(given)) == 1 {
			found = n
		}
	}
	return found
}

// normalizeCode removes what people add when they type a code.
func normalizeCode(s string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(strings.TrimSpace(s)))
}

// useCode uses up a one-time code or a recovery code, or fails with ErrBadCode.
func useCode(ctx context.Context, q db.Querier, id string, key media.Secret, given string, now time.Time) (recovery bool, err error) {
	given = normalizeCode(given)
	sql, with := "DELETE FROM operator_recovery_codes WHERE operator_id = $1 AND hash = $2", any(sum(media.Secret(given)))
	if recovery = len(given) != codeDigits; !recovery {
		n := step(key, given, now)
		if n == 0 {
			return false, ErrBadCode
		}
		sql, with = "UPDATE operators SET totp_step = $2 WHERE id = $1 AND totp_step < $2", n // each step once
	}
	tag, err := q.Exec(ctx, sql, id, with)
	if err != nil {
		return recovery, fmt.Errorf("code: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return recovery, ErrBadCode
	}
	return recovery, nil
}

func challengeSum(key []byte, id, until, hash string) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "challenge\x00%s\x00%s\x00%s", id, until, hash)
	return hex.EncodeToString(h.Sum(nil))
}

// newChallenge proves for challengeLife that the password of an account was entered. A new password ends it.
func newChallenge(key []byte, id, hash string, now time.Time) string {
	until := strconv.FormatInt(now.Add(challengeLife).Unix(), 10)
	return id + "." + until + "." + challengeSum(key, id, until, hash)
}

// CodeAttempt is the second part of an attempt to sign in.
type CodeAttempt struct {
	Challenge string // of CodeRequiredError
	Code      string
	Key       []byte // that of the SignInAttempt
	Address   string // IP address, for the audit log
	// Device returns the id of a device on which the account has signed in before, or "". Attempts on it are counted
	// separately.
	Device func(email string) string
}

// SignInCode starts a session and returns its token. It also returns the address of the account, unless it fails with
// ErrChallengeOver. It fails with ErrBadCode or a *SlowDownError, too.
func SignInCode(ctx context.Context, q Database, a CodeAttempt) (token media.Secret, email string, err error) {
	id, email, key, err := a.account(ctx, q)
	if err != nil {
		return "", "", err
	}
	from := "elsewhere"
	if device := a.Device(email); device != "" {
		from = "device " + device
	}
	counted, err := countCode(ctx, q, email, from)
	if err != nil {
		return "", email, err
	}
	err = pgx.BeginFunc(ctx, q, func(tx pgx.Tx) error {
		who, way := Actor{ID: id, Email: email, Address: a.Address}, ByCode
		recovery, fault := useCode(ctx, tx, id, key, a.Code, time.Now())
		if fault == nil && recovery {
			way = ByRecovery
			fault = logEverywhere(ctx, tx, who, Entry{Action: "operator.recovery", Object: id})
		}
		if fault == nil {
			token, fault = startSession(ctx, tx, who, way)
		}
		return fault
	})
	if err == nil {
		err = counted.clear(ctx, q)
	}
	if errors.Is(err, ErrBadCode) {
		return "", email, ErrBadCode
	}
	return token, email, db.Wrap(err, "sign in")
}

// account returns the account of the challenge, or ErrChallengeOver.
func (a CodeAttempt) account(ctx context.Context, q Database) (id, email string, key media.Secret, err error) {
	parts := strings.Split(a.Challenge, ".")
	if len(parts) != 3 || !isStorable(a.Challenge) {
		return "", "", "", ErrChallengeOver
	}
	var hash string
	err = q.QueryRow(ctx, "SELECT email, password_hash, totp_secret FROM operators WHERE id = $1", parts[0]).Scan(&email, &hash, &key)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", "", ErrChallengeOver
	}
	if err != nil {
		return "", "", "", fmt.Errorf("sign in: %w", err)
	}
	until, err := strconv.ParseInt(parts[1], 10, 64)
	valid := hmac.Equal([]byte(parts[2]), []byte(challengeSum(a.Key, parts[0], parts[1], hash)))
	if err != nil || !valid || time.Now().Unix() > until {
		return "", "", "", ErrChallengeOver
	}
	return parts[0], email, key, nil
}

// countCode counts an attempt to guess a code. A person who knows the password may guess from many networks, so the
// account has a bound of its own.
func countCode(ctx context.Context, q Database, email, from string) (countedAttempt, error) {
	account := "account " + email + " code"
	return countAttempt(ctx, q, []attemptLimit{{account, maxCodes}, {account + " " + from, maxPerAccount}})
}

// logEverywhere writes an entry to the audit log of each organization of the actor.
func logEverywhere(ctx context.Context, q db.Querier, a Actor, e Entry) error {
	orgs, err := db.Collect(ctx, q, "roles", pgx.RowTo[string],
		"SELECT org_id FROM operator_roles WHERE operator_id = $1 ORDER BY org_id", a.ID)
	for _, org := range orgs {
		if a.OrgID = org; err == nil {
			err = Log(ctx, q, a, e)
		}
	}
	return err
}

// EnableCodes makes the account require one-time codes, ends its other sessions and returns its recovery codes, which are
// not stored. The code proves that the app has the key. The caller must check the password first.
func (s Session) EnableCodes(ctx context.Context, q db.Querier, key media.Secret, given string) (recovery []string, err error) {
	n := step(key, normalizeCode(given), time.Now())
	if n == 0 {
		return nil, ErrBadCode
	}
	tag, err := q.Exec(ctx, "UPDATE operators SET totp_secret = $2, totp_step = $3 WHERE id = $1 AND totp_secret = ''", s.ID, key, n)
	if err == nil && tag.RowsAffected() == 0 {
		return nil, ErrHasCodes
	}
	var hashes [][]byte
	for range RecoveryCodes {
		c := strings.ToLower(rand.Text()[:16]) // 80 random bits
		recovery = append(recovery, c[:4]+"-"+c[4:8]+"-"+c[8:12]+"-"+c[12:])
		hashes = append(hashes, sum(media.Secret(c)))
	}
	if err == nil {
		_, err = q.Exec(ctx, "INSERT INTO operator_recovery_codes (operator_id, hash) SELECT $1, unnest($2::bytea[])", s.ID, hashes)
	}
	if err == nil {
		_, err = q.Exec(ctx, "DELETE FROM operator_sessions WHERE operator_id = $1 AND hash <> $2", s.ID, sum(s.token))
	}
	return recovery, db.Wrap(err, "one-time codes")
}

// VerifyCode uses up a code of the operator. It fails with ErrBadCode, or with a *SlowDownError after too many failures.
func (s Session) VerifyCode(ctx context.Context, q Database, given string) error {
	counted, err := countCode(ctx, q, s.Email, fmt.Sprintf("session %x", sum(s.token)))
	if err != nil {
		return err
	}
	var key media.Secret
	if err = q.QueryRow(ctx, "SELECT totp_secret FROM operators WHERE id = $1", s.ID).Scan(&key); err != nil {
		return fmt.Errorf("code: %w", err)
	}
	if _, err = useCode(ctx, q, s.ID, key, given, time.Now()); err != nil {
		return err
	}
	return counted.clear(ctx, q)
}

// DisableCodes removes the one-time codes of an account, and its recovery codes.
func DisableCodes(ctx context.Context, q db.Querier, id string) error {
	_, err := q.Exec(ctx, "UPDATE operators SET totp_secret = '' WHERE id = $1", id)
	if err == nil {
		_, err = q.Exec(ctx, "DELETE FROM operator_recovery_codes WHERE operator_id = $1", id)
	}
	return db.Wrap(err, "one-time codes")
}

// ResetCodes removes the one-time codes of another operator, and ends the sessions of the account, because the device is
// lost. An actor with an id must own all organizations of the operator.
func ResetCodes(ctx context.Context, q db.Querier, a Actor, id string) error {
	if id == a.ID {
		return ErrOwnCodes
	}
	if err := mayWeaken(ctx, q, a, id); err != nil {
		return err
	}
	return removeCodes(ctx, q, id)
}

// removeCodes removes the one-time codes of an account, and ends its sessions.
func removeCodes(ctx context.Context, q db.Querier, id string) error {
	err := DisableCodes(ctx, q, id)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, "DELETE FROM operator_sessions WHERE operator_id = $1", id)
	return db.Wrap(err, "one-time codes")
}

// CodesLeft returns the number of recovery codes of the account.
func (s Session) CodesLeft(ctx context.Context, q db.Querier) (n int, err error) {
	err = q.QueryRow(ctx, "SELECT count(*) FROM operator_recovery_codes WHERE operator_id = $1", s.ID).Scan(&n)
	return n, db.Wrap(err, "recovery codes")
}
