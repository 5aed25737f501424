package endpoints

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/parley-voice/parley/pipeline/asr"
	"github.com/parley-voice/parley/pipeline/llm"
	"github.com/parley-voice/parley/pipeline/tts"
)

// A Kind is a provider's API.
type Kind struct {
	Title string // name of the provider for people
	// Serves lists what endpoints of the kind serve: "asr", "llm", "tts".
	Serves []string

	schemes     []string
	paths       []string // accepted paths of the URL; nil accepts any
	hasDefault  bool     // the URL may be empty
	needsKey    bool     // the default URL requires a key
	needsRegion bool     // an endpoint without a URL requires a region
	// hasVersions, hasRegions and hasFolders mean that the kind uses APIVersion, Region and
	// Folder of its endpoints.
	hasVersions, hasRegions, hasFolders bool
	open                                func(p *clients, name string, e Endpoint)
}

// NeedsKey reports whether an account with the provider needs a key.
func (k Kind) NeedsKey() bool { return k.needsKey }

// Kinds returns all kinds by name.
func Kinds() map[string]Kind {
	all := modelKinds()
	maps.Copy(all, speechKinds())
	maps.Copy(all, severalKinds())
	return all
}

// webSchemes and socketSchemes are schemes of URLs.
func webSchemes() []string    { return []string{"http", "https"} }
func socketSchemes() []string { return []string{"ws", "wss"} }

// modelKinds are the kinds that serve models only.
func modelKinds() map[string]Kind {
	web := webSchemes()
	return map[string]Kind{
		"responses": {
			Title: "OpenAI's Responses API", Serves: []string{"llm"}, schemes: web, hasDefault: true, needsKey: true,
			open: func(p *clients, name string, e Endpoint) {
				p.Models[name] = llm.Responses{
					URL: e.URL, Key: e.Key, Model: e.Model, Header: e.Header, Client: p.client, Parameters: &llm.ParameterCache{},
				}
			},
		},
		"anthropic": {
			Title: "Anthropic's Messages API", Serves: []string{"llm"}, schemes: web, hasDefault: true, needsKey: true,
			open: func(p *clients, name string, e Endpoint) {
				p.Models[name] = llm.Anthropic{
					URL: e.URL, Key: e.Key, Model: e.Model, Header: e.Header, Client: p.client, Parameters: &llm.ParameterCache{},
				}
			},
		},
		"gemini": {
			Title: "Google's Gemini API", Serves: []string{"llm"}, schemes: web, hasDefault: true, needsKey: true,
			open: func(p *clients, name string, e Endpoint) {
				p.Models[name] = llm.Gemini{
					URL: e.URL, Key: e.Key, Model: e.Model, Header: e.Header, Client: p.client, Parameters: &llm.ParameterCache{},
				}
			},
		},
		"azure-openai": {
			Title: "Azure OpenAI: v1, or the classic API if an API version is set", Serves: []string{"llm"}, schemes: web, hasVersions: true,
			open: func(p *clients, name string, e Endpoint) {
				model := p.chat(e)
				model.KeyHeader, model.APIVersion = "api-key", e.APIVersion
				p.Models[name] = model
			},
		},
		"chat": {
			Title: "Chat completions: Groq, Cerebras, vLLM, Ollama, OpenRouter and others", Serves: []string{"llm"}, schemes: web,
			open: func(p *clients, name string, e Endpoint) { p.Models[name] = p.chat(e) },
		},
	}
}

// speechKinds are the kinds that serve a recognizer, a voice or both in one API.
func speechKinds() map[string]Kind {
	web, sockets := webSchemes(), socketSchemes()
	return map[string]Kind{
		"deepgram": {
			Title: "Deepgram", Serves: []string{"asr", "tts"},
			schemes: sockets, paths: []string{"/v1/listen"}, hasDefault: true, needsKey: true,
			open: func(p *clients, name string, e Endpoint) {
				p.Recognizers[name] = asr.Deepgram{URL: e.at("/v1/listen"), Key: e.Key, Dial: p.dial}
				p.Recognizers[name+fluxSuffix] = asr.Flux{URL: e.at("/v2/listen"), Key: e.Key, Dial: p.dial}
				p.Voices[name] = tts.Deepgram{URL: e.at("/v1/speak"), Key: e.Key, Dial: p.dial, Warm: p.newPool(time.Minute)}
			},
		},
		"speech": {
			Title: "OpenAI-compatible speech: Kokoro, Piper servers, speaches", Serves: []string{"tts"}, schemes: web,
			open: func(p *clients, name string, e Endpoint) { p.Voices[name] = p.speech(e) },
		},
		"transcriptions": {
			Title: "OpenAI-compatible transcription of segments: Groq, speaches, whisper.cpp, vLLM", Serves: []string{"asr"}, schemes: web,
			open: func(p *clients, name string, e Endpoint) {
				p.Recognizers[name] = asr.Transcriptions{URL: e.URL, Key: e.Key, Header: e.Header, Client: p.client}
			},
		},
		"elevenlabs": {
			Title: "ElevenLabs", Serves: []string{"tts"}, schemes: sockets, paths: []string{}, hasDefault: true, needsKey: true,
			open: func(p *clients, name string, e Endpoint) {
				p.Voices[name] = tts.ElevenLabs{URL: e.URL, Key: e.Key, Dial: p.dial, Warm: p.newPool(2 * time.Minute)}
			},
		},
		"cartesia": {
			Title: "Cartesia", Serves: []string{"tts"},
			schemes: sockets, paths: []string{"/tts/websocket"}, hasDefault: true, needsKey: true,
			open: func(p *clients, name string, e Endpoint) {
				voice := &tts.Cartesia{URL: e.at("/tts/websocket"), Key: e.Key, Dial: p.dial}
				p.Voices[name] = voice
				p.closers = append(p.closers, voice)
			},
		},
		"assemblyai": {
			Title: "AssemblyAI", Serves: []string{"asr"},
			schemes: sockets, paths: []string{"/v3/ws"}, hasDefault: true, needsKey: true,
			open: func(p *clients, name string, e Endpoint) {
				p.Recognizers[name] = asr.AssemblyAI{URL: e.at("/v3/ws"), Key: e.Key, Dial: p.dial}
			},
		},
	}
}

