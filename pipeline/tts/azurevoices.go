package tts

import (
	"regexp"
	"strings"

	"github.com/parley-voice/parley/pipeline"
)

// azureVoices lists default voices by locale. The first voice of a language serves its locales
// that are not listed (learn.microsoft.com/azure/ai-services/speech-service/language-support).
var azureVoices = []string{ //nolint:gochecknoglobals // a table
	"en-US-JennyNeural", "en-GB-SoniaNeural", "en-AU-NatashaNeural", "en-IN-NeerjaNeural", "en-ZA-LeahNeural", "en-CA-ClaraNeural",
	"ru-RU-SvetlanaNeural", "kk-KZ-AigulNeural", "uz-UZ-MadinaNeural", "uk-UA-PolinaNeural", "az-AZ-BanuNeural", "ka-GE-EkaNeural",
	"de-DE-KatjaNeural", "de-AT-IngridNeural", "de-CH-LeniNeural", "fr-FR-DeniseNeural", "fr-CA-SylvieNeural",
	"es-ES-ElviraNeural", "es-MX-DaliaNeural", "es-US-PalomaNeural", "pt-BR-FranciscaNeural", "pt-PT-RaquelNeural",
	"it-IT-ElsaNeural", "nl-NL-ColetteNeural", "pl-PL-ZofiaNeural", "sv-SE-SofieNeural", "nb-NO-PernilleNeural", "da-DK-ChristelNeural",
	"fi-FI-NooraNeural", "cs-CZ-VlastaNeural", "sk-SK-ViktoriaNeural", "hu-HU-NoemiNeural", "ro-RO-AlinaNeural", "bg-BG-KalinaNeural",
	"hr-HR-GabrijelaNeural", "el-GR-AthinaNeural", "tr-TR-EmelNeural", "he-IL-HilaNeural", "ar-EG-SalmaNeural", "ar-SA-ZariyahNeural",
	"hi-IN-SwaraNeural", "ja-JP-NanamiNeural", "ko-KR-SunHiNeural", "zh-CN-XiaoxiaoNeural", "id-ID-GadisNeural", "ms-MY-YasminNeural",
	"vi-VN-HoaiMyNeural", "th-TH-PremwadeeNeural", "fil-PH-BlessicaNeural",
}

// azureLocale matches the locale in the name of a voice that speaks one language, such as
// "kk-KZ-AigulNeural".
var azureLocale = regexp.MustCompile(`^([a-z]{2,3}-[A-Za-z]{2,4})-[A-Za-z-]+Neural$`)

// azureVoice returns the voice of a style and the locale of its text. It refuses a voice that
// does not speak the language of the style.
func azureVoice(s pipeline.Style) (voice, locale string, err error) {
	language := azureLanguage(s.Language)
	if s.Voice == "" {
		return defaultAzureVoice(s.Language, language)
	}
	m := azureLocale.FindStringSubmatch(s.Voice)
	switch {
	case m == nil || strings.Contains(s.Voice, "Multilingual"): // the voice is a custom, high-definition or multilingual one
		if s.Language == "" {
			return s.Voice, "en-US", nil
		}
		return s.Voice, s.Language, nil
	case language != "" && baseLanguage(m[1]) != language:
		return "", "", checkLanguage("azure speech", "voice "+s.Voice, s.Language, []string{baseLanguage(m[1])})
	}
	return s.Voice, m[1], nil
}

func defaultAzureVoice(tag, language string) (voice, locale string, err error) {
	for _, v := range azureVoices {
		at := azureLocale.FindStringSubmatch(v)[1]
		if strings.EqualFold(at, tag) {
			return v, at, nil
		}
		if voice == "" && (language == "" || baseLanguage(at) == language) {
			voice, locale = v, at
		}
	}
	if voice == "" {
		return "", "", refuse("azure speech", "no default voice for "+tag+": name one in the agent")
	}
	return voice, locale, nil
}

// azureLanguage returns Azure's code for the language of a BCP 47 tag.
func azureLanguage(tag string) string {
	if base := baseLanguage(tag); base != "no" {
		return base
	}
	return "nb"
}
