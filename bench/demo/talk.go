package demo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-voice/parley/pipeline/fakeprovider"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
)

// Speech names the providers of the agents that visitors of /talk can call.
type Speech struct{ ASR, LLM, TTS string }

// ChooseSpeech chooses providers among the configured endpoints, the first by name of each service. Without a
// recognizer or a model it chooses the fake one; without a voice, espeak-ng if that is installed.
func ChooseSpeech(configured map[string]endpoints.Endpoint, hasEspeak bool) Speech {
	first := func(service string) string {
		for _, name := range slices.Sorted(maps.Keys(configured)) {
			if slices.Contains(endpoints.Kinds()[configured[name].Kind].Serves, service) {
				return name
			}
		}
		return ""
	}
	voice := fake
	if hasEspeak {
		voice = espeak
	}
	return Speech{cmp.Or(first("asr"), fake), cmp.Or(first("llm"), fake), cmp.Or(first("tts"), voice)}
}

const (
	fake   = "fake"
	espeak = "espeak"
)

// IsTyped reports whether the agents cannot understand speech, so that callers must type.
func (s Speech) IsTyped() bool { return s.ASR == fake }

// Notice returns sentences that say which parts of the agents are real.
func (s Speech) Notice() []string {
	parts, missing := []string{}, []string{}
	if s.IsTyped() {
		parts = append(parts, "No speech-to-text is configured: type, or let your browser recognize your speech.")
		missing = append(missing, "PARLEY_DEEPGRAM_API_KEY")
	} else {
		parts = append(parts, "Speech-to-text: "+s.ASR+".")
	}
	if s.LLM == fake {
		parts, missing = append(parts, "Model: a script that knows a few questions."), append(missing, "PARLEY_OPENAI_API_KEY")
	} else {
		parts = append(parts, "Model: "+s.LLM+".")
	}
	switch s.TTS {
	case fake:
		parts, missing = append(parts, "Voice: tones; install espeak-ng for words."), append(missing, "PARLEY_ELEVENLABS_API_KEY")
	case espeak:
		parts, missing = append(parts, "Voice: espeak-ng."), append(missing, "PARLEY_ELEVENLABS_API_KEY")
	default:
		parts = append(parts, "Voice: "+s.TTS+".")
	}
	if len(missing) > 0 {
		parts = append(parts, "For real providers, set "+strings.Join(missing, ", ")+" and start the demo again.")
	}
	return parts
}

// TalkAgents returns the names of the agents of File.
func TalkAgents() []string { return []string{"bookshop", "clinic"} }

// File returns the operator's file with the agents for /talk.
func (s Speech) File() string {
	speech := fmt.Sprintf("{asr: {provider: %s}, llm: {provider: %s}, tts: {provider: %s}}", s.ASR, s.LLM, s.TTS)
	return fmt.Sprintf(talkFile, speech, speech, phoneVoice(s.TTS))
}

// phoneVoice returns the voice of the survey agent, which calls scripted people: no provider that costs money.
func phoneVoice(tts string) string {
	if tts == espeak {
		return tts
	}
	return fake
}

const talkFile = `
organizations:
- name: ` + Organization + `
  agents:
  - name: bookshop
    published: true
    greeting: "Hello, Harbor Books. I can tell you when we open, look for a book, or hold one for you."
    prompt: "You answer the phone of the book shop Harbor Books, 12 Pier Street.
      It is open Monday to Saturday, 9 to 6. You have The Odyssey, Moby-Dick and Emma. You can hold a book for three days. Be brief and kind."
    recording: true
    speech: %s
  - name: clinic
    published: true
    greeting: "Hello, this is the Lakeside Clinic. You have an appointment tomorrow at 10. Can you come?"
    prompt: "You call patients of the Lakeside Clinic about an appointment tomorrow at 10.
      Confirm it, move it to Friday at 2, or cancel it. Give no medical advice. Be brief and kind."
    recording: true
    speech: %s
  - name: survey
    published: true
    greeting: "I have two short questions for the Reading Survey. How many books did you read this year?"
    prompt: "You ask people two questions for the Reading Survey of the library.
      Ask how many books they read this year, and whether they read on paper or on a screen. Thank them. Be brief and kind."
    recording: true
    speech: {asr: {provider: fake}, llm: {provider: fake}, tts: {provider: %s}}
  trunks:
  - name: demo
    rates: {"1": 0.0085}
    subgroups:
    - {name: default, allowed_destinations: [US], agents: [demo, bookshop, clinic, survey], concurrent_calls: 10, calls_per_minute: 30}
`

// A rule is an answer of the fake model to texts that contain one of the words; without words, to all texts.
type rule struct {
	words  []string
	answer string
}

// talkRules returns the answers of the fake model for the agents of /talk, by a word of their prompts.
func talkRules() map[string][]rule {
	return map[string][]rule{
		survey: surveyRules(),
		"Harbor Books": {
			{[]string{"bye", "goodbye", "thank", "thanks", "nothing"}, "Thank you for calling Harbor Books. Goodbye!"},
			{[]string{"open", "close", "closed", "hours", "when"}, "We are open Monday to Saturday, from 9 to 6."},
			{[]string{"where", "address"}, "We are at 12 Pier Street, next to the harbor."},
			{[]string{"hold", "keep", "reserve", "yes"}, "I will hold it for you for three days. Anything else?"},
			{[]string{"odyssey", "moby", "emma", "homer", "melville", "austen"}, "Yes, we have it. Shall I hold a copy for you?"},
			{[]string{"book", "books", "novel", "have"}, "We have The Odyssey, Moby-Dick and Emma. Which one would you like?"},
			{[]string{"hello", "hi", "hey"}, "Hello! Which book can I look for?"},
			{nil, "I am a script and know only opening hours, our address, and three books: The Odyssey, Moby-Dick and Emma."},
		},
		"Lakeside Clinic": {
			{[]string{"bye", "goodbye", "thank", "thanks"}, "Thank you. Goodbye!"},
			{[]string{"cancel"}, "Your appointment is canceled. Call us when you would like another one."},
			{[]string{"friday"}, "I moved your appointment to Friday at 2. See you then!"},
			{
				[]string{"no", "can't", "cannot", "not", "move", "another", "later"},
				"I can move it to Friday at 2, or cancel it. Which would you like?",
			},
			{[]string{"where", "address"}, "The clinic is at 3 Lake Road. Can you come tomorrow at 10?"},
			{[]string{"yes", "ok", "okay", "sure", "come", "will"}, "Thank you, your appointment tomorrow at 10 is confirmed."},
			{nil, "I am a script and can only confirm, move or cancel the appointment. Can you come tomorrow at 10?"},
		},
	}
}

// answerVisitor returns the fake model's answer for an agent of /talk. ok is false for other agents.
func answerVisitor(m []fakeprovider.Message) (answer string, ok bool) {
	if len(m) == 0 || m[0].Role != "system" {
		return "", false
	}
	for prompt, rules := range talkRules() {
		if !strings.Contains(m[0].Content, prompt) {
			continue
		}
		said := strings.FieldsFunc(strings.ToLower(m[len(m)-1].Content), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
		i := slices.IndexFunc(rules, func(r rule) bool {
			isSaid := func(word string) bool { return slices.Contains(said, word) }
			return r.words == nil || slices.ContainsFunc(r.words, isSaid)
		})
		return rules[i].answer, true
	}
	return "", false
}
