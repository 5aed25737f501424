package yamlstrict

import (
	"strings"
	"testing"
	"time"
)

type inner struct {
	Name string        `yaml:"name"`
	Wait time.Duration `yaml:"wait"`
}

type outer struct {
	Base  inner   `yaml:",inline"`
	Share float64 `yaml:"share"`
	Count *int    `yaml:"count"`
	Parts []inner `yaml:"parts"`
	own   int
}

func TestRead(t *testing.T) {
	var v outer
	err := Read([]byte("name: x\nwait: 150ms\nshare: 0.5\ncount: 3\nparts:\n- {name: a, wait: 2s}\n"), &v)
	if err != nil || v.Base.Name != "x" || v.Base.Wait != 150*time.Millisecond || v.Share != 0.5 || v.Count == nil || *v.Count != 3 ||
		len(v.Parts) != 1 || v.Parts[0].Wait != 2*time.Second || v.own != 0 {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "empty file",
		"# a comment":                     "empty file",
		"name: x\n---\nname: y":           "one YAML document",
		"name: x\nwiat: 3s":               `line 2: the file: unknown key "wiat": accepted are name, wait, share, count, parts`,
		"own: 3":                          `unknown key "own"`,
		"name: x\nname: y":                `line 2: the file: duplicate key "name"`,
		"wait: soon":                      `line 1: wait is "soon": want a time`,
		"count: many":                     `line 1: count is "many": want a whole number`,
		"share: {a: 1}":                   `want a number`,
		"parts: 3":                        "line 1: parts: want a list",
		"parts:\n- name: a\n- title: b":   `line 3: parts[1]: unknown key "title"`,
		"parts: [3]":                      "line 1: parts[0]: want keys and values",
		"- 3":                             "want keys and values; keys are name",
		"name: &a x\nparts: [{name: *a}]": "anchors are not accepted",
		"name: [":                         "line 1",
		strings.Repeat("x", Longest+1):    "at most",
	} {
		var v outer
		if err := Read([]byte(text), &v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %q", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("name: x\nparts:\n- {name: a, wait: 2s}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var v outer
		_ = Read(b, &v) // returns without a panic
	})
}
