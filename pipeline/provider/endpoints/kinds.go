package endpoints

import (
	"time"

	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tts"
)

// A Kind is a provider's API.
type Kind struct {
	Title string // of the provider, for people
	// Serves lists what endpoints of the kind serve: "asr", "llm", "tts".
	Serves []string

	schemes     []string
	paths       []string // accepted paths of the URL; nil accepts any
	hasDefault  bool     // the URL may be empty
	needsKey    bool     // at the default URL
	needsRegion bool     // unless there is a URL
	open        func(p *Providers, name string, e Endpoint)
}

// Kinds returns all kinds by name.
func Kinds() map[string]Kind {
	web, sockets := []string{"http", "https"}, []string{"ws", "wss"}
	return map[string]Kind{
		"deepgram": {
			Title: "Deepgram", Serves: []string{"asr", "tts"},
			schemes: sockets, paths: []string{"/v1/listen"}, hasDefault: true, needsKey: true,
			open: func(p *Providers, name string, e Endpoint) {
				p.Recognizers[name] = asr.Deepgram{URL: e.at("/v1/listen"), Key: e.Key}
				p.Recognizers[name+"-flux"] = asr.Flux{URL: e.at("/v2/listen"), Key: e.Key}
				p.Voices[name] = tts.Deepgram{URL: e.at("/v1/speak"), Key: e.Key, Warm: p.newPool(time.Minute)}
			},
		},
		"openai": {
			Title: "OpenAI: realtime transcription, chat completions and speech", Serves: []string{"asr", "llm", "tts"},
			schemes: web, hasDefault: true, needsKey: true,
			open: func(p *Providers, name string, e Endpoint) {
				p.Recognizers[name] = asr.OpenAI{URL: realtime(e.URL), Key: e.Key}
				p.Models[name] = p.chat(e)
				p.Voices[name] = tts.OpenAI{URL: e.URL, Key: e.Key, Client: p.web(e)}
			},
		},
		"chat": {
			Title: "Chat completions: Groq, Cerebras, vLLM, Ollama, OpenRouter and others", Serves: []string{"llm"}, schemes: web,
			open: func(p *Providers, name string, e Endpoint) { p.Models[name] = p.chat(e) },
		},
		"speech": {
			Title: "OpenAI-shaped speech: Kokoro, Piper servers, speaches", Serves: []string{"tts"}, schemes: web,
			open: func(p *Providers, name string, e Endpoint) {
				p.Voices[name] = tts.OpenAI{URL: e.URL, Key: e.Key, Client: p.web(e)}
			},
		},
		"elevenlabs": {
			Title: "ElevenLabs", Serves: []string{"tts"}, schemes: sockets, paths: []string{}, hasDefault: true, needsKey: true,
			open: func(p *Providers, name string, e Endpoint) {
				p.Voices[name] = tts.ElevenLabs{URL: e.URL, Key: e.Key, Warm: p.newPool(2 * time.Minute)}
			},
		},
		"cartesia": {
			Title: "Cartesia", Serves: []string{"tts"},
			schemes: sockets, paths: []string{"/tts/websocket"}, hasDefault: true, needsKey: true,
			open: func(p *Providers, name string, e Endpoint) {
				voice := &tts.Cartesia{URL: e.at("/tts/websocket"), Key: e.Key}
				p.Voices[name] = voice
				p.closers = append(p.closers, voice)
			},
		},
		"assemblyai": {
			Title: "AssemblyAI", Serves: []string{"asr"},
			schemes: sockets, paths: []string{"/v3/ws"}, hasDefault: true, needsKey: true,
			open: func(p *Providers, name string, e Endpoint) {
				p.Recognizers[name] = asr.AssemblyAI{URL: e.at("/v3/ws"), Key: e.Key}
			},
		},
	}
}

// chat returns a model of the chat completions API.
func (p *Providers) chat(e Endpoint) llm.OpenAI {
	return llm.OpenAI{URL: e.URL, Key: e.Key, Client: p.web(e)}
}