// severalKinds are the kinds whose endpoints serve several APIs.
func severalKinds() map[string]Kind {
	web, sockets := webSchemes(), socketSchemes()
	return map[string]Kind{
		"openai": {
			Title: "OpenAI: realtime transcription, chat completions and speech", Serves: []string{"asr", "llm", "tts"},
			schemes: web, hasDefault: true, needsKey: true,
			open: func(p *clients, name string, e Endpoint) {
				p.Recognizers[name] = asr.OpenAI{URL: realtime(e.URL), Key: e.Key, Header: e.Header, Dial: p.dial}
				p.Models[name] = p.chat(e)
				p.Voices[name] = p.speech(e)
			},
		},
		"azure": {
			Title: "Azure Speech", Serves: []string{"asr", "tts"},
			schemes: sockets, paths: []string{}, needsKey: true, needsRegion: true, hasRegions: true,
			open: func(p *clients, name string, e Endpoint) {
				p.Recognizers[name] = asr.Azure{Region: e.Region, URL: e.at("/stt/speech/universal/v2"), Key: e.Key, Dial: p.dial}
				p.Voices[name] = tts.Azure{
					Region: e.Region, URL: e.at("/tts/cognitiveservices/websocket/v2"), Key: e.Key, Dial: p.dial, Warm: p.newPool(time.Minute),
				}
			},
		},
		"soniox": {
			Title: "Soniox", Serves: []string{"asr", "tts"}, schemes: sockets, paths: []string{}, hasDefault: true, needsKey: true, hasRegions: true,
			open: func(p *clients, name string, e Endpoint) {
				hear, speak := e.at("/transcribe-websocket"), e.at("/tts-websocket")
				if e.Region != "" && e.URL == "" {
					host := "." + e.Region + ".soniox.com"
					hear, speak = "wss://stt-rt"+host+"/transcribe-websocket", "wss://tts-rt"+host+"/tts-websocket"
				}
				p.Recognizers[name] = asr.Soniox{URL: hear, Key: e.Key, Dial: p.dial}
				p.Voices[name] = tts.Soniox{URL: speak, Key: e.Key, Dial: p.dial, Warm: p.newPool(time.Minute)}
			},
		},
		"yandex": {
			Title: "Yandex SpeechKit", Serves: []string{"asr", "tts"}, schemes: web, paths: []string{}, hasDefault: true, needsKey: true,
			hasFolders: true,
			open: func(p *clients, name string, e Endpoint) {
				p.Recognizers[name] = asr.Yandex{URL: e.URL, Key: e.Key, Folder: e.Folder, Client: p.grpc(e)}
				p.Voices[name] = tts.Yandex{URL: e.URL, Key: e.Key, Folder: e.Folder, Client: p.client}
			},
		},
	}
}

// hasHeader reports whether the kind sends the headers of its endpoints. Kinds whose API is a
// WebSocket or gRPC do not.
func (k Kind) hasHeader() bool { return slices.Contains(k.schemes, "https") && !k.hasFolders }

// chat returns a model of the chat completions API.
func (p *clients) chat(e Endpoint) llm.OpenAI {
	return llm.OpenAI{
		URL: e.URL, Key: e.Key, Model: e.Model, Header: e.Header, Client: p.client, Parameters: &llm.ParameterCache{},
	}
}

// speech returns a voice of the audio speech API.
func (p *clients) speech(e Endpoint) tts.OpenAI {
	return tts.OpenAI{URL: e.URL, Key: e.Key, Header: e.Header, Client: p.client}
}

// URLs returns the accepted URLs of a kind, for documentation.
func (k Kind) URLs() string {
	text := strings.Join(k.schemes, ", ")
	switch {
	case k.paths == nil:
		text += " with any path"
	case len(k.paths) == 0:
		text += " without a path"
	default:
		text += " without a path or with " + strings.Join(k.paths, ", ")
	}
	switch {
	case k.needsRegion:
		text += "; or a region"
	case k.hasDefault:
		text += "; may be empty"
	}
	return text
}
