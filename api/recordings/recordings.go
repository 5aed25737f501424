// Package recordings serves recordings through signed, expiring links.
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
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control"
)

// lifetime is how long a link is valid. skew is the tolerated difference between the clocks of
// nodes.
const (
	lifetime = 8 * 24 * time.Hour
	skew     = time.Minute
)

// A Bucket opens a stored object. The error for a missing object is fs.ErrNotExist.
type Bucket interface {
	Open(ctx context.Context, key string) (io.ReadSeekCloser, error)
}

// Calls finds recordings; *store.Store implements it.
type Calls interface {
	// Recording returns the key of a call's recording, "" if there is none, and the end of the
	// call.
	Recording(ctx context.Context, callID string) (key string, ended time.Time, err error)
}

// Recordings creates and serves links.
type Recordings struct {
	Calls  Calls
	Bucket Bucket
	// Key returns the signing key of links, which may be rotated.
	Key func() []byte
	// PublicURL is the base URL for clients, without a path.
	PublicURL string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Link returns the URL of a call's recording with this key, valid for eight days.
func (s *Recordings) Link(callID, key string) string {
	exp := strconv.FormatInt(s.now().Add(lifetime).Unix(), 10)
	q := url.Values{"exp": {exp}, "sig": {s.sign(callID, exp)}}
	return strings.TrimSuffix(s.PublicURL, "/") + "/recordings/" + callID + extension(key) + "?" + q.Encode()
}

var file = regexp.MustCompile(`^(call_[0-9A-Z]{26})\.(?:wav|opus)$`)

// extension returns the file name extension of the recording with a key.
func extension(key string) string {
	if path.Ext(key) == ".opus" {
		return ".opus"
	}
	return ".wav"
}

// contentTypes are the media types of recordings by extension (RFC 7845, section 9).
var contentTypes = map[string]string{".wav": "audio/wav", ".opus": "audio/ogg; codecs=opus"} //nolint:gochecknoglobals // read-only table

// Serve answers GET /recordings/{file}, with ranges (RFC 9110, section 14).
func (s *Recordings) Serve(w http.ResponseWriter, r *http.Request) error {
	m := file.FindStringSubmatch(r.PathValue("file"))
	exp, sig := r.URL.Query().Get("exp"), r.URL.Query().Get("sig")
	if m == nil || !hmac.Equal([]byte(sig), []byte(s.sign(m[1], exp))) {
		return missing()
	}
	until, err := strconv.ParseInt(exp, 10, 64)
	if err == nil && until > s.now().Add(lifetime+skew).Unix() { // no node signs such a link
		return missing()
	}
	if err != nil || s.now().Unix() >= until {
		return &response.PlainError{Status: http.StatusForbidden, Message: "this link has expired; read the call for a new one"}
	}
	return s.Send(w, r, m[1])
}

// Send serves a recording in the format in which it is stored, with ranges, to an authorized client.
func (s *Recordings) Send(w http.ResponseWriter, r *http.Request, callID string) error {
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second) // limits the lookup; the sending has no limit
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
	w.Header().Set("Content-Type", contentTypes[extension(key)])
	w.Header().Set("Cache-Control", "private, max-age=3600")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, callID+extension(key), ended, f)
	return nil
}

func missing() error {
	return &response.PlainError{Status: http.StatusNotFound, Message: "recording not found"}
}

func (s *Recordings) sign(callID, exp string) string {
	m := hmac.New(sha256.New, s.Key())
	m.Write([]byte("recording\x00" + callID + "\x00" + exp))
	return hex.EncodeToString(m.Sum(nil))
}

func (s *Recordings) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}
