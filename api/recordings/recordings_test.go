package recordings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/api/response"
	"github.com/parley-voice/parley/control"
	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/recording/s3"
	"github.com/parley-voice/parley/control/recording/s3/s3test"
)

const (
	recorded   = "call_01ARZ3NDEKTSV4RRFFQ69G5FAV"
	deleted    = "call_01ARZ3NDEKTSV4RRFFQ69G5FAW" // the bucket does not have it
	unrecorded = "call_01ARZ3NDEKTSV4RRFFQ69G5FAX"
	unknown    = "call_01ARZ3NDEKTSV4RRFFQ69G5FAY"
)

type calls map[string]string // keys of recordings by call

func (c calls) Recording(_ context.Context, id string) (string, time.Time, error) {
	key, ok := c[id]
	if !ok {
		return "", time.Time{}, control.Refuse(control.CodeCallNotFound, "no such call")
	}
	return key, time.Unix(1_790_000_000, 0), nil
}

// TestServe serves recordings of a folder and of S3, complete and in ranges, through valid and invalid links.
func TestServe(t *testing.T) {
	far := s3test.New(t)
	remote, err := s3.Open(far.BucketURL("p"), s3.Account{ID: s3test.ID, Secret: s3test.Secret})
	if err != nil {
		t.Fatal(err)
	}
	for name, bucket := range map[string]recording.Bucket{"folder": &recording.Folder{Dir: t.TempDir()}, "s3": remote} {
		t.Run(name, func(t *testing.T) {
			want := bytes.Repeat([]byte("RIFF0123456789ab"), 10_000)
			if err := bucket.Put(t.Context(), "k", bytes.NewReader(want)); err != nil {
				t.Fatal(err)
			}
			now, key := time.Unix(1_800_000_000, 0), []byte("key")
			s := &Recordings{Calls: calls{recorded: "k", deleted: "gone", unrecorded: ""}, Bucket: bucket, Key: func() []byte { return key }, Now: func() time.Time { return now }}
			mux := http.NewServeMux()
			mux.HandleFunc("/recordings/{file}", func(w http.ResponseWriter, r *http.Request) {
				if err := s.Serve(w, r); err != nil {
					response.Error(w, r, slog.New(slog.DiscardHandler), err)
				}
			})
			get := func(path string, headers ...string) *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
				for i := 0; i < len(headers); i += 2 {
					r.Header.Set(headers[i], headers[i+1])
				}
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, r)
				return w
			}
			link := s.Link(recorded, "k.wav")
			if w := get(link); w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), want) || w.Header().Get("Content-Type") != "audio/wav" || w.Header().Get("Accept-Ranges") != "bytes" {
				t.Errorf("complete: %d, %d bytes, %v", w.Code, w.Body.Len(), w.Header())
			}
			for header, part := range map[string][]byte{"bytes=0-3": want[:4], "bytes=100000-100099": want[100_000:100_100], "bytes=-16": want[len(want)-16:], "bytes=159990-": want[159_990:]} {
				if w := get(link, "Range", header); w.Code != http.StatusPartialContent || !bytes.Equal(w.Body.Bytes(), part) {
					t.Errorf("%s: %d, %d bytes", header, w.Code, w.Body.Len())
				}
			}
			if w := get(link, "Range", "bytes=160000-"); w.Code != http.StatusRequestedRangeNotSatisfiable {
				t.Errorf("beyond the end: %d", w.Code)
			}
			if w := get(link, "If-Modified-Since", "Tue, 01 Jan 2030 00:00:00 GMT"); w.Code != http.StatusNotModified {
				t.Errorf("not modified: %d", w.Code)
			}
			for what, path := range map[string]string{
				"deleted": s.Link(deleted, "k.wav"), "unrecorded": s.Link(unrecorded, "k.wav"), "unknown": s.Link(unknown, "k.wav"), "no link": "/recordings/" + recorded + ".wav",
				"another call's link": strings.Replace(link, recorded, deleted, 1), "another expiry": strings.Replace(link, "exp=1", "exp=2", 1), "another file": strings.Replace(link, ".wav", ".mp3", 1),
			} {
				if w := get(path); w.Code != http.StatusNotFound {
					t.Errorf("%s: %d", what, w.Code)
				}
			}
			ahead := &Recordings{Key: s.Key, Now: func() time.Time { return now.Add(time.Hour) }}
			if w := get(ahead.Link(recorded, "k.wav")); w.Code != http.StatusNotFound {
				t.Errorf("a link with too long a lifetime: %d", w.Code)
			}
			key = []byte("another key")
			if w := get(link); w.Code != http.StatusNotFound {
				t.Errorf("a revoked link: %d", w.Code)
			}
			link = s.Link(recorded, "k.wav")
			now = now.Add(7 * 24 * time.Hour)
			if w := get(link); w.Code != http.StatusOK {
				t.Errorf("after seven days: %d", w.Code)
			}
			now = now.Add(2 * 24 * time.Hour)
			if w := get(link); w.Code != http.StatusForbidden {
				t.Errorf("after nine days: %d", w.Code)
			}
		})
	}
	if ranges, _ := far.Asked(); ranges == 0 {
		t.Error("the bucket received no range requests")
	}
}

type unavailable struct{ recording.Bucket }

func (unavailable) Open(context.Context, string) (io.ReadSeekCloser, error) {
	return nil, errors.New("503")
}

func TestBucketUnavailable(t *testing.T) {
	s := &Recordings{Calls: calls{recorded: "k"}, Bucket: unavailable{}, Key: func() []byte { return []byte("key") }}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, s.Link(recorded, "k.wav"), http.NoBody)
	r.SetPathValue("file", recorded+".wav")
	if err := s.Serve(httptest.NewRecorder(), r); err == nil || !strings.Contains(fmt.Sprint(err), "503") {
		t.Errorf("%v", err)
	}
}

// TestCompressed checks that a compressed recording has its own media type, and that a link from before it replaced a
// WAV file remains valid.
func TestCompressed(t *testing.T) {
	b := &recording.Folder{Dir: t.TempDir()}
	if err := b.Put(t.Context(), "r.opus", strings.NewReader("OggS")); err != nil {
		t.Fatal(err)
	}
	s := &Recordings{Calls: calls{recorded: "r.opus"}, Bucket: b, Key: func() []byte { return []byte("key") }}
	for key, ext := range map[string]string{"r.opus": ".opus", "r.wav": ".wav"} {
		link := s.Link(recorded, key)
		r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, link, http.NoBody), httptest.NewRecorder()
		r.SetPathValue("file", recorded+ext)
		if err := s.Serve(w, r); err != nil || !strings.Contains(link, recorded+ext+"?") {
			t.Errorf("%s: %v", link, err)
		}
		if kind := w.Header().Get("Content-Type"); kind != "audio/ogg; codecs=opus" || w.Body.String() != "OggS" {
			t.Errorf("%s: %s %q", link, kind, w.Body)
		}
	}
}
