package secretbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-voice/parley/media"
)

func keys(t interface{ Fatal(args ...any) }, text ...string) Keys {
	k, err := Parse(media.Secret(strings.Join(text, ",")))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSealAndOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, young := string(Generate()), string(Generate())
		plain := media.Secret(rapid.String().Draw(t, "secret"))
		text, err := keys(t, old).Seal(plain)
		if err != nil {
			t.Fatal(err)
		}
		if len(plain) > 3 && strings.Contains(text, string(plain)) || plain != "" && !strings.HasPrefix(text, prefix) || plain == "" && text != "" {
			t.Fatalf("sealed to %q", text)
		}
		for _, k := range []Keys{keys(t, old), keys(t, young, old)} {
			if got, failed := k.Open(text); failed != nil || got != plain {
				t.Fatalf("opened: %v", failed)
			}
		}
		_, err = keys(t, young).Open(text)
		if unknown, ok := errors.AsType[*UnknownKeyError](err); plain != "" && (!ok || unknown.ID != keys(t, old)[0].ID) {
			t.Fatalf("another key: %v", err)
		}
		if again, _ := keys(t, old).Seal(plain); again != text {
			t.Fatal("sealing the same text again gives another result")
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	k := keys(t, string(Generate()))
	text, err := k.Seal("canary")
	if err != nil {
		t.Fatal(err)
	}
	head := prefix + k[0].ID + ":"
	for what, bad := range map[string]string{
		"cut": text[:len(text)-8], "no base64": head + "!", "empty": head, "no key": prefix, "another id": strings.Replace(text, k[0].ID, "000000000000", 1),
		"changed": text[:len(text)-8] + "AAAAAAA=",
	} {
		if got, err := k.Open(bad); err == nil || got != "" {
			t.Errorf("%s: opened", what)
		}
	}
	if got, err := k.Open("never sealed"); err != nil || got != "never sealed" {
		t.Errorf("never sealed: %v", err)
	}
	if _, err := (Keys{}).Seal("x"); err == nil {
		t.Error("sealed without a key")
	}
}

func TestParse(t *testing.T) {
	one, two := string(Generate()), string(Generate())
	for text, n := range map[string]int{
		one: 1, one + "\n": 1, one + "," + two: 2, one + "\n" + two + "\n": 2, " " + one + ", " + two: 2,
		"": 0, ",": 0, "canary": 0, one + ",canary": 0, one[4:]: 0, "AAAA" + one: 0,
	} {
		k, err := Parse(media.Secret(text))
		if len(k) != n || (err == nil) != (n > 0) || err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%d keys of %d, %v", len(k), n, err)
		}
	}
}

// TestFile checks that processes get the same key if they create the key file at the same time.
func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "seal.key")
	var all sync.WaitGroup
	got := make([]media.Secret, 8)
	for i := range got {
		all.Go(func() {
			var err error
			if got[i], err = (Source{File: name}).text(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, k := range got {
		if k != got[0] || k == "" {
			t.Error("got different keys")
		}
	}
	st, err := os.Stat(name)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*")); err != nil || len(left) != 1 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if _, err := (Source{File: filepath.Join(name, "x")}).text(t.Context(), nil); err == nil {
		t.Error("a file inside of a file")
	}
}
