package tts

import "strings"

// KnownVoices returns names of voices that a kind of endpoint has, for people who choose one. Providers have more voices,
// and accounts have their own.
func KnownVoices(kind string) []string {
	switch kind {
	case "azure":
		return azureVoices
	case "cartesia":
		return []string{CartesiaVoice}
	case "deepgram":
		return deepgramVoices
	case "elevenlabs":
		return []string{ElevenLabsVoice}
	case "openai": // platform.openai.com/docs/guides/text-to-speech
		return strings.Fields("alloy ash ballad coral echo fable nova onyx sage shimmer verse")
	case "soniox":
		return []string{SonioxVoice}
	case "yandex":
		var all []string
		for _, v := range yandexVoices {
			all = append(all, strings.Fields(v.voices)...)
		}
		return all
	case "espeak":
		return strings.Fields("en-us en-gb es fr-fr de it pt-br ru kk")
	}
	return nil
}
