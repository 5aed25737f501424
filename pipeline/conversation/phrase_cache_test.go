package conversation

import (
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

// key returns a key with a copy of the engine, because each call has its own copy.
func key(voice string, line phrase) phraseKey {
	return phraseKey{Engine: pipeline.Engine{
		Provider: "elevenlabs", Voice: voice, Fallback: &pipeline.Engine{Provider: "espeak", Voice: voice},
	}, Rate: 8000, phrase: line}
}

func put(s *phraseCache, k phraseKey) bool {
	if !s.Claim(k) {
		return false
	}
	s.Put(k, []int16{1})
	return true
}

func TestPhraseCache(t *testing.T) {
	var s phraseCache
	if s.Get(key("a", phraseApology)) != nil || !s.Claim(key("a", phraseApology)) || s.Claim(key("a", phraseApology)) {
		t.Error("got a phrase or two claims of it, want one claim")
	}
	s.Put(key("a", phraseApology), nil)
	if !put(&s, key("a", phraseApology)) {
		t.Error("cannot claim a phrase again after an empty Put")
	}
	if s.Get(key("a", phraseApology)) == nil || s.Claim(key("a", phraseApology)) {
		t.Error("Get does not find the phrase of another call")
	}
	other := key("a", phraseApology)
	other.Engine.Fallback.Voice = "b"
	for name, k := range map[string]phraseKey{"line": key("a", phraseNudge), "voice": key("b", phraseApology), "fallback": other} {
		if s.Get(k) != nil {
			t.Errorf("a key with another %s finds the phrase", name)
		}
	}
}

// TestForgetPhrases checks that a call from before ForgetPhrases stores nothing that a later call finds.
func TestForgetPhrases(t *testing.T) {
	var a Agent
	old := a.currentPhrases()
	put(old, key("a", phraseApology))
	old.Claim(key("a", phraseNudge))
	a.ForgetPhrases()
	old.Put(key("a", phraseNudge), []int16{1})
	if now := a.currentPhrases(); now.Get(key("a", phraseApology)) != nil || !put(now, key("a", phraseNudge)) {
		t.Error("a later call finds phrases of an earlier one")
	}
	if old.Get(key("a", phraseApology)) == nil {
		t.Error("a call in progress lost its phrases")
	}
}

func TestFullPhraseCache(t *testing.T) {
	var s phraseCache
	name := func(i int) string { return string(rune('a' + i)) }
	for i := range maxPhrases + 1 {
		if !put(&s, key(name(i), phraseApology)) {
			t.Fatalf("cannot put phrase %d", i)
		}
	}
	if len(s.spoken) != maxPhrases || len(s.order) != maxPhrases || s.Get(key(name(0), phraseApology)) != nil || s.Get(key(name(1), phraseApology)) == nil {
		t.Errorf("got %d phrases", len(s.spoken))
	}
	if !put(&s, key(name(0), phraseApology)) || s.Get(key(name(0), phraseApology)) == nil {
		t.Error("cannot put a dropped phrase again")
	}
}
