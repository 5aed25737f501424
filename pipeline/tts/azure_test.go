package tts

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/parley-voice/parley/pipeline"
)

func TestAzureVoice(t *testing.T) {
	for _, tt := range []struct{ voice, language, want, locale string }{
		{"", "", "en-US-JennyNeural", "en-US"},
		{"", "kk", "kk-KZ-AigulNeural", "kk-KZ"},
		{"", "ru-RU", "ru-RU-SvetlanaNeural", "ru-RU"},
		{"", "en-GB", "en-GB-SoniaNeural", "en-GB"},
		{"", "en-NZ", "en-US-JennyNeural", "en-US"},
		{"", "no-NO", "nb-NO-PernilleNeural", "nb-NO"},
		{"", "cy", "", ""},
		{"kk-KZ-DauletNeural", "kk-KZ", "kk-KZ-DauletNeural", "kk-KZ"},
		{"kk-KZ-DauletNeural", "ru", "", ""},
		{"en-US-AvaMultilingualNeural", "kk", "en-US-AvaMultilingualNeural", "kk"},
		{"en-US-Ava:DragonHDLatestNeural", "de", "en-US-Ava:DragonHDLatestNeural", "de"},
		{"OurVoiceNeural", "", "OurVoiceNeural", "en-US"},
	} {
		voice, locale, err := azureVoice(pipeline.Style{Voice: tt.voice, Language: tt.language})
		var refused *pipeline.RefusedError
		if voice != tt.want || locale != tt.locale || (tt.want == "") != (errors.As(err, &refused) && refused.IsRequestFault()) {
			t.Errorf("voice %q in %q: %q, %q, %v", tt.voice, tt.language, voice, locale, err)
		}
	}
	for _, v := range azureVoices {
		if azureLocale.FindStringSubmatch(v) == nil {
			t.Errorf("%s has no locale", v)
		}
	}
}

func TestAzureSettings(t *testing.T) {
	warm := 0.7
	got, err := azureContext(pipeline.Style{Rate: 16000, Language: "kk-KZ", Options: pipeline.Options{
		Speed: 1.2, Temperature: &warm, Extra: map[string]any{"style": "chat", "voiceName": "other"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Synthesis struct {
			Audio struct{ OutputFormat string }
			Input map[string]any
		}
	}
	if err := json.Unmarshal([]byte(got), &m); err != nil {
		t.Fatal(err)
	}
	in := m.Synthesis.Input
	if m.Synthesis.Audio.OutputFormat != "raw-16khz-16bit-mono-pcm" || in["rate"] != "+20%" || in["temperature"] != "0.7" ||
		in["style"] != "chat" || in["voiceName"] != "kk-KZ-AigulNeural" || in["language"] != "kk-KZ" {
		t.Errorf("settings %s", got)
	}
	if _, err := azureContext(pipeline.Style{Rate: 11025}); err == nil {
		t.Error("11025 Hz is accepted")
	}
	for region, want := range map[string]string{
		"westeurope": "wss://westeurope.tts.speech.microsoft.com/cognitiveservices/websocket/v2",
		"chinaeast2": "wss://chinaeast2.tts.speech.azure.cn/cognitiveservices/websocket/v2", "": "",
	} {
		if got := azureURL(region); got != want {
			t.Errorf("%q: %s", region, got)
		}
	}
}
