package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-voice/parley/control/recording/s3"
	"github.com/parley-voice/parley/control/recording/s3/s3test"
)

func open(t *testing.T, url string, a s3.Account) *s3.Bucket {
	t.Helper()
	b, err := s3.Open(url, a)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func account() s3.Account { return s3.Account{ID: s3test.ID, Secret: s3test.Secret} }

// noise returns n bytes that do not repeat.
func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(b)
	return b
}

func TestBucket(t *testing.T) {
	server := s3test.New(t)
	for _, prefix := range []string{"", "acme/prod"} {
		b := open(t, server.BucketURL(prefix), account())
		for name, size := range map[string]int{"empty": 0, "short": 1000, "long": 40 << 20} {
			key := "recordings/call_" + name + ".wav"
			want := noise(size)
			file := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(file, want, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			if err = b.Put(t.Context(), key, f); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			_ = f.Close()
			if got, ok := server.Object(strings.TrimPrefix(prefix+"/"+key, "/")); !ok || !bytes.Equal(got, want) {
				t.Fatalf("%s: %d bytes are stored, want %d", key, len(got), size)
			}
			checkRead(t, b, key, want)
			if err = b.Delete(t.Context(), key); err != nil {
				t.Errorf("delete: %v", err)
			}
			if err = b.Delete(t.Context(), key); err != nil {
				t.Errorf("delete what is not there: %v", err)
			}
			if _, err = b.Open(t.Context(), key); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("open what is not there: %v", err)
			}
		}
	}
	if ranges, parts := server.Asked(); ranges == 0 || parts < 6 {
		t.Errorf("%d ranges and %d parts: neither was tested", ranges, parts)
	}
}

// checkRead reads the complete file, its end, and a part in the middle.
func checkRead(t *testing.T, b *s3.Bucket, key string, want []byte) {
	t.Helper()
	r, err := b.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: read %d bytes: %v", key, len(got), err)
	}
	if end, err := r.Seek(0, io.SeekEnd); err != nil || end != int64(len(want)) {
		t.Errorf("%s ends at %d: %v", key, end, err)
	}
	if len(want) < 100 {
		return
	}
	if _, err := r.Seek(int64(len(want)/2), io.SeekStart); err != nil {
		t.Fatal(err)
	}
	part := make([]byte, 50)
	if _, err := io.ReadFull(r, part); err != nil || !bytes.Equal(part, want[len(want)/2:][:50]) {
		t.Errorf("%s: the middle of the object differs: %v", key, err)
	}
}

func TestNothingIsHalfStored(t *testing.T) {
	server := s3test.New(t)
	b := open(t, server.BucketURL(""), account())
	for _, size := range []int{1000, 40 << 20} {
		broken := io.MultiReader(bytes.NewReader(noise(size)), failing{})
		if err := b.Put(t.Context(), "k", broken); err == nil {
			t.Error("a reader that fails is stored")
		}
		if _, ok := server.Object("k"); ok {
			t.Error("a part of it can be seen")
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is broken") }

func TestRefusals(t *testing.T) {
	server := s3test.New(t)
	wrong := open(t, server.BucketURL(""), s3.Account{ID: s3test.ID, Secret: "canary-another"})
	err := wrong.Put(t.Context(), "k", bytes.NewReader([]byte("x")))
	if err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("a wrong secret: %v", err)
	}
	if _, err = wrong.Open(t.Context(), "k"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a wrong secret: %v", err)
	}
	b := open(t, server.BucketURL("p"), account())
	for _, key := range []string{"", ".", "../x", "/x", "a//b"} {
		if err = b.Put(t.Context(), key, bytes.NewReader(nil)); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	server.Break(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err = b.Put(ctx, "k", bytes.NewReader([]byte("x"))); err == nil {
		t.Error("a broken server stores")
	}
}

func TestURLs(t *testing.T) {
	for text, ok := range map[string]bool{
		"s3://bucket": true, "s3://bucket/prefix/a": true, "s3://b?region=eu-west-1": true, "s3://b/?endpoint=http://127.0.0.1:9000": true,
		"s3://": false, "s3:///p": false, "http://b": false, "s3://id:canary@b": false, "s3://b?endpoint=host": false, "s3://b?endpoint=https://host/path": false,
		"s3://b?key=canary": false, "s3://b?endpoint=https://u:canary@host": false,
	} {
		err := s3.Check(text)
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("the error contains a secret: %v", err)
		}
	}
	if text := fmt.Sprintf("%v %+v", account(), account()); strings.Contains(text, s3test.Secret) {
		t.Errorf("a secret is printed: %s", text)
	}
}
