package recording_test

import (
	"testing"

	"github.com/parley-voice/parley/control/recording"
	"github.com/parley-voice/parley/control/recording/s3"
)

func TestOpen(t *testing.T) {
	for url, want := range map[string]string{"": "/default", "/srv/tapes": "/srv/tapes", "file:///srv/tapes": "/srv/tapes", "tapes": "tapes"} {
		b, err := recording.Open(url, "/default", s3.Account{})
		if f, ok := b.(*recording.Folder); err != nil || !ok || f.Dir != want {
			t.Errorf("%q: %+v, %v", url, b, err)
		}
	}
	if b, err := recording.Open("s3://tapes/here", "/default", s3.Account{ID: "id", Secret: "secret"}); err != nil {
		t.Error(err)
	} else if _, ok := b.(*s3.Bucket); !ok {
		t.Errorf("%T", b)
	}
	for url, ok := range map[string]bool{"/srv": true, "file:///srv": true, "s3://b": true, "": false, "gs://b": false, "s3://": false} {
		if err := recording.CheckURL(url); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
}
