package canned

import (
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

// key is one line of an agent, as another call reads it.
func key(voice string, line Line) Key {
	return Key{Engine: pipeline.Engine{
		Provider: "elevenlabs", Voice: voice, Fallback: &pipeline.Engine{Provider: "espeak", Voice: voice},
	}, Rate: 8000, Line: line}
}

func put(s *Shelf, k Key) bool {
	if !s.Claim(k) {
		return false
	}
	s.Put(k, []int16{1})
	return true
}

func TestShelf(t *testing.T) {
	var s Shelf
	if s.Get(key("a", Apology)) != nil || !s.Claim(key("a", Apology)) || s.Claim(key("a", Apology)) {
		t.Error("want one claim of a line that is not there")
	}
	s.Put(key("a", Apology), nil)
	if !put(&s, key("a", Apology)) {
		t.Error("what was tried in vain may be tried again")
	}
	if s.Get(key("a", Apology)) == nil || s.Claim(key("a", Apology)) {
		t.Error("the next call does not find the line")
	}
	other := key("a", Apology)
	other.Engine.Fallback.Voice = "b"
	for name, k := range map[string]Key{"line": key("a", Nudge), "voice": key("b", Apology), "fallback": other} {
		if s.Get(k) != nil {
			t.Errorf("another %s has the line", name)
		}
	}
}

// TestShelfIsFull: the oldest line makes room.
func TestShelfIsFull(t *testing.T) {
	var s Shelf
	name := func(i int) string { return string(rune('a' + i)) }
	for i := range most + 1 {
		if !put(&s, key(name(i), Apology)) {
			t.Fatalf("line %d is not taken", i)
		}
	}
	if len(s.spoken) != most || len(s.order) != most || s.Get(key(name(0), Apology)) != nil || s.Get(key(name(1), Apology)) == nil {
		t.Errorf("%d lines are kept", len(s.spoken))
	}
	if !put(&s, key(name(0), Apology)) || s.Get(key(name(0), Apology)) == nil {
		t.Error("what made room cannot come back")
	}
}
