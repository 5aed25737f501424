package listing

import (
	"net/url"
	"testing"
	"time"

	"github.com/parley-voice/parley/control"
)

func TestCursor(t *testing.T) {
	c := Key("key")
	q := url.Values{"status": {"ended"}, "limit": {"5"}}
	last := time.UnixMicro(1795222586123456)
	text := c.Text(last, "call_1", q, "org_1")
	more := url.Values{"status": {"ended"}, "limit": {"50"}, "cursor": {text}}
	if at, id, err := c.Open(text, "call_", more, "org_1"); err != nil || id != "call_1" || !at.Equal(last) {
		t.Errorf("%v %s %v", at, id, err)
	}
	for what, open := range map[string]func() error{
		"other filters":      func() error { _, _, err := c.Open(text, "call_", url.Values{}, "org_1"); return err },
		"other organization": func() error { _, _, err := c.Open(text, "call_", q, "org_2"); return err },
		"other list":         func() error { _, _, err := c.Open(text, "cmp_", q, "org_1"); return err },
		"other key": func() error {
			_, _, err := Key("x").Open(text, "call_", q, "org_1")
			return err
		},
	} {
		if control.CodeOf(open()) != control.CodeInvalidCursor {
			t.Errorf("%s: %v", what, open())
		}
	}
}

func FuzzCursor(f *testing.F) {
	c := Key("key")
	f.Add("")
	f.Add("AAAA")
	f.Add(c.Text(time.Unix(1, 0), "call_1", url.Values{}, "other"))
	f.Fuzz(func(t *testing.T, text string) {
		if _, _, err := c.Open(text, "", url.Values{}, "org"); control.CodeOf(err) != control.CodeInvalidCursor {
			t.Errorf("%q is accepted: %v", text, err)
		}
	})
}
