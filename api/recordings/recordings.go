// Package recordings serves recordings by signed links that expire.
package recordings

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/respond"
	"github.com/parley-voice/parley/control"
)

// lifetime is how long a link is good.
const lifetime = 8 * 24 * time.Hour

// A Bucket opens what was stored under a key, or fails with fs.ErrNotExist.
type Bucket interface {
	Open(ctx context.Context, key string) (io.ReadSeekCloser, error)
}

// Calls finds recordings; *store.Store does.
type Calls interface {
	// Recording returns the key of a call's recording, empty where there is none,
	// and when the call ended.
	Recording(ctx context.Context, callID string) (key string, ended time.Time, err error)
}

// Recordings makes links and serves what they lead to.
type Recordings struct {
	Calls  Calls
	Bucket Bucket
	// Key signs the links.
	Key []byte
	// PublicURL is the address under which clients reach us, without a path.
	PublicURL string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Link returns the address of a call's recording, good for eight days.
func (s *Recordings) Link(callID string) string {
	exp := strconv.FormatInt(s.now().Add(lifetime).Unix(), 10)
	q := url.Values{"exp": {exp}, "sig": {s.sign(callID, exp)}}
	return strings.TrimSuffix(s.PublicURL, "/") + "/recordings/" + callID + ".wav?" + q.Encode()
}

var file = regexp.MustCompile(`^(call_[0-9A-Z]{26})\.wav$`)

// Serve answers GET /recordings/{file}, ranges included (RFC 9110 14).
func (s *Recordings) Serve(w http.ResponseWriter, r *http.Request) error {
	m := file.FindStringSubmatch(r.PathValue("file"))
	exp, sig := r.URL.Query().Get("exp"), r.URL.Query().Get("sig")
	if m == nil || !hmac.Equal([]byte(sig), []byte(s.sign(m[1], exp))) {
		return missing()
	}
	until, err := strconv.ParseInt(exp, 10, 64)
	if err != nil || s.now().Unix() >= until {
		return &respond.PlainError{Status: http.StatusForbidden, Message: "this link has expired; read the call for a new one"}
	}
	return s.Send(w, r, m[1])
}

// Send answers with the recording of a call, ranges included, to somebody who may
// hear it.
func (s *Recordings) Send(w http.ResponseWriter, r *http.Request, callID string) error {
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second) // the recording itself may take as long as it likes
	defer cancel()
	key, ended, err := s.Calls.Recording(ctx, callID)
	if err != nil || key == "" {
		if err == nil || control.CodeOf(err) == control.CodeCallNotFound {
			return missing()
		}
		return err
	}
	f, err := s.Bucket.Open(r.Context(), key)
	if errors.Is(err, fs.ErrNotExist) {
		return missing()
	}
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", "audio/wav")
	w.Header().Set("Cache-Control", "private, max-age=3600")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, callID+".wav", ended, f)
	return nil
}

func missing() error {
	return &respond.PlainError{Status: http.StatusNotFound, Message: "no such recording"}
}

func (s *Recordings) sign(callID, exp string) string {
	m := hmac.New(sha256.New, s.Key)
	m.Write([]byte("recording\x00" + callID + "\x00" + exp))
	return hex.EncodeToString(m.Sum(nil))
}

func (s *Recordings) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}
