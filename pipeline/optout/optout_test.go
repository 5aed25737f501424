package optout

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// asks reports whether a single text is an opt-out.
func asks(text string, phrases ...string) bool {
	_, ok := New(&English{}, "9", phrases).OnTranscript(text, true, time.Second, "")
	return ok
}

func TestEnglish(t *testing.T) {
	for _, text := range []string{
		"stop calling me", "Stop calling me!", "please stop calling me", "Would you please stop calling me? I'm busy.", "quit calling this number",
		"stop calling me every day", "stop calling me you people", "stop calling my house", "stop bothering us please", "stop calling", "stop these calls",
		"take me off your list", "Take me off your calling list, please.", "can you take me off of your list", "please remove me from your call list",
		"remove my number", "remove my number from your database", "delete my phone number please", "please remove this number from all of your lists",
		"get me off this list", "get my name off that damn list", "take us off your marketing list", "lose my number", "remove me please",
		"do not call", "Don't call.", "please do not call", "do not call me again", "don't call me", "don't ever call me again", "never call me again",
		"never call this number again", "do not call this number", "don't call here anymore", "don’t call me back", "do not contact me again",
		"i said do not call me", "I don't want you to call me anymore", "i do not want to be called again", "i don't want any more calls",
		"i don't want to receive these calls", "i no longer wish to be contacted by you", "I don't want to hear from you again",
		"put me on your do not call list", "add my number to the do not call list", "i'm on the national do not call registry", "we are on the do not call list",
		"i told you not to call me", "I've asked you people to stop calling", "i want to be removed from your list", "opt out", "unsubscribe", "opt me out",
		"i would like to opt out", "no more calls please", "i revoke my consent", "hello. do not call me again. bye",
		"yes hi uh listen take me off your list okay",
	} {
		if !asks(text) {
			t.Errorf("%q is missed", text)
		}
	}
	for _, text := range []string{
		"", "hello", "don't call it quits", "do not call it quits just yet", "i wouldn't call it a list", "stop it please", "stop calling me names",
		"stop calling me sir", "stop calling me darling", "stop calling me by my first name", "my mother keeps calling me", "call me again tomorrow",
		"don't call me now call me later", "don't call me before noon", "do not call me at work call my cell", "if you don't call me back i will be upset",
		"you never call me", "why don't you call me tomorrow", "they do not call me", "please don't stop calling me", "do not take me off your list",
		"you took me off your list", "did you take me off your list", "what is on your list", "remove my number from the order and use the other one",
		"can you take the delivery off my list", "i don't want any sugar", "no more questions", "i don't want to call you names",
		"do not call the police", "i do not want you to call me a taxi", "take me off hold", "get me off the phone quickly",
		"who is calling me", "if you do not want to be called again say so or press nine", "can i call you back", "please call me back",
		"i was on a call", "i have a list of things to do", "the number you have called has been removed", "remove me from consideration for tuesday",
		"i don't want to be called a customer", "how do i stop calling from the wrong number",
	} {
		if asks(text) {
			t.Errorf("%q is taken for a request", text)
		}
	}
}

// TestSigns checks that every text that matches a rule has a sign.
func TestSigns(t *testing.T) {
	for _, r := range rules() {
		rapid.Check(t, func(t *rapid.T) {
			if text := rapid.StringMatching(r.form.String()).Draw(t, "text"); r.form.MatchString(text) && !hasSign(text) {
				t.Errorf("%q has no sign", text)
			}
		})
	}
	if hasSign("yes i am interested thank you") {
		t.Error("a sign in a text without one")
	}
}

func BenchmarkFind(b *testing.B) {
	var e English
	for b.Loop() {
		e.find("yes i would like to come in on tuesday . how much is it for two people and a child . thank you")
	}
}

func TestPhrases(t *testing.T) {
	phrases := []string{"no me llame más", "больше не звоните"}
	for text, want := range map[string]bool{
		"Por favor, no me llame más.": true, "no me llame": false, "Прошу вас: больше не звоните!": true, "звоните больше": false, "забольше не звоните": false,
	} {
		if got := asks(text, phrases...); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestPieces checks that the detector finds an opt-out that is split over several transcripts within the window.
func TestPieces(t *testing.T) {
	w := New(&English{}, "", nil)
	for i, text := range []string{"please take me", "off your"} {
		if _, ok := w.OnTranscript(text, true, time.Duration(i)*time.Second, ""); ok {
			t.Fatalf("request found already in %q", text)
		}
	}
	if said, ok := w.OnTranscript("list", true, 2*time.Second, ""); !ok || said != "take me off your list" {
		t.Errorf("%q, %v", said, ok)
	}
	w = New(&English{}, "", nil)
	w.OnTranscript("stop", true, 0, "")
	if _, ok := w.OnTranscript("calling me", true, time.Minute, ""); ok {
		t.Error("words from a minute ago count")
	}
	w = New(&English{}, "", nil)
	if _, ok := w.OnTranscript("stop calling me", true, 0, "you can say stop calling me"); ok {
		t.Error("words of the agent count")
	}
	w = New(&English{}, "", nil)
	if _, ok := w.OnTranscript("stop calling me", false, 0, ""); ok {
		t.Error("words that may change count while the call is on")
	}
	if said, key, ok := w.Pending(""); !ok || key || said != "stop calling me" {
		t.Errorf("at the end: %q, %v, %v", said, key, ok)
	}
}

func TestKey(t *testing.T) {
	const ms = time.Millisecond
	type press struct {
		k  rune
		at time.Duration
	}
	for name, c := range map[string]struct {
		keys []press
		now  time.Duration
		want bool
	}{
		"alone":                     {[]press{{'9', 1000 * ms}}, 2500 * ms, true},
		"too early to tell":         {[]press{{'9', 1000 * ms}}, 2400 * ms, false},
		"twice":                     {[]press{{'9', 1000 * ms}, {'9', 1500 * ms}}, 3000 * ms, true},
		"of a number":               {[]press{{'1', 1000 * ms}, {'9', 2000 * ms}}, 9000 * ms, false},
		"of a number, first":        {[]press{{'9', 1000 * ms}, {'1', 2000 * ms}}, 9000 * ms, false},
		"after a number":            {[]press{{'1', 1000 * ms}, {'9', 2500 * ms}}, 4000 * ms, true},
		"another":                   {[]press{{'1', 1000 * ms}}, 4000 * ms, false},
		"at once, before any other": {[]press{{'9', 0}}, 1500 * ms, true},
	} {
		w := New(&English{}, "9", nil)
		for _, p := range c.keys {
			w.OnKey(p.k, p.at)
		}
		if got := w.IsKeyConfirmed(c.now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	w := New(&English{}, "", nil)
	if w.OnKey('9', 0) || w.IsKeyConfirmed(time.Hour) {
		t.Error("a key counts although none is configured")
	}
	w = New(&English{}, "9", nil)
	if w.OnKey('9', 0); true {
		if _, key, ok := w.Pending(""); !key || !ok {
			t.Error("the key right before the hangup does not count")
		}
	}
}

// TestAnything checks that no text causes a panic, and that text without the words of a request
// is not an opt-out.
func TestAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		w := New(&English{}, "9", nil)
		_, ok := w.OnTranscript(text, true, 0, "")
		if low := strings.ToLower(text); ok && !strings.Contains(low, "call") && !strings.Contains(low, "remove") && !strings.Contains(low, "list") &&
			!strings.Contains(low, "opt") && !strings.Contains(low, "unsub") && !strings.Contains(low, "consent") && !strings.Contains(low, "number") {
			t.Errorf("%q", text)
		}
	})
}
